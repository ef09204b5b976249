package csvtext

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// namedCell is a value with its name before it.
var namedCell = regexp.MustCompile(`^ *([A-Za-z_][A-Za-z0-9_]*) *([=:]) *[^ ].*$`)

// namedCells returns the command that makes a table of lines in which each value has its name before it, as x=1,y=2
// or x:1 y:2, by the first two of them; "" for other lines.
func namedCells(line, rest string) string {
	const longest = 160
	second, _, _ := strings.Cut(rest, "\n")
	for _, sep := range separators + " " {
		names, sign := cellNames(line, sep)
		again, same := cellNames(second, sep)
		if header := strings.Join(names, string(sep)); len(names) > 1 && sign == same && slices.Equal(names, again) && len(header) <= longest {
			return fmt.Sprintf(`sed -E -e 's/(^|[%[1]c]) *[A-Za-z_][A-Za-z0-9_]* *%[2]s */\1/g' -e '1i %[3]s'`, sep, sign, header)
		}
	}
	return ""
}

// cellNames returns the names before the values of a line, and the sign behind each of them; nil where a cell has none.
func cellNames(line string, sep rune) (names []string, sign string) {
	for _, cell := range strings.Split(strings.TrimSpace(line), string(sep)) {
		parts := namedCell.FindStringSubmatch(cell)
		if parts == nil || sign != "" && sign != parts[2] {
			return nil, ""
		}
		names, sign = append(names, parts[1]), parts[2]
	}
	return names, sign
}

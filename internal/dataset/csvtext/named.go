package csvtext

import (
	"fmt"
	"regexp"
	"strings"
)

// namedCell is a value with its name before it.
var namedCell = regexp.MustCompile(`^ *([A-Za-z_][A-Za-z0-9_]*) *([=:]) *[^ ].*$`)

// namedCells returns the command that makes a table of lines in which each value has its name before it, as x=1,y=2
// or x:1 y:2, by the first two of them; "" for other lines.
func namedCells(line, rest string) string {
	const longest = 160
	second, _, _ := strings.Cut(rest, "\n")
	for _, sep := range strings.Split(separators+" ", "") {
		header, sign := cellNames(line, sep)
		if again, same := cellNames(second, sep); again == header && same == sign && strings.Contains(header, sep) && len(header) <= longest {
			return fmt.Sprintf(`sed -E -e 's/(^|[%[1]s]) *[A-Za-z_][A-Za-z0-9_]* *%[2]s */\1/g' -e '1i %[3]s'`, sep, sign, header)
		}
	}
	return ""
}

// cellNames returns the names before the values of a line, and the sign behind each of them; "" where a cell has none.
func cellNames(line, sep string) (header, sign string) {
	for i, cell := range strings.Split(strings.TrimSpace(line), sep) {
		parts := namedCell.FindStringSubmatch(cell)
		if parts == nil || i > 0 && sign != parts[2] {
			return "", ""
		}
		if sign = parts[2]; i > 0 {
			header += sep
		}
		header += parts[1]
	}
	return header, sign
}

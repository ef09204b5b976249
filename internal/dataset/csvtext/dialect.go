package csvtext

import (
	"slices"
	"strings"
)

// separatorLine returns the separator that a first line sep=; names, as Excel writes it, and
// the text after this line; 0 without one.
func separatorLine(start string) (sep rune, rest string) {
	line, rest, _ := strings.Cut(start, "\n")
	word, ok := strings.CutPrefix(strings.Trim(line, "\"\r"), "sep=")
	if !ok || len(word) != 1 || !strings.Contains(separators+" ", word) {
		return 0, start
	}
	return rune(word[0]), rest
}

// bySpaces returns the fraction of numbers among cells that spaces separate; 0 unless all of
// the first lines have as many cells, at least two, the header without names of rows.
func bySpaces(start string) float64 {
	start = packed(start)
	counts, _ := cellCounts(start, ' ')
	if namesRows(start, counts) {
		counts = counts[1:]
	}
	if len(counts) == 0 || counts[0] < 2 || slices.Min(counts) < slices.Max(counts) {
		return 0
	}
	n, cells := numbers(strings.Fields(start[:min(len(start), 4096)]))
	return float64(n) / float64(max(cells, 1))
}

// namesRows reports whether the lines begin with names of rows as R writes them: in quotation marks, and
// without a name of their own in the header. counts are the cells of the lines.
func namesRows(start string, counts []int) bool {
	_, rest, _ := strings.Cut(start, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimRight(line, " \r")
	return strings.HasPrefix(line, `"`) && !strings.Contains(separators, line[len(line)-1:]) && len(counts) > 1 && counts[0]+1 == slices.Min(counts[1:]) && counts[0]+1 == slices.Max(counts[1:])
}

// separators are the detected separators, the least likely part of a cell first:
// a comma is a decimal sign in a file separated by semicolons.
const separators = "\t;|,"

// findSeparator returns the separator that gives most lines as many cells as the
// first one; spaces if they alone give all lines as many.
func findSeparator(start string) rune {
	best, score := ',', 0.0
	for _, sep := range separators {
		counts, _ := cellCounts(start, byte(sep))
		if len(counts) == 0 || counts[0] < 2 {
			continue
		}
		same := 0
		for _, n := range counts {
			if n == counts[0] {
				same++
			}
		}
		if s := float64(same) / float64(len(counts)); s > score {
			best, score = sep, s
		}
	}
	if numbers := bySpaces(start); score == 0 && numbers > 0 || score < 1 && numbers > 0.5 {
		return ' '
	}
	return best
}

// tableLine returns the number of the line in which a table begins: it has the most cells, and with separators of
// empty ones at its end as many as the next one. 0 without one. Where the first line has one cell the separator
// may be another one than sep.
func tableLine(start string, sep rune) int {
	const enough = 100
	lines := strings.SplitN(start, "\n", enough+1)
	lines = lines[:min(len(lines), enough)] // the last one may have all that follow
	for i, line := range lines {
		lines[i] = strings.TrimRight(unquoted(line), " \r")
	}
	for _, other := range strings.Split(separators, "") {
		if other != string(sep) && filled(lines[0], string(sep)) > 0 {
			continue
		}
		most := 0
		for _, line := range lines {
			most = max(most, filled(line, other))
		}
		for i := 0; i+1 < len(lines) && most > 0; i++ {
			if filled(lines[i], other) == most && strings.Count(lines[i+1], other) == strings.Count(lines[i], other) {
				return i + 1
			}
		}
	}
	return 0
}

// filled returns the number of separators of a line, but those at its end.
func filled(line, sep string) int { return strings.Count(strings.TrimRight(line, sep), sep) }

// unquoted returns a line without its quoted texts, which may have separators.
func unquoted(line string) string {
	parts := strings.Split(line, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = ""
	}
	return strings.Join(parts, `"`)
}

// cellCounts returns the numbers of cells of the first lines of a text, and
// whether lines that begin with # are comments: the first is an annotation of InfluxDB, or at
// least one of them has another number of cells than the first line without #.
func cellCounts(text string, sep byte) (counts []int, comments bool) {
	const enough = 100
	var hashes []int
	cells, begun, quoted, hash := 1, false, false, false
	empty := true // nothing in the line so far
	for i := 0; i < len(text) && len(counts) < enough; i++ {
		switch c := text[i]; {
		case quoted && c == '"':
			quoted = i+1 < len(text) && text[i+1] == '"'
			if quoted {
				i++
			}
		case quoted:
		case c == '\n':
			switch {
			case hash:
				hashes = append(hashes, cells)
			case !empty:
				counts = append(counts, cells)
			}
			cells, begun, hash, empty = 1, false, false, true
		case c == sep:
			cells, begun, empty = cells+1, false, false
		case c == '"' && !begun && !hash:
			quoted, begun, empty = true, true, false
		case c == '#' && empty:
			hash, begun, empty = true, true, false
		case c != ' ' && c != '\r':
			begun, empty = true, false
		}
	}
	if !empty && len(counts) == 0 && !quoted { // one line without an end
		counts = append(counts, cells)
	}
	comments = strings.HasPrefix(text, "#group,") || strings.HasPrefix(text, "#datatype,") || strings.HasPrefix(text, "#default,")
	for _, n := range hashes {
		comments = comments || len(counts) > 0 && (n != counts[0] || n == 1)
	}
	return counts, comments
}

// hasHeader reports whether the first line names the columns: it has no number, or a word where
// the second one has a number.
func hasHeader(start string, sep rune, comments bool) bool {
	lines := newCSV(strings.NewReader(start), sep, comments)
	first, err := lines.Read()
	if err != nil {
		return true // the error is reported when the line is read
	}
	first = slices.Clone(first)
	inFirst, cells := numbers(first)
	if inFirst == 0 {
		return true
	}
	second, err := lines.Read()
	if err != nil {
		return inFirst < cells-1
	}
	for i := range min(len(first), len(second)) {
		word, _ := numbers(first[i : i+1])
		number, _ := numbers(second[i : i+1])
		if word == 0 && number == 1 && !Missing(strings.TrimSpace(first[i])) {
			return true
		}
	}
	return false
}

// SeparatorWord returns a separator for an error message.
func SeparatorWord(sep rune) string {
	switch sep {
	case '\t':
		return "tabs"
	case ' ':
		return "spaces"
	}
	return string(sep)
}

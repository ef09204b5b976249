package terminal

import (
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Table writes lines of cells, each ended by a tab, as a table with its columns aligned at the
// right. On a terminal that is narrower the columns become lines, if these fit.
func Table(w io.Writer, lines string) error {
	table := aligned(lines, tabwriter.AlignRight)
	if width := columns(w); width > 0 && widest(table) > width {
		if turned := aligned(turn(lines), 0); widest(turned) <= width {
			table = turned
		}
	}
	_, err := io.WriteString(Writer{To: w}, table)
	return err
}

// aligned returns lines of cells with aligned columns.
func aligned(lines string, flags uint) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', flags)
	io.WriteString(t, lines) // into memory, without an error
	t.Flush()
	return b.String()
}

// turn returns the columns of lines of cells as lines.
func turn(lines string) string {
	var turned []string
	for line := range strings.Lines(lines) {
		for i, cell := range strings.Split(strings.TrimSuffix(line, "\t\n"), "\t") {
			if i == len(turned) {
				turned = append(turned, "")
			}
			turned[i] += cell + "\t"
		}
	}
	return strings.Join(turned, "\n") + "\n"
}

// widest returns the number of characters of the longest line.
func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, utf8.RuneCountInString(strings.TrimRight(line, " \n")))
	}
	return n
}

package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// sampled is the size of the beginning of a file from which its format is
// detected.
const sampled = 256 << 10

// openText returns the text of a data file, as UTF-8 with \n at the end of each
// line, and its beginning: r may be packed with gzip, be UTF-16 or UTF-8 with a
// byte-order mark, and end its lines with \r alone.
func openText(r io.Reader, path string) (text *bufio.Reader, start string, err error) {
	begun := func() {}
	if l, ok := r.(*live); ok {
		begun = l.begun
	}
	defer begun()
	buf := bufio.NewReaderSize(r, sampled)
	if begin, _ := buf.Peek(20); noText(string(begin)) != "" {
		return nil, "", fmt.Errorf("%s: %s", path, noText(string(begin)))
	}
	if magic, _ := buf.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		begun() // a packed text has no lines
		z, err := gzip.NewReader(buf)
		if err != nil {
			return nil, "", fmt.Errorf("%s: gzip: %w", path, err)
		}
		buf = bufio.NewReaderSize(z, sampled)
	}
	mark, _ := buf.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte("\xef\xbb\xbf")):
		buf.Discard(3)
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		begun()
		wide := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()
		buf = bufio.NewReaderSize(transform.NewReader(buf, wide), sampled)
	}
	head, _ := buf.Peek(sampled) // an error here occurs again when the text is read
	if bytes.ContainsRune(head, '\r') && !bytes.ContainsRune(head, '\n') {
		buf = bufio.NewReaderSize(&carriageReturns{buf}, sampled)
		head, _ = buf.Peek(sampled)
	}
	if what := noTable(string(head)); what != "" {
		return nil, "", fmt.Errorf("%s: %s", path, what)
	}
	return buf, string(head), nil
}

// noText describes a file that is neither text nor packed by gzip, and the remedy; "" for text.
func noText(begin string) string {
	for _, of := range [...]struct{ magic, name string }{
		{"PAR1\x15", "Parquet"}, {"ARROW1\x00", "Arrow"}, {"\x89HDF", "HDF5"}, {"\x89PNG", "a picture"}, {"%PDF-", "PDF"}, {"\x93NUMPY", "NumPy"}, {"SQLite format", "SQLite"}, {"MATLAB ", "MATLAB"}, {"\x80\x04\x95", "a pickle of Python"}, {"\xd0\xcf\x11\xe0", "a spreadsheet"},
	} {
		if strings.HasPrefix(begin, of.magic) {
			return of.name + ": save it as CSV with a header line"
		}
	}
	by, program := "", ""
	switch {
	case len(begin) >= 20 && begin[16:20] == "\xed\xda\x0c\xed": // bbolt's first page
		return "a state file: edge inspect shows what is in it"
	case strings.HasPrefix(begin, "PK\x03\x04"):
		return "a zip archive: unpack it, unzip -p FILE >FILE.csv; of a spreadsheet save a sheet as CSV"
	case strings.HasPrefix(begin, "\xfd7zXZ\x00"):
		by, program = "xz", "xz"
	case strings.HasPrefix(begin, "\x28\xb5\x2f\xfd"):
		by, program = "zstd", "zstd"
	case strings.HasPrefix(begin, "BZh") && strings.Contains(begin, "1AY&SY"):
		by, program = "bzip2", "bzip2"
	default:
		return ""
	}
	return fmt.Sprintf("packed by %s: unpack it, %s -dc FILE >FILE.csv", by, program)
}

// separatorLine returns the separator that a first line sep=; names, as Excel writes it, and
// the text after this line; 0 without one.
func separatorLine(start string) (sep rune, rest string) {
	line, rest, _ := strings.Cut(start, "\n")
	word, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r"), "sep=")
	if !ok || len(word) != 1 || !strings.Contains(separators+" ", word) {
		return 0, start
	}
	return rune(word[0]), rest
}

// carriageReturns is a reader that replaces \r by \n.
type carriageReturns struct{ r io.Reader }

func (c *carriageReturns) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// blanks is a reader that replaces each run of spaces and tabs between two cells by one space, and
// drops those at the ends of a line. Cells in double quotes stay.
type blanks struct {
	r                  *bufio.Reader
	begun, gap, quoted bool // a cell in this line; blanks after it; within quotes
}

func (b *blanks) Read(p []byte) (n int, err error) {
	for n < len(p) && (n == 0 || b.r.Buffered() > 0) {
		c, err := b.r.ReadByte()
		switch {
		case err != nil:
			return n, err
		case !b.quoted && (c == ' ' || c == '\t'):
			b.gap = b.begun
			continue
		case b.gap && c != '\n' && c != '\r':
			c, b.gap = ' ', false
			_ = b.r.UnreadByte() // it follows a ReadByte
		default:
			b.quoted = b.quoted != (c == '"')
			b.begun, b.gap = b.quoted || c != '\n', false
		}
		p[n] = c
		n++
	}
	return n, nil
}

// packed returns a text in which single spaces separate the cells.
func packed(text string) string {
	all, _ := io.ReadAll(&blanks{r: bufio.NewReader(strings.NewReader(text))})
	return string(all)
}

// bySpaces returns the fraction of numbers among cells that spaces separate; 0 unless all of
// the first lines have as many cells, at least two.
func bySpaces(start string) float64 {
	counts, _ := cellCounts(packed(start), ' ')
	if len(counts) == 0 || counts[0] < 2 || slices.Min(counts) < slices.Max(counts) {
		return 0
	}
	n, cells := numbers(strings.Fields(start[:min(len(start), 4096)]))
	return float64(n) / float64(max(cells, 1))
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

// tableLine returns the number of the line in which a table begins below other lines: with the
// next one it has as many cells, and the first line has one. 0 without one.
func tableLine(start string) int {
	lines := strings.SplitN(start, "\n", 100)
	for i := 1; i+1 < len(lines) && !strings.ContainsAny(lines[0], separators); i++ {
		for _, sep := range separators {
			if n := strings.Count(unquoted(lines[i]), string(sep)); n > 0 && strings.Count(unquoted(lines[i+1]), string(sep)) == n {
				return i + 1
			}
		}
	}
	return 0
}

// unquoted returns a line without what is in quotes, which may have separators.
func unquoted(line string) string {
	parts := strings.Split(line, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = ""
	}
	return strings.Join(parts, "")
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

// newCSV returns a reader of the cells of text.
func newCSV(text io.Reader, sep rune, comments bool) *csv.Reader {
	c := csv.NewReader(text)
	c.Comma = sep
	c.ReuseRecord = true
	c.FieldsPerRecord = -1
	c.TrimLeadingSpace = sep != '\t' && sep != ' ' // where trimming would drop empty cells
	if comments && sep != '#' {
		c.Comment = '#'
	}
	return c
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
		if word == 0 && number == 1 && !missing(strings.TrimSpace(first[i])) {
			return true
		}
	}
	return false
}

// numbers returns the number of cells that are numbers, and of those that are not
// missing.
func numbers(record []string) (n, cells int) {
	for _, cell := range record {
		cell = strings.TrimSpace(cell)
		if missing(cell) {
			continue
		}
		cells++
		if _, err := parseNumber(cell); err == nil {
			n++
		}
	}
	return n, cells
}

// missing reports whether a cell stands for a missing value.
func missing(cell string) bool {
	if cell == "" {
		return true
	}
	if len(cell) > len("unavailable") {
		return false
	}
	switch strings.ToLower(cell) {
	case "na", "n/a", "#n/a", "nan", "null", "none", "-", "?", "unknown", "unavailable":
		return true
	}
	return false
}

// unlabelled reports whether a cell of the label's column stands for no label.
// Words that may be classes, such as none and unknown, are labels.
func unlabelled(cell string) bool {
	switch cell {
	case "", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "?":
		return true
	}
	return false
}

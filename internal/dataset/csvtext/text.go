package csvtext

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
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
	begin, _ := buf.Peek(20)
	if bytes.HasPrefix(begin, []byte("PK")) {
		begin, _ = buf.Peek(64) // with the name of the archive's first member
	}
	if noText(string(begin)) != "" {
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

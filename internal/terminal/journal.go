package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// inJournal reports whether w is the standard error of a service, which systemd's journal reads.
func inJournal(w io.Writer) bool {
	_, inode, _ := strings.Cut(os.Getenv("JOURNAL_STREAM"), ":")
	stream, err := os.Readlink("/proc/self/fd/2")
	return err == nil && w == os.Stderr && stream == "socket:["+inode+"]"
}

// PrintError writes the text of an error, in systemd's journal with the priority of errors before each line.
func PrintError(w io.Writer, text string) {
	priority := ""
	if inJournal(w) {
		priority = "<3>"
	}
	fmt.Fprintln(Writer{w}, priority+strings.ReplaceAll(text, "\n", "\n"+priority))
}

// journalWriter writes the lines of a log, one in each call, with their priorities before them.
type journalWriter struct{ to io.Writer }

// Write implements io.Writer. Behind the time, the level begins with one of I, D, W and E.
func (j *journalWriter) Write(line []byte) (int, error) {
	_, level, _ := bytes.Cut(line, []byte("level"))
	level = bytes.TrimLeft(level, `=":`)
	at := strings.Index("IDWE", string(level[:min(1, len(level))]))
	return j.to.Write(append([]byte{'<', "6743"[max(at, 0)], '>'}, line...))
}

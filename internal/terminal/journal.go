package terminal

import (
	"bytes"
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

// ErrorPrefix returns what an error has before it on w: its priority for systemd's journal, "" elsewhere.
func ErrorPrefix(w io.Writer) string {
	if inJournal(w) {
		return "<3>"
	}
	return ""
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

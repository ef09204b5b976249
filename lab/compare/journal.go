package compare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Journal is a file of finished runs, one JSON object a line, with which an interrupted
// comparison continues. The zero Journal keeps them in memory alone.
type Journal struct {
	runs []Run
	file *os.File
}

const (
	maxLine = 1 << 16        // longest line of a journal, in bytes
	opening = `{"dataset":"` // of each line
)

// OpenJournal reads the runs of a file, made if it is missing, and adds to it from then on.
// A last line without its end, the beginning of a run that an interruption left, is cut off. For "" it returns the
// zero Journal.
func OpenJournal(path string) (*Journal, error) {
	if path == "" {
		return new(Journal), nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	j, err := read(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

func read(f *os.File, path string) (*Journal, error) {
	j := &Journal{file: f}
	var whole int64
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	lines.Split(func(data []byte, _ bool) (int, []byte, error) {
		if at := bytes.IndexByte(data, '\n'); at >= 0 {
			return at + 1, data[:at], nil
		}
		return 0, nil, nil
	})
	for n := 1; lines.Scan(); n++ {
		var r Run
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.Method == "" {
			return nil, fmt.Errorf("%s:%d: not a run of edge-lab compare", path, n)
		}
		j.runs = append(j.runs, r)
		whole += int64(len(lines.Bytes())) + 1
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	begun := make([]byte, len(opening)) // of a last line without its end
	if n, _ := f.ReadAt(begun, whole); !strings.HasPrefix(opening, string(begun[:n])) {
		return nil, fmt.Errorf("%s: its last line is not a run of edge-lab compare", path)
	}
	if err := f.Truncate(whole); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	_, err := f.Seek(whole, 0)
	return j, err
}

// Find returns the run of that method, split and configuration, or nil.
func (j *Journal) Find(r *Run) *Run {
	if at := slices.IndexFunc(j.runs, func(o Run) bool { return r.same(&o) }); at >= 0 {
		return &j.runs[at]
	}
	return nil
}

func (j *Journal) add(r *Run) error {
	j.runs = append(j.runs, *r)
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

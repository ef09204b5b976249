package persist

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"edge/online"
)

// TestVersions opens the state files of all versions, and converts those of earlier ones.
func TestVersions(t *testing.T) {
	for _, name := range []string{"v1.state", "v2.state", "v3.state", "v4.state", "v5.state.gz", "v6.state.gz"} {
		t.Run(name, func(t *testing.T) { testVersion(t, name) })
	}
}

func testVersion(t *testing.T, name string) {
	path := tempPath(t)
	file := readFile(t, filepath.Join("testdata", name))
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if file, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, path, file)
	conversion := func() string {
		s, err := OpenReadOnly(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer closeStore(t, s)
		return s.Conversion()
	}
	want := "" // of a file of the present format
	if version := name[1:2]; version != fmt.Sprint(formatVersion) {
		want = fmt.Sprintf("from format %s to %d, and keeps that of now as %s.format-%[1]s", version, formatVersion, path)
	}
	if got := conversion(); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
		t.Errorf("Conversion() = %q, want %q", got, want)
	}
	s := newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Fatalf("Open repaired the fixture: %v", s.Recovery().Problems)
	}
	// The entries that testdata/make_state.go wrote.
	tr := &truth{name: "bearing"}
	for n := uint64(1); n <= 12; n++ {
		r := sample("bearing", n)
		r.Seq = n
		tr.records = append(tr.records, r)
	}
	for n := uint64(1); n <= 3; n++ {
		tr.pending = append(tr.pending, pendingSample("bearing", n))
	}
	tr.seq, tr.state = 9, []byte("state after record 9")
	tr.check(t, s)
	if r, err := s.Load("empty", "another shape"); err != nil || r.State != nil || len(r.Records) > 0 {
		t.Errorf("Load(empty) = %+v, %v", r, err)
	}
	closeStore(t, s)
	if got := conversion(); got != "" {
		t.Errorf("after the conversion: %q", got)
	}
	kept := path + ".format-" + name[1:2]
	if before, err := os.ReadFile(kept); sealed(file) != errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(before, file) {
		t.Errorf("%s is not the file from before its conversion, which the present version does not need: %v", kept, err)
	}
	if !sealed(readFile(t, path)) {
		t.Error("the file has only the old version number, so that an older edge would misread it")
	}
	tr.check(t, newStore(t, path, Options{}))
}

// TestVersionOfEntries fails for a new field, flag or kind of entry. An older program of the same
// format version takes it for damage, and its repair leaves the entry out, as builds of version 5
// did with files of later ones: raise formatVersion and add a file to testdata first.
func TestVersionOfEntries(t *testing.T) {
	var kinds online.Kind
	for k := online.Observe; checkEvent(&online.Event{Kind: k}) == nil; k++ {
		kinds = k
	}
	type entries struct {
		version    uint64
		kinds      online.Kind
		tag, flags byte
		seal       int
	}
	if got, want := (entries{formatVersion, kinds, lastTag, metaAll, sealVersion}), (entries{6, 9, 15, 31, 1}); got != want {
		t.Errorf("the format has %+v, want %+v", got, want)
	}
}

// sealed reports whether a file has the present version.
func sealed(file []byte) bool { return bytes.Contains(file, sealFormat(formatVersion)) }

// TestNoRoomForFormer converts a file whose copy from before has no place: it is more
// important that the daemon starts.
func TestNoRoomForFormer(t *testing.T) {
	path := tempPath(t)
	writeFile(t, path, readFile(t, filepath.Join("testdata", "v4.state")))
	if err := os.Mkdir(path+".format-4", 0o700); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	s := newStore(t, path, Options{Log: slog.New(slog.NewTextHandler(&text, nil))})
	if r, err := s.Load("bearing", testShape); err != nil || len(r.Pending) != 3 {
		t.Errorf("Load(bearing) = %+v, %v", r, err)
	}
	if !strings.Contains(text.String(), "there is no copy of it for an older edge") {
		t.Errorf("the log does not say that the copy is missing:\n%s", &text)
	}
	if left, _ := filepath.Glob(path + "*" + temporary); len(left) > 0 {
		t.Errorf("the copy left %v", left)
	}
}

// TestVersion1ReadOnly inspects a file of version 1 without changing it.
func TestVersion1ReadOnly(t *testing.T) {
	path := tempPath(t)
	before := readFile(t, filepath.Join("testdata", "v1.state"))
	writeFile(t, path, before)
	s, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.Load("bearing", testShape); err != nil || len(r.Pending) != 3 {
		t.Errorf("Load(bearing) = %+v, %v", r, err)
	}
	closeStore(t, s)
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("reading changed the file")
	}
}

// TestNewerVersion opens a file of a later version: the error names the version, and
// the file does not change.
func TestNewerVersion(t *testing.T) {
	path := tempPath(t)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket([]byte("something new")); err != nil {
			return err
		}
		return b.Put([]byte(keyFormat), sealFormat(formatVersion+1))
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, path)
	for name, open := range map[string]func() error{
		"Open":         func() error { _, err := Open(path, Options{}); return err },
		"OpenReadOnly": func() error { _, err := OpenReadOnly(path, Options{}); return err },
		"Verify":       func() error { _, err := Verify(path, nil); return err },
	} {
		err := open()
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), fmt.Sprintf("format version %d", formatVersion+1)) {
			t.Errorf("%s: %v, want %v that names the version", name, err, ErrForeign)
		}
	}
	if string(before) != string(readFile(t, path)) {
		t.Error("Open changed a file of a newer version")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("new files beside it: %v", entries)
	}
}

// foreignFiles returns files of other programs.
func foreignFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{
		"text":       []byte(strings.Repeat("rms,kurtosis,label\n0.1,3.0,ok\n", 1000)),
		"short text": []byte("rms,label\n"),
	}
	for name, size := range map[string]int{"bbolt": 4096, "bbolt of large pages": 16384} {
		path := tempPath(t)
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: size})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("accounts"))
			if err != nil {
				return err
			}
			return b.Put([]byte("alice"), []byte("100"))
		}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		files[name] = readFile(t, path)
	}
	return files
}

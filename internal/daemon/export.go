package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"edge/persist"
)

const (
	maxExports = 32 // state files beside the store
	newestName = "newest"
	olderName  = "older"

	exportSuffix     = ".db"
	unfinishedExport = ".part" // suffix of an export that is being written
)

var exportName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// exports are the states written by the export command: state files of one model
// each, in a directory beside the store, readable by every command of this
// program. The store's newest and older checkpoint are exports as well.
type exports struct {
	store *persist.Store
	dir   string
}

// path returns the file of an export of a model. It refuses a name that does not fit into the name of
// a file, or that stands for a checkpoint of the store.
func (e exports) path(model, name string) (string, error) {
	if !exportName.MatchString(name) || name == newestName || name == olderName {
		return "", fmt.Errorf("export %.80q: want a name of 1 to 64 of a-z 0-9 _ -, and neither %s nor %s", name, newestName, olderName)
	}
	return filepath.Join(e.dir, model+"."+name+exportSuffix), nil
}

// unusedName returns a name that no export of a model has: the seconds since 1970, or later ones. A
// machine without a battery clock has the same time after each power cut.
func (e exports) unusedName(model string) string {
	for at := time.Now().Unix(); ; at++ {
		name := strconv.FormatInt(at, 10)
		if path, err := e.path(model, name); err != nil || !exists(path) {
			return name
		}
	}
}

// exists reports whether there is a file at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// files returns the paths of the files beside the store whose names match a pattern.
func (e exports) files(pattern string) (paths []string) {
	entries, _ := os.ReadDir(e.dir) // without the folder there are none
	for _, entry := range entries {
		if match, _ := filepath.Match(pattern, entry.Name()); match {
			paths = append(paths, filepath.Join(e.dir, entry.Name()))
		}
	}
	return paths
}

// write writes an export, over one of the same name, and returns the fields of
// the response. name "" is replaced by an unused one.
func (e exports) write(model, name, shape string, state []byte) (about map[string]any, err error) {
	if name == "" {
		name = e.unusedName(model)
	}
	path, err := e.path(model, name)
	if err != nil {
		return nil, err
	}
	if err := persist.MakeFolder(e.dir); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	e.clean()
	if n := len(e.files("*" + exportSuffix)); n >= maxExports && !exists(path) {
		return nil, fmt.Errorf("export: %s holds %d files already: remove some", e.dir, n)
	}
	part := path + unfinishedExport
	if err := writeState(part, model, shape, state); err != nil {
		e.clean()
		return nil, err
	}
	if err := persist.Rename(part, path); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	sum := sha256.Sum256(state)
	return map[string]any{"name": name, "file": path, "bytes": len(state), "digest": hex.EncodeToString(sum[:])}, nil
}

// clean removes unfinished exports of a process that has ended.
func (e exports) clean() {
	for _, part := range e.files("*" + unfinishedExport + "*") { // with persist's temporary files
		_ = persist.RemoveUnlocked(part)
	}
}

// writeState writes a state file with the state of one model.
func writeState(path, model, shape string, state []byte) (err error) {
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := store.Load(model, shape); err != nil {
		return err
	}
	return store.Checkpoint(model, 0, state)
}

// read returns an exported state, or one of the store's checkpoints.
func (e exports) read(model, name string) ([]byte, error) {
	if name == "" || name == newestName || name == olderName {
		state, _, err := e.store.State(model, name == olderName)
		return state, err
	}
	path, err := e.path(model, name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no export %q of model %s: %w", name, model, err)
	}
	store, err := persist.OpenReadOnly(path, persist.Options{})
	if err != nil {
		return nil, err
	}
	state, _, err := store.State(model, false)
	return state, errors.Join(err, store.Close())
}

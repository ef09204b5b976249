package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"edge/internal/exit"
	"edge/stream/field"
)

// Load reads and validates a configuration: defaults, then the file, then
// environment variables. Its errors have the exit code exit.Config.
func Load(path string) (*Config, error) {
	data, err := read(path)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "; `edge config sample` prints one to begin with"
		}
		return nil, exit.With(exit.Config, fmt.Errorf("configuration: %w%s", err, hint))
	}
	c, err := Parse(path, data, os.Environ())
	return c, exit.With(exit.Config, firstErrors(err))
}

// mostErrors bounds the errors that Load reports: a file that is none of ours has one for each key.
const mostErrors = 50

// firstErrors returns err with the first of the errors that were joined into it.
func firstErrors(err error) error {
	all := flatten(err)
	if len(all) <= mostErrors {
		return err
	}
	return field.Join(append(all[:mostErrors], fmt.Errorf("and %d more errors", len(all)-mostErrors))...)
}

// maxFile bounds the size of a configuration, in bytes.
const maxFile = 16 << 20

// read returns the content of a configuration. A data file or a state, whose names were exchanged with
// that of a configuration, is not read into memory.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than 16 MiB: is this a configuration?", path)
	}
	return data, err
}

// Parse returns the configuration of a file's content and an environment of the
// form NAME=value. Errors begin with path, line and column, or with the variable.
func Parse(path string, data []byte, environ []string) (*Config, error) {
	c := Default()
	where, err := strictYAML(path, data, &c)
	if err != nil {
		return nil, err
	}
	from, err := c.ApplyEnviron(environ)
	if err != nil {
		return nil, err
	}
	if c.Node == "" {
		c.Node = Default().Node
	}
	var errs []error
	for _, err := range flatten(c.Validate()) {
		key, _, _ := strings.Cut(strings.Replace(err.Error(), ":", " ", 1), " ")
		at := path
		if p, ok := nearestPosition(where, key); ok {
			at = fmt.Sprintf("%s:%d:%d", path, p.line, p.column)
		}
		if name, ok := from[key]; ok {
			at = name
		}
		errs = append(errs, fmt.Errorf("%s: %w", at, err))
	}
	return &c, field.Join(errs...)
}

// nearestPosition returns the position of a key, or else of the innermost mapping
// around it.
func nearestPosition(where map[string]position, key string) (position, bool) {
	for key != "" {
		if p, ok := where[key]; ok {
			return p, true
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return position{}, false
}

// flatten returns the errors that were joined into err.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

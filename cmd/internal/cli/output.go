package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"edge/internal/exit"
	"edge/persist"
)

// Output is a file that a command writes. A regular file has its name once it is complete:
// until then, and after an error, the file of that name is as it was. A device or a pipe
// is written to at once.
type Output struct {
	File       *os.File
	flag, path string // path: "" for a device or a pipe
}

// CreateOutput opens the file that a flag names. It refuses one of inputs, which the
// command reads; "" stands for none.
func CreateOutput(flag, path string, inputs ...string) (*Output, error) {
	if err := NoInput(flag, path, inputs...); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		info, err := file.Stat()
		if err == nil && !info.Mode().IsRegular() {
			return &Output{file, flag, ""}, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	path = persist.ResolveLinks(path) // a rename would replace a link
	if file, err = persist.CreateTemp(path); err != nil {
		return nil, fmt.Errorf("%s: %w%s", flag, err, persist.Remedy(err))
	}
	return &Output{file, flag, path}, nil
}

// Write is io.Writer. Its errors name the file that the flag names.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	return n, persist.Named(err, o.path)
}

// Finish gives the file its name if err, that of the command, is nil, and else removes
// it. It returns err or its own error.
func (o *Output) Finish(err error) error {
	if err == nil && o.path != "" {
		err = o.rename()
	}
	if err != nil && o.path != "" {
		_ = os.Remove(o.File.Name())
	}
	if closed := o.File.Close(); err == nil && closed != nil {
		err = fmt.Errorf("%s: %w", o.flag, persist.Named(closed, o.path))
	}
	return err
}

// rename gives a complete file its name, and the mode of the file that had it, or that of
// any new file.
func (o *Output) rename() error {
	err := o.File.Sync()
	if err == nil {
		err = o.takeMode()
	}
	if err == nil {
		err = persist.Rename(o.File.Name(), o.path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.flag, persist.Named(err, o.path))
	}
	return nil
}

// takeMode gives a complete file the mode of the file of its name. If there is none, it
// creates that file empty, since only a new file shows the mode of new files.
func (o *Output) takeMode() error {
	file, err := os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		err = o.File.Chmod(info.Mode().Perm())
	}
	return errors.Join(err, file.Close())
}

// NoInput returns an error if the path of a flag is a regular file that the command reads
// as well.
func NoInput(flag, path string, inputs ...string) error {
	out, err := os.Stat(path)
	if err != nil || !out.Mode().IsRegular() {
		return nil
	}
	for _, input := range inputs {
		if in, err := os.Stat(input); err == nil && os.SameFile(in, out) {
			return exit.With(exit.Usage, fmt.Errorf("%s %s: this file is read as well: give another name", flag, path))
		}
	}
	return nil
}

package fleetctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/online/fleet"
)

// Stdio is the path of standard input and standard output.
const Stdio = "-"

// Export writes the contribution of a member that the broker keeps into a new file, which
// the user alone may read, or to out for the path Stdio.
func (f *Fleet) Export(ctx context.Context, member, path string, out io.Writer) (*Contribution, error) {
	kept, err := f.Find(ctx, member)
	switch {
	case err != nil:
		return nil, err
	case kept.Err != nil:
		return nil, fmt.Errorf("what the broker keeps on %s: %w", f.topics().Contribution(member), kept.Err)
	}
	if path == Stdio {
		_, err := out.Write(kept.Data)
		return kept, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s exists: give another name, or remove it", path))
	} else if err != nil {
		return nil, err
	}
	_, err = file.Write(kept.Data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return kept, nil
}

// Import lets the broker keep the contribution of a file, or of in for the path Stdio. It
// has to be of another node than the user's own one, which is not online at this broker,
// and of the features of its model (fleet.Features).
func (f *Fleet) Import(ctx context.Context, node string, features uint64, path string, in io.Reader) (*fleet.Contribution, error) {
	var data []byte
	var err error
	if path == Stdio {
		path = "standard input"
		data, err = readAll(in, path)
	} else {
		data, err = readFile(path)
	}
	if err != nil {
		return nil, err
	}
	c, err := fleet.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no file of edge fleet export: %w", path, explain(data, err))
	}
	if c.Member == node {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s is of this node, %s, itself: import it at another one", path, node))
	}
	if c.Features != features {
		return nil, fmt.Errorf("%s is of a model with other features than that of %s: names, order and signals have to be the same", path, node)
	}
	online, err := f.Online(ctx, c.Member)
	if err != nil {
		return nil, err
	}
	if online {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s is of %s, and a node of this name is online at this broker: it would take the file for another process of its name, and publish nothing more; nodes of all sites need names of their own", path, c.Member))
	}
	return c, f.publish(ctx, c, data)
}

// opening is the first text of the contributions of all formats.
const opening = "EFC"

// explain returns an error of fleet.Decode in terms of the user.
func explain(data []byte, err error) error {
	switch {
	case err == nil || len(data) == 0:
		return err
	case bytes.HasPrefix(data, []byte(opening)):
		return fmt.Errorf("%w; it is damaged or cut off, or a later version of edge wrote it", err)
	}
	return fmt.Errorf("it does not begin with %s: %w", opening, fleet.ErrContribution)
}

// readFile reads a file that is not larger than a contribution may be.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // to open a pipe would wait for its other end
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: want a file of edge fleet export", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: want a file of edge fleet export", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, path)
}

// readAll reads a contribution to its end.
func readAll(from io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, fleet.MaxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) == 0:
		return nil, fmt.Errorf("%s is empty: want a file of edge fleet export", name)
	case len(data) > fleet.MaxBytes:
		return nil, fmt.Errorf("%s is too large: a contribution has at most %s", name, terminal.Bytes(fleet.MaxBytes))
	}
	return data, nil
}

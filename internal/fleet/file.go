package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"edge/internal/exit"
	core "edge/online/fleet"
)

// Export writes the contribution of a member that the broker keeps into a new file, which
// the user alone may read.
func (k *Keeper) Export(ctx context.Context, member, path string) (*Contribution, error) {
	kept, err := k.one(ctx, member)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		return nil, fmt.Errorf("the broker keeps no contribution of %s on %s: a member publishes its first one after its warm-up", member, k.topics().Contribution(member))
	case kept.Err != nil:
		return nil, kept.Err
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

// Import lets the broker keep the contribution of a file. node is the user's own node.
func (k *Keeper) Import(ctx context.Context, node, path string) (*core.Contribution, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c, err := core.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want a file of edge fleet export", path, err)
	}
	if c.Member == node {
		return nil, exit.With(exit.Usage, fmt.Errorf("%s is of this node, %s, itself: import it at another one", path, node))
	}
	own, err := k.one(ctx, node)
	if err != nil {
		return nil, err
	}
	if own != nil && own.Err == nil && own.Features != c.Features {
		return nil, fmt.Errorf("%s is of a model with other features than that of %s: names, order and signals have to be the same", path, node)
	}
	return c, k.Publish(ctx, c, data)
}

// readFile reads a file that is not larger than a contribution may be.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > core.MaxBytes || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", path, core.MaxBytes)
	}
	return os.ReadFile(path)
}

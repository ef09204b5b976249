//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/daemon"
	"edge/test/harness"
)

const sector = 512 // bytes that a disk writes at once

// disk models the content of a disk after a power cut.
//
// Data written before a completed sync of its file is durable. Of later writes any
// part may be durable: each sector has its old or its new content, in any order. The
// same holds for the length of a file, and for the names in the folder since its last
// sync, except that names change in order.
type disk struct {
	now   map[string]*inode   // by name
	names []map[string]*inode // as they were, one after the other, since the folder was synced; the first is safe
}

// inode is a file. Each sync of it begins another span of writes.
type inode struct {
	now   []byte
	spans []span
}

// span are the writes between two syncs of a file.
type span struct {
	safe    []byte         // content at its beginning
	sectors map[int64]bool // may have been written since
}

func newInode() *inode { return &inode{spans: []span{{sectors: map[int64]bool{}}}} }

func newDisk() *disk {
	return &disk{now: map[string]*inode{}, names: []map[string]*inode{{}}}
}

// apply executes an operation.
func (d *disk) apply(op operation, folder string) error {
	name := func(path string) string { return strings.TrimPrefix(path, folder+"/") }
	if op.path == folder {
		d.names = d.names[len(d.names)-1:]
		return nil
	}
	if strings.HasSuffix(op.path, " (deleted)") {
		return nil
	}
	f := d.now[name(op.path)]
	if f == nil && op.name == "ftruncate" { // it was created
		f = newInode()
		d.rename(func(names map[string]*inode) { names[name(op.path)] = f })
	}
	if f == nil && op.name != "unlink" {
		return fmt.Errorf("%s of %s, which was never created", op.name, op.path)
	}
	switch op.name {
	case "pwrite":
		f.resize(max(int64(len(f.now)), op.at+int64(len(op.data))))
		copy(f.now[op.at:], op.data)
		for at := op.at / sector; at*sector < op.at+int64(len(op.data)); at++ {
			f.spans[len(f.spans)-1].sectors[at] = true
		}
	case "ftruncate":
		f.resize(op.at)
	case "fsync", "fdatasync":
		f.spans = append(f.spans, span{slices.Clone(f.now), map[int64]bool{}})
	case "rename":
		d.rename(func(names map[string]*inode) {
			names[name(op.to)] = f
			delete(names, name(op.path))
		})
	case "link":
		d.rename(func(names map[string]*inode) { names[name(op.to)] = f })
	case "unlink":
		d.rename(func(names map[string]*inode) { delete(names, name(op.path)) })
	}
	return nil
}

func (d *disk) rename(change func(names map[string]*inode)) {
	d.now = maps.Clone(d.now)
	change(d.now)
	d.names = append(d.names, d.now)
}

func (f *inode) resize(size int64) {
	if size <= int64(len(f.now)) {
		f.now = slices.Clone(f.now[:size])
		return
	}
	f.now = append(slices.Clone(f.now), make([]byte, size-int64(len(f.now)))...)
}

// cut writes a possible result of a power cut to a folder. Up to lies syncs of each
// file, the last ones, were confirmed and not done.
func (d *disk) cut(rng *rand.Rand, folder string, lies int) error {
	for name, f := range d.names[rng.IntN(len(d.names))] {
		if err := os.WriteFile(filepath.Join(folder, name), f.cut(rng, rng.IntN(lies+1)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (f *inode) cut(rng *rand.Rand, lies int) []byte {
	open := f.spans[max(len(f.spans)-1-lies, 0):]
	safe, written := open[0].safe, map[int64]bool{}
	for _, s := range open {
		maps.Copy(written, s.sectors)
	}
	left := slices.Clone(safe)
	if len(f.now) != len(safe) && rng.IntN(2) == 0 { // the new length was reached
		left = left[:min(len(f.now), len(safe))]
		left = append(left, make([]byte, len(f.now)-len(left))...)
	}
	// None, all, whole pages, or any sectors.
	mode := rng.IntN(4)
	page, kept := int64(-1), false
	for _, at := range slices.Sorted(maps.Keys(written)) {
		if this := at * sector / 4096; mode == 3 || mode == 2 && this != page {
			page, kept = this, rng.IntN(2) == 0
		}
		from, to := at*sector, min((at+1)*sector, int64(len(left)), int64(len(f.now)))
		if (mode == 1 || mode > 1 && kept) && from < to {
			copy(left[from:to], f.now[from:to])
		}
	}
	return left
}

// TestPowerLoss records the operations of a daemon on its folder from the first start
// on, with a commit whose sync fails, and a transaction whose last sync fails and the new
// file that follows. It then cuts the
// power before each operation and each acknowledgement, in several ways (EDGE_CUTS,
// default 1, each). All samples acknowledged until then must be kept, once and in
// order, and none that was not published. On a disk that confirms syncs it has not
// done, fewer may be kept, but the state must have existed. Without the build tag slow
// it cuts before every fifth operation only.
func TestPowerLoss(t *testing.T) {
	cuts := int(harness.Number(t, "EDGE_CUTS", 1))
	seed := harness.Number(t, "EDGE_CUTS_SEED", rand.Uint64())
	t.Logf("EDGE_CUTS_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := newScenario(t)
	done, folder := recordedRun(s)

	config, store := s.configure(t, "mqtt://broker.lan", 0)
	learner, truth := harness.NewTruth(t, config), []string{}
	for n := range operationRows + 1 {
		truth = append(truth, learner.Digest(n))
	}
	d, acked, renames := newDisk(), 0, 0
	every := brokertest.Brief(1, 5)
	var images, repaired, lost [2]int // by an honest disk and by another
	for i := 0; i <= len(done); i++ {
		for k := 0; k < 2*cuts && i%every == 0; k++ {
			lies := k % 2 * 3
			if err := emptied(filepath.Dir(store)); err != nil {
				t.Fatal(err)
			}
			if err := d.cut(rng, filepath.Dir(store), lies); err != nil {
				t.Fatal(err)
			}
			n, log := survivors(t, config, truth)
			images[k%2]++
			if strings.Contains(log, "state file was damaged") {
				repaired[k%2]++
			}
			if n < acked {
				lost[k%2]++
			}
			if lies == 0 && (n < acked || reportedLoss.MatchString(log)) {
				t.Fatalf("before operation %d of %d: %d samples were acknowledged, %d are known; the daemon logged:\n%s", i, len(done), acked, n, log)
			}
		}
		if i == len(done) {
			break
		}
		if n := acks(done[i]); n > 0 {
			acked += n
			continue
		}
		if done[i].name == "rename" {
			renames++
		}
		if err := d.apply(done[i], folder); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d operations, %d renames, %d acknowledgements; an honest disk: %d power cuts, %d files repaired, %d times something was lost; one that lies about syncs: %d, %d, %d",
		len(done), renames, acked, images[0], repaired[0], lost[0], images[1], repaired[1], lost[1])
	if acked != operationRows || renames < 2 || lost[1] == 0 {
		t.Errorf("%d acknowledgements, %d renames, %d times a lie cost something: the test proves nothing", acked, renames, lost[1])
	}
}

// recordedRun returns the operations of a daemon on its folder, in order, with its
// acknowledgements. A failed operation is left out.
func recordedRun(s *scenario) (done []operation, folder string) {
	frameFailed, failed := false, false
	s.play(func(n int, op operation) decision {
		if op.name == "rename" && folder == "" {
			folder = filepath.Dir(op.path)
		}
		last := len(done) - 1
		// The sync of a frame of the redo log, or of a transaction's pages.
		if n > 30 && !frameFailed && op.name == "fdatasync" && done[last].name == "pwrite" && done[last].at >= 2*4096 {
			frameFailed = true
			return decision{errno: syscall.EIO}
		}
		// The sync of a meta page: the transaction shows already.
		if n > 50 && !failed && op.name == "fdatasync" && done[last].name == "pwrite" && done[last].at < 2*4096 {
			failed = true
			return decision{errno: syscall.EIO}
		}
		done = append(done, op)
		return decision{}
	})
	return done, folder
}

// emptied removes the content of a folder.
func emptied(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Mkdir(folder, 0o700)
}

// reportedLoss matches the log of a daemon that has lost samples.
var reportedLoss = regexp.MustCompile(`part of what the model had learnt is lost.* samples=[1-9]`)

// survivors opens a daemon and returns the number of samples in its state, and what it has logged.
func survivors(t *testing.T, file string, truth []string) (n int, logged string) {
	t.Helper()
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var log harness.Log
	d, err := daemon.New(cfg, slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	loop := d.Loop("waveform")
	ctx, stop := context.WithCancel(t.Context())
	learnt := make(chan error, 1)
	go func() { learnt <- loop.Run(ctx) }()
	<-loop.Recovered()
	stop()
	if err := <-learnt; err != nil {
		t.Fatal(err)
	}
	n = int(loop.Learner().Scores().N)
	logged = log.String()
	// If both checkpoints are lost, the rest of the journal is learnt, and the loss is
	// reported.
	if got := loop.Learner().Digest(); got != truth[n] && !reportedLoss.MatchString(logged) {
		t.Fatalf("after %d samples the digest is %s, that of an undisturbed learner %s; the daemon logged:\n%s", n, got, truth[n], logged)
	}
	return n, logged
}

// TestFirstStartSyncsLittle counts the syncs of a first start until its only message is
// acknowledged: on an SD card each takes up to half a second. Two are bbolt's, one is the
// new file's, one the folder's; the model takes two, the subscriptions and the
// message one each.
func TestFirstStartSyncsLittle(t *testing.T) {
	s := newScenario(t)
	tap := harness.NewTap(t, s.broker.Addr)
	config, store := s.configure(t, tap.URL(), s.runs)
	var syncs atomic.Int32
	d := supervised(t, config, func(op operation) decision {
		if (op.name == "fsync" || op.name == "fdatasync") && strings.HasPrefix(op.path, filepath.Dir(store)) {
			syncs.Add(1)
		}
		return decision{}
	})
	if !brokertest.Eventually(tap.Subscribed) {
		t.Fatalf("the daemon never subscribes:\n%s", d.Log())
	}
	if err := s.publish(s.runs, 1, 1); err != nil {
		t.Fatal(err)
	}
	if !brokertest.Eventually(func() bool { return tap.Acknowledged() == 1 }) {
		t.Fatalf("the message is not acknowledged:\n%s", d.Log())
	}
	if n := syncs.Load(); n < 2 || n > 8 {
		t.Errorf("%d syncs, want 8 at most, and one for the file and one for the message", n)
	}
}

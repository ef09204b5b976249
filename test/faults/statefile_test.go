//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/persist"
	"edge/test/harness"
)

// takeAway are ways in which a user takes the state file away from a running daemon.
var takeAway = map[string]func(store string) error{
	"removed": os.Remove,
	"moved":   func(store string) error { return os.Rename(store, store+".moved") },
}

// fileScenario is a daemon that has learnt a third of the samples.
type fileScenario struct {
	*scenario
	tap           *harness.Tap
	config, store string
	daemon        *harness.Daemon
}

const fileThird = operationRows / 3

func newFileScenario(t *testing.T) *fileScenario {
	t.Helper()
	f := &fileScenario{scenario: newScenario(t)}
	f.tap = harness.NewTap(t, f.broker.Addr)
	f.config, f.store = f.configure(t, f.tap.URL(), f.runs)
	f.daemon = harness.Start(t, f.config)
	f.send(1, fileThird)
	f.acknowledged(fileThird)
	return f
}

func (f *fileScenario) send(from, to int) {
	f.t.Helper()
	if !brokertest.Eventually(f.tap.Subscribed) {
		f.t.Fatalf("the daemon never subscribes:\n%s", f.daemon.Log())
	}
	if err := f.publish(f.runs, from, to); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fileScenario) acknowledged(n int) {
	f.t.Helper()
	if !brokertest.Eventually(func() bool { return f.tap.Acknowledged() == n }) {
		f.t.Fatalf("%d of %d samples are acknowledged:\n%s", f.tap.Acknowledged(), n, f.daemon.Log())
	}
}

// ends waits for the daemon to end by itself, and returns its log.
func (f *fileScenario) ends(code int) string {
	f.t.Helper()
	select {
	case err := <-f.daemon.Ended:
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != code {
			f.t.Errorf("the daemon ends with %v, want code %d:\n%s", err, code, f.daemon.Log())
		}
	case <-time.After(brokertest.Patience):
		f.t.Fatalf("the daemon goes on:\n%s", f.daemon.Log())
	}
	f.tap.Settle()
	return f.daemon.Log()
}

// knowsAll stops the daemon and starts it again: all samples must be in the file.
func (f *fileScenario) knowsAll() {
	f.t.Helper()
	f.daemon.Stop()
	f.daemon = harness.Start(f.t, f.config)
	ready := f.daemon.Await("model ready")
	if n := ready.Get("samples").Int(); n != operationRows || ready.Get("digest").String() != f.truth {
		f.t.Errorf("%d of %d samples are known, digest %s, that of an undisturbed learner %s:\n%s", n, operationRows, ready.Get("digest"), f.truth, f.daemon.Log())
	}
	f.daemon.Stop()
	if _, r := harness.Verify(f.t, f.store); !r.Sound {
		f.t.Errorf("the file is damaged: %q", r.Problems)
	}
	if err := f.tap.Err(); err != nil {
		f.t.Error(err)
	}
}

// TestStateFileTakenAway removes or moves the state file while the daemon runs,
// between labels and just before the stop. The daemon publishes an event, and keeps
// all acknowledged samples.
func TestStateFileTakenAway(t *testing.T) {
	for name, take := range takeAway {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for the daemon to look after the file, every 30 s
			f := newFileScenario(t)
			events := make(chan string, 100)
			listener := brokertest.Subscribe(t, f.broker.URL(), []string{"edge/test/event"}, func(_ string, payload []byte) {
				events <- gjson.GetBytes(payload, "event").String() + " " + gjson.GetBytes(payload, "detail").String()
			})
			defer listener.Close()
			next := func(event, detail string) {
				t.Helper()
				for after := time.After(brokertest.Patience); ; {
					select {
					case e := <-events:
						if !strings.HasPrefix(e, "store_") {
							continue
						}
						if !strings.HasPrefix(e, event) || !strings.Contains(e, detail) {
							t.Errorf("event %q, want %q and %q", e, event, detail)
						}
						return
					case <-after:
						t.Fatalf("no event %s:\n%s", event, f.daemon.Log())
					}
				}
			}
			if err := take(f.store); err != nil { // no label comes meanwhile
				t.Fatal(err)
			}
			next("store_degraded", f.store+" was removed or moved, and is written anew")
			next("store_recovered", "")
			f.send(fileThird+1, 2*fileThird)
			f.acknowledged(2 * fileThird)
			if err := take(f.store); err != nil {
				t.Fatal(err)
			}
			f.send(2*fileThird+1, operationRows)
			f.acknowledged(operationRows)
			if err := take(f.store); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			f.knowsAll()
		})
	}
}

// TestStateFileTakenAwayAtEachOperation removes or moves the state file before an
// operation of the daemon on its folder or an acknowledgement: in the middle of a
// commit, between a commit and its acknowledgement, while the file is written again.
func TestStateFileTakenAwayAtEachOperation(t *testing.T) {
	if len(harness.Emulator) > 0 {
		t.Skipf("NOT EMULATED: %s cannot let a test decide about system calls", harness.Emulator[0])
	}
	s := newScenario(t)
	for name, take := range takeAway {
		t.Run(name, func(t *testing.T) {
			taken := 0
			forOperations(t, func(at int) int {
				store := ""
				operations, _ := s.play(func(n int, op operation) decision {
					if store == "" && op.name != "write" {
						store = filepath.Join(filepath.Dir(op.path), "edge.db")
					}
					if n == at || n == at+3 { // the second time while it is written anew
						if err := take(store); err == nil {
							taken++
						} else if !errors.Is(err, os.ErrNotExist) {
							t.Error(err)
						}
					}
					return decision{}
				})
				return operations
			})
			if taken == 0 {
				t.Error("the file was never taken away")
			}
		})
	}
}

// TestStateFolderIsAway moves the folder of the state file away and back.
func TestStateFolderIsAway(t *testing.T) {
	s := newScenario(t)
	aside := func(store string) string { return filepath.Dir(store) + ".aside" }
	late := s.outage(func(config, store string) *harness.Daemon { return harness.Start(t, config) },
		func(_ *harness.Daemon, store string) {
			if err := os.Rename(filepath.Dir(store), aside(store)); err != nil {
				t.Fatal(err)
			}
		}, func(_ *harness.Daemon, store string) {
			if err := os.Rename(aside(store), filepath.Dir(store)); err != nil {
				t.Fatal(err)
			}
		})
	if late != 0 {
		t.Errorf("%d samples are acknowledged although the state is not where the next start looks for it", late)
	}
}

// TestStateFileReplaced moves a backup over the state file of a running daemon. The
// daemon ends and leaves the backup unchanged. Acknowledged samples are in the file
// that its message names; the broker keeps the others.
func TestStateFileReplaced(t *testing.T) {
	f := newFileScenario(t)
	backup := f.store + ".backup"
	if _, err := persist.Backup(f.store, backup); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	f.send(fileThird+1, 2*fileThird)
	f.acknowledged(2 * fileThird)
	if err := os.Rename(backup, f.store); err != nil {
		t.Fatal(err)
	}
	if err := f.publish(f.runs, 2*fileThird+1, operationRows); err != nil {
		t.Fatal(err)
	}
	log := f.ends(exit.Store)
	kept := f.store + ".replaced-1"
	if advice := "edge restore " + kept + " " + f.store; !strings.Contains(log, advice) {
		t.Errorf("nothing advises %q:\n%s", advice, log)
	}
	if n := f.tap.Acknowledged(); n != 2*fileThird {
		t.Errorf("%d samples are acknowledged, %d before the file was replaced", n, 2*fileThird)
	}
	if after, err := os.ReadFile(f.store); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the backup was written to: %d bytes, %d before, %v", len(after), len(before), err)
	}
	if code, out, errOut := harness.Run(t, "restore", kept, f.store); code != exit.OK {
		t.Fatalf("restore: %s%s", out, errOut)
	}
	f.daemon = harness.Start(t, f.config)
	f.acknowledged(operationRows)
	f.knowsAll()
}

// TestStateFileWrittenOver overwrites the state file of a running daemon in place. The
// daemon ends, and acknowledges no later sample. It rests meanwhile: a transaction that
// has begun would write its last page over the other file.
func TestStateFileWrittenOver(t *testing.T) {
	f := newFileScenario(t)
	harness.AwaitSamples(t, f.broker, fileThird)
	older, err := os.ReadFile(f.store)
	if err != nil {
		t.Fatal(err)
	}
	f.send(fileThird+1, 2*fileThird)
	f.acknowledged(2 * fileThird)
	harness.AwaitSamples(t, f.broker, 2*fileThird)
	if err := f.daemon.Process.Signal(syscall.SIGSTOP); err != nil { // while the file is half written
		t.Fatal(err)
	}
	err = errors.Join(os.WriteFile(f.store, older, 0o600), f.daemon.Process.Signal(syscall.SIGCONT))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.publish(f.runs, 2*fileThird+1, operationRows); err != nil {
		t.Fatal(err)
	}
	if log := f.ends(exit.Store); !strings.Contains(log, "another program wrote over "+f.store) {
		t.Errorf("the reason is not logged:\n%s", log)
	}
	if n := f.tap.Acknowledged(); n != 2*fileThird {
		t.Errorf("%d samples are acknowledged, %d before the file was written over", n, 2*fileThird)
	}
	if after, err := os.ReadFile(f.store); err != nil || !slices.Equal(after, older) {
		t.Errorf("what was written was changed: %v", err)
	}
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/test/files"
	"edge/test/harness"
)

// A daemon that watches its files reads them after a write, a rename and a new
// symbolic link.
func TestReloadWatches(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := harness.WaveformConfig(t, b.URL())
	link := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, link).ready()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	var notified harness.Log
	watching.Go(func() {
		(&Triggers{Path: link, Watch: true}).handle(ctx, d.Daemon, &service{log: d.Daemon.log, send: func(state string) { fmt.Fprintln(&notified, state) }})
	})
	defer watching.Wait()
	defer cancel()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	every := func(s string) []byte { return []byte(strings.Replace(string(text), "every: 1s", "every: "+s, 1)) }
	for _, change := range []struct {
		want  time.Duration
		write func()
	}{
		{2 * time.Second, func() { os.WriteFile(path, every("2s"), 0o600) }},
		{3 * time.Second, func() { // as editors do
			os.WriteFile(path+"~", every("3s"), 0o600)
			os.Rename(path+"~", path)
		}},
		{4 * time.Second, func() { // as a mounted volume does
			other := files.Write(t, "next.yaml", string(every("4s")))
			os.Symlink(other, link+".new")
			os.Rename(link+".new", link)
		}},
	} {
		want, write := change.want, change.write
		time.Sleep(50 * time.Millisecond) // for the watch to begin; more only makes the test slower
		for end := time.Now().Add(brokertest.Patience); d.current().Config.Metrics.Every != want && time.Now().Before(end); time.Sleep(2 * settleTime) {
			write()
		}
		if got := d.current().Config.Metrics.Every; got != want {
			t.Errorf("metrics.every is %v, want %v", got, want)
		}
	}
	if notified.Lines("RELOADING=1\nMONOTONIC_USEC=") == 0 || notified.Lines("READY=1") == 0 {
		t.Errorf("the service manager received:\n%s", &notified)
	}
}

// A write in a folder is noticed although the symbolic link to it led to another one when
// the watch began.
func TestWatchFollowsTheFolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	path := filepath.Join(link, "edge.yaml")
	lead := func(to string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, to), 0o700), os.Symlink(to, link+".new"), os.Rename(link+".new", link)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWatcher(slog.New(slog.DiscardHandler))
	defer w.close()
	cfg := config.Default()
	lead("v1")
	w.follow(path, &cfg)
	lead("v2")
	w.follow(path, &cfg)
	if err := os.WriteFile(filepath.Join(dir, "v2", "edge.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	late := time.After(brokertest.Patience)
	for {
		select {
		case e := <-w.events:
			if e.Name == path && w.concerns(e) {
				return
			}
		case <-late:
			t.Fatal("the write is not noticed")
		}
	}
}

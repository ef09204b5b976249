package daemon

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/terminal"
	"edge/test/harness"
)

// reloadable is a daemon in this process whose configuration is a file.
type reloadable struct {
	*Daemon
	t    *testing.T
	path string
	log  *harness.Log
	stop func()
}

// startReloadable runs a daemon until the test ends, or stop is called.
func startReloadable(t *testing.T, path string) *reloadable {
	t.Helper()
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &reloadable{t: t, path: path, log: &harness.Log{}}
	level := new(slog.LevelVar)
	r.Daemon, err = New(cfg, slog.New(terminal.AdjustableHandler{Handler: slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: level}), Level: level}), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = func() (*config.Config, error) { return config.Load(path) }
	r.stop = startRun(t, r.Daemon, r.log)
	return r
}

func (r *reloadable) ready() *reloadable {
	r.t.Helper()
	if !brokertest.Eventually(func() bool { return r.current().Node.Stats().Subscribed }) {
		r.t.Fatal("the daemon does not subscribe")
	}
	return r
}

// edit replaces text in the file.
func (r *reloadable) edit(replacements ...string) {
	r.t.Helper()
	data, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(data), replacements[i]) {
			r.t.Fatalf("%s is not in the configuration:\n%s", replacements[i], data)
		}
	}
	if err := os.WriteFile(r.path, []byte(strings.NewReplacer(replacements...).Replace(string(data))), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload reloads, and waits until the new configuration is in effect.
func (r *reloadable) reload() (changed []string, err error) {
	r.t.Helper()
	const done = `msg="configuration reloaded"`
	before := strings.Count(r.log.String(), done)
	ctx, cancel := context.WithTimeout(r.t.Context(), brokertest.Patience)
	defer cancel()
	changed, err = r.Reload(ctx)
	if err == nil && len(changed) > 0 && !brokertest.Eventually(func() bool { return strings.Count(r.log.String(), done) > before }) {
		r.t.Fatal("the reload does not end")
	}
	return changed, err
}

// change edits and reloads; want are the changed keys.
func (r *reloadable) change(want string, replacements ...string) {
	r.t.Helper()
	r.edit(replacements...)
	changed, err := r.reload()
	if err != nil || strings.Join(changed, ", ") != want {
		r.t.Fatalf("changed %q, %v, want %q", strings.Join(changed, ", "), err, want)
	}
}

// final stops the daemon and returns the digest of its only model.
func (r *reloadable) final() string {
	r.stop()
	return r.current().Models[0].Loop.Learner().Digest()
}

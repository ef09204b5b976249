package daemon

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/test/harness"
)

// A daemon whose loops give no sign of life does not feed the watchdog.
func TestWatchdogStarves(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	file, _ := harness.WaveformConfig(t, b.URL())
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg, slog.New(slog.DiscardHandler), nil) // not run: its loops are not alive
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var notified, log harness.Log
	s := &service{watchdog: 40 * time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil)), send: func(state string) { fmt.Fprintln(&notified, state) }}
	time.Sleep(s.watchdog)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.run(t.Context(), stopped, d.monitor)
	}()
	time.Sleep(10 * s.watchdog)
	close(stopped)
	<-done
	if notified.Lines("READY=1") != 1 || notified.Lines("WATCHDOG=1") != 0 {
		t.Errorf("notified:\n%s", &notified)
	}
	if strings.Count(log.String(), "no sign of life") != 1 || !strings.Contains(log.String(), "model=waveform") {
		t.Errorf("the log has: %s", &log)
	}
}

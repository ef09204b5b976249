package daemon

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
)

type manager struct {
	mu    sync.Mutex
	heard []string
}

func (m *manager) hear(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = append(m.heard, state)
}

func (m *manager) count(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.heard {
		if strings.HasPrefix(s, state) {
			n++
		}
	}
	return n
}

// A daemon whose loops give no sign of life does not feed the watchdog.
func TestWatchdogStarves(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	file, _ := waveformConfig(t, b.URL())
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg, slog.New(slog.DiscardHandler), nil) // and do not run it
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var m manager
	var log lockedLog
	s := &service{watchdog: 40 * time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil)), send: m.hear}
	time.Sleep(s.watchdog)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.run(t.Context(), stopped, d.monitor)
	}()
	time.Sleep(10 * s.watchdog)
	close(stopped)
	<-done
	if m.count("READY=1") != 1 || m.count("WATCHDOG=1") != 0 {
		t.Errorf("said: %q", m.heard)
	}
	if strings.Count(log.String(), "no sign of life") != 1 || !strings.Contains(log.String(), "model=waveform") {
		t.Errorf("the log says: %s", &log)
	}
}

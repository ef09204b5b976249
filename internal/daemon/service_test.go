package daemon

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/test/harness"
)

// fakeManager records the notifications of a service.
type fakeManager struct {
	mu     sync.Mutex
	states []string
}

func (m *fakeManager) notify(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states = append(m.states, state)
}

func (m *fakeManager) count(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.states {
		if strings.HasPrefix(s, state) {
			n++
		}
	}
	return n
}

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
	var m fakeManager
	var log harness.Log
	s := &service{watchdog: 40 * time.Millisecond, log: slog.New(slog.NewTextHandler(&log, nil)), send: m.notify}
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
		t.Errorf("notified: %q", m.states)
	}
	if strings.Count(log.String(), "no sign of life") != 1 || !strings.Contains(log.String(), "model=waveform") {
		t.Errorf("the log has: %s", &log)
	}
}

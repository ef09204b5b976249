package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"edge/internal/config"
	"edge/internal/process"
	"edge/online"
	"edge/stream"
)

func TestHealthChecks(t *testing.T) {
	learner, err := online.NewLearner(func() online.Config { c := online.DefaultConfig(); c.Features = []string{"a"}; return c }())
	if err != nil {
		t.Fatal(err)
	}
	m := NewMonitor()
	m.Follow(&Deployment{Config: new(config.Config), Models: []*Model{{Name: "m", Loop: online.NewLoop(learner, online.LoopOptions{})}}})
	if h := healthOf(m.Alive(time.Hour)); h.code() != http.StatusOK || len(h.Checks) != 1 {
		t.Errorf("a new loop: %+v", h)
	}
	if h := healthOf(m.Alive(0)); h.code() != http.StatusServiceUnavailable || h.Status != "failing" {
		t.Errorf("a loop that does nothing: %+v", h)
	}
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		sample   *storeSample
		degraded bool
		reading  time.Duration
		ok       bool
		detail   string
	}{
		"unknown":       {nil, false, 0, false, "not read yet"},
		"fine":          {&storeSample{at: time.Now()}, false, 0, true, "writable"},
		"degraded":      {&storeSample{at: time.Now()}, true, 0, false, "nothing is learnt"},
		"unreadable":    {&storeSample{at: time.Now(), err: io.ErrUnexpectedEOF}, false, 0, false, "unexpected EOF"},
		"gone":          {&storeSample{at: time.Now(), err: process.Writable(folder + "/none")}, false, 0, false, "no such file"},
		"nobody looked": {&storeSample{at: time.Now().Add(-time.Minute)}, false, 0, true, "writable"},
		"slow disk":     {&storeSample{at: time.Now().Add(-time.Minute)}, false, time.Minute, false, "has not answered for 1m0s"},
	} {
		m.store.Store(tc.sample)
		if m.reading.Store(0); tc.reading > 0 {
			m.started = time.Now().Add(-2 * tc.reading)
			m.reading.Store(int64(tc.reading))
		}
		if c := m.storeReady(&stream.Stats{Degraded: tc.degraded}); c.OK != tc.ok || !strings.Contains(c.Detail, tc.detail) {
			t.Errorf("%s: %+v, want %v and %q", name, c, tc.ok, tc.detail)
		}
	}
}

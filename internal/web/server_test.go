package web

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/internal/config"
	"edge/test/harness"
)

// An address that others reach is warned of, one that they do not is not.
func TestListenWarns(t *testing.T) {
	m := NewMonitor()
	m.Follow(&Deployment{Config: new(config.Config)})
	for listen, want := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "0.0.0.0:0": true} {
		var log harness.Log
		s := NewServer(config.HTTP{Listen: listen}, m, slog.New(slog.NewTextHandler(&log, nil)))
		s.Close()
		if got := strings.Contains(log.String(), "can be reached from other machines"); got != want && s.listener != nil {
			t.Errorf("%s: warned: %v, want %v: %s", listen, got, want, &log)
		}
	}
}

// The reason why the page is not served is logged once, not at each attempt.
func TestFailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log harness.Log
		s := NewServer(config.HTTP{Listen: "127.0.0.1:66666"}, NewMonitor(), slog.New(slog.NewTextHandler(&log, nil)))
		ctx, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		s.Run(ctx)
		if n := strings.Count(log.String(), "invalid port"); n != 1 {
			t.Errorf("%d lines in an hour, want 1: %.500s", n, &log)
		}
	})
}

// The packed parts of the page are those beside them.
func TestPackedPage(t *testing.T) {
	for name, part := range map[string][]byte{"page.html": packedBody, "page.css": packedStyle, "page.js": packedProgram} {
		if text, err := os.ReadFile(name); err != nil || unpacked(part) != string(text) {
			t.Errorf("%s.gz is another text than %s (%v): run go generate ./internal/web", name, name, err)
		}
	}
}

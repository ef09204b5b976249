package daemon

import (
	"context"
	"io"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/eval"
	"edge/internal/replay"
	"edge/internal/report"
)

// replayed publishes a file in the background; wait returns when the daemon has
// predicted every row.
func replayed(t *testing.T, path, broker string) (wait func()) {
	t.Helper()
	mqtt := brokertest.Config(broker)
	src := &replay.Source{Path: path}
	if err := src.Data.Check(); err != nil {
		t.Fatal(err)
	}
	p := &replay.Player{Labels: "inline", Fraction: 1, Ahead: 100}
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	go func() {
		_, err := replay.File(ctx, src, p, mqtt, nil, io.Discard)
		done <- err
	}()
	return func() {
		t.Helper()
		err := <-done
		if ctx.Err() != nil {
			t.Fatal("the replay does not end")
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// undisturbed returns the report of a model that learns a file under a configuration.
func undisturbed(t *testing.T, data, config string) (r *report.Report) {
	t.Helper()
	e := eval.New()
	e.ConfigPath = config
	if err := e.Prepare([]string{data}); err != nil {
		t.Fatal(err)
	}
	if err := e.Each(t.Context(), data, io.Discard, func(one *report.Report) error { r = one; return nil }); err != nil {
		t.Fatal(err)
	}
	return r
}

package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/persist"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// named runs the connection of a daemon with a name until the test ends, and waits until it is
// served.
func named(t *testing.T, server, id string) {
	cfg := brokertest.Config(server)
	served := make(chan struct{}, 1)
	c := mqtt.NewClient(mqtt.Options{
		Config: cfg, ID: id, StateTopic: "edge/pi1/state", Filters: []string{"a"}, Counters: new(mqtt.Counters), ConnectTimeout: time.Minute,
		Queue: mqtt.NewQueue(10, field.MiB, mqtt.MessageSize), Log: slog.New(slog.DiscardHandler), Event: func(string, string) {},
		Dial: func(ctx context.Context, u *url.URL, _ *tls.Config, _ time.Duration) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", u.Host)
		},
		Serve: func(ctx context.Context, _ *mqtt.Conn) { served <- struct{}{}; <-ctx.Done() },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	<-served
}

// Processes that end the connections of each other are told, although one alone answers. Where one was seen, that
// is said.
func TestDisplacedProcesses(t *testing.T) {
	cfg := config.Default()
	cfg.Node = "pi1"
	for starting, want := range map[string]string{
		"":     "",
		"-a":   "", // the broker keeps the info of one that is gone
		"aaa":  diagnosis.OK + " client_id: one process has had the connection for ",
		"aabb": diagnosis.Warn + " client_id: 2 processes have connected as pi1, one after the other, during this test",
		"abab": diagnosis.Fail + " client_id: 2 processes have connected as pi1, one after the other, during this test: each ends",
	} {
		d, s := diagnosis.New(), &starts{seen: map[string]bool{}}
		starting, gone := strings.CutPrefix(starting, "-")
		answered := 1
		if gone {
			answered = 0
		}
		for _, at := range starting {
			s.receive(broker.Message{Payload: []byte(`{"started":"` + string(at) + `"}`)})
		}
		s.receive(broker.Message{Payload: []byte(`{}`)})
		s.judge(d, &cfg, answered)
		if expect(t, d, want); want == "" && len(d.Findings) > 0 {
			t.Errorf("%s gives %s", starting, d)
		}
	}
	for brief, want := range map[int]string{2: diagnosis.OK + " client_id: one process", 3: diagnosis.Warn + " client_id: pi1 lost its latest 3 connections within a minute each"} {
		d, s := diagnosis.New(), &starts{seen: map[string]bool{}}
		s.receive(broker.Message{Payload: fmt.Appendf(nil, `{"started":"a","brief_connections":%d}`, brief)})
		s.judge(d, &cfg, 1)
		expect(t, d, want)
	}
}

// The processes of a name are counted, and compared with the one that has the state file open.
func TestNames(t *testing.T) {
	const check = " name of the node: "
	for name, tc := range map[string]struct {
		processes int
		open      bool
		want      string
	}{
		"none":                {0, false, diagnosis.OK + check + "no process answers as pi1"},
		"this daemon":         {1, true, diagnosis.OK + check + "one process answers as pi1"},
		"another one":         {1, false, diagnosis.Warn + check + "a process answers as pi1, and it does not use the state file"},
		"two":                 {2, true, diagnosis.Fail + check + "2 processes answer as pi1"},
		"three":               {3, false, diagnosis.Fail + check + "3 processes answer as pi1"},
		"a daemon without it": {0, true, diagnosis.Warn + check + "a daemon has the state file open, and nobody answers as pi1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.New(t, brokertest.Embedded)
			cfg := config.Default()
			cfg.Node, cfg.MQTT.Servers, cfg.Store.Path = "pi1", []string{b.URL()}, filepath.Join(t.TempDir(), "edge.db")
			store, err := persist.Open(cfg.Store.Path, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			if !tc.open {
				store.Close()
			}
			for i := range tc.processes {
				named(t, b.URL(), string(rune('a'+i)))
			}
			d := diagnosis.New()
			if err := newProbe(d, &cfg, Patient(1)).names(t.Context()); err != nil {
				t.Fatal(err)
			}
			expect(t, d, tc.want)
		})
	}
}

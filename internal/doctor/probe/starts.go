package probe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
)

// starts follows which process has the connection of the node. Two with one client_id end the
// connections of each other, so that one alone answers at any moment; each publishes when it was started.
type starts struct {
	mu      sync.Mutex
	began   time.Time
	seen    map[string]bool
	last    string
	changes int
	brief   int64 // connections in a row that the latest process lost within a minute each
}

// receive takes the info of a node.
func (s *starts) receive(m broker.Message) {
	started := gjson.GetBytes(m.Payload, "started").Str
	if started == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" && s.last != started {
		s.changes++
	}
	s.seen[started], s.last = true, started
	s.brief = gjson.GetBytes(m.Payload, "brief_connections").Int()
}

// followed runs tests, and then reports processes of this node that have displaced each other since. A
// broker without room for one more connection has this test left out.
func (p *probe) followed(tests ...func(context.Context) error) []func(context.Context) error {
	s := &starts{began: time.Now(), seen: map[string]bool{}}
	closed := func() {}
	follow := func(ctx context.Context) error {
		c, err := p.connect(ctx, broker.Options{Receive: s.receive})
		if err != nil {
			return nil
		}
		closed = c.Close
		_, err = p.subscribe(ctx, c, p.owner+"/info", 0)
		return err
	}
	return append(append([]func(context.Context) error{follow}, tests...), func(context.Context) error {
		closed()
		s.judge(p.d, p.cfg, p.named)
		return nil
	})
}

// judge reports processes of the node that have displaced each other. The pause before the next time is as
// long as any before a connection, so that one process alone may have answered. Where none has, the broker
// keeps the info of one that is gone.
func (s *starts) judge(d *diagnosis.Diagnosis, cfg *config.Config, answered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const often = 3 // more than a restart of the broker takes
	figure := map[string]int{"processes": len(s.seen), "changes": s.changes, "brief_connections": int(s.brief)}
	switch detail := fmt.Sprintf("%d processes have connected as %s, one after the other, during this test", len(s.seen), cfg.Node); {
	case s.changes > 1:
		d.Add("client_id", diagnosis.Fail, detail+": each ends the connection of the other", "end one of them, or give it a name (node), a client_id and a state file of its own", figure)
	case s.changes == 1:
		d.Add("client_id", diagnosis.Warn, detail, "unless the daemon was restarted meanwhile, they have one client_id and end the connections of each other: end one, or give it a name (node) of its own", figure)
	case answered == 0:
	case s.brief >= often:
		d.Add("client_id", diagnosis.Warn, fmt.Sprintf("%s lost its latest %d connections within a minute each", cfg.Node, s.brief),
			"if another process has its client_id, they end the connections of each other: end one, or give it a name (node), a client_id and a state file of its own; if the broker's log names no other one, the network does not last", figure)
	case len(s.seen) == 1:
		d.Add("client_id", diagnosis.OK, fmt.Sprintf("one process has had the connection for %.1f s, and did not lose those before again and again", time.Since(s.began).Seconds()), "", figure)
	}
}

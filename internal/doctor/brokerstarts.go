package doctor

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
)

// starts follows which process has the connection of the node. Two with one client_id end the
// connections of each other, so that one alone answers at any moment; each tells when it was started.
type starts struct {
	mu      sync.Mutex
	seen    map[string]bool
	last    string
	changes int
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
}

// followed runs tests, and then reports processes of this node that have displaced each other since. A
// broker without room for one more connection has this test left out.
func (p *brokerProbe) followed(tests ...func(context.Context) error) []func(context.Context) error {
	s := &starts{seen: map[string]bool{}}
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
		s.judge(p.d, p.cfg.Node)
		return nil
	})
}

// judge reports processes of the node that have displaced each other.
func (s *starts) judge(d *Diagnosis, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	figure := map[string]int{"processes": len(s.seen), "changes": s.changes}
	switch detail := fmt.Sprintf("%d processes have connected as %s, one after the other, during this test", len(s.seen), node); {
	case s.changes > 1:
		d.add("client_id", Fail, detail+": each ends the connection of the other", "end one of them, or give it a name (node), a client_id and a state file of its own", figure)
	case s.changes == 1:
		d.add("client_id", Warn, detail, "unless the daemon was restarted meanwhile, they have one client_id and end the connections of each other: end one, or give it a name (node) of its own", figure)
	}
}

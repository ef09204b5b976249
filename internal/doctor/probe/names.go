package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/statefile"
	"edge/persist"
)

// whoIsThere is no state: each process of a name answers it with its own on their state topic.
const whoIsThere = "who is there?"

// names counts the processes that answer by the name of this node. Two of them mix their
// predictions and labels on the same topics, and only one has a part in its fleets.
func (p *probe) names(ctx context.Context) error {
	const check = "name of the node"
	topic, name := p.owner+"/state", p.cfg.Node
	in := &inbox{quiet: p.within.Quiet}
	c, err := p.connect(ctx, broker.Options{Receive: func(m broker.Message) {
		if !m.Retained && string(m.Payload) == "online" {
			in.receive(m)
		}
	}})
	if err != nil {
		return err
	}
	defer c.Close()
	if granted, err := p.subscribe(ctx, c, topic, 0); err != nil || !granted {
		return err
	}
	before := in.wait(ctx, 1, p.within.Quiet) // of a daemon that has just connected
	if err := p.publishOver(ctx, c, topic, []byte(whoIsThere)); err != nil {
		return err
	}
	n := in.wait(ctx, before+1, p.within.Answer)
	if n > before {
		n = in.wait(ctx, n+1, p.within.Quiet)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n -= before
	p.named = n
	figure := map[string]int{"processes": n}
	switch here := daemonOf(p.cfg); {
	case n > 1:
		p.d.Add(check, diagnosis.Fail, fmt.Sprintf("%d processes answer as %s: what they publish is mixed up, and of a fleet one alone is a member", n, name),
			"give each a name of its own (node); after a card was copied, a state file of its own, too: edge reset --all", figure)
	case n == 1 && here == away:
		p.d.Add(check, diagnosis.Warn, fmt.Sprintf("a process answers as %s, and it does not use the state file of this configuration", name),
			"if it is another device, give one of them another name (node)", figure)
	case n == 0 && here == present:
		p.d.Add(check, diagnosis.Warn, fmt.Sprintf("a daemon has the state file open, and nobody answers as %s at this broker", name), "see its log: is it connected, with this node and broker?", figure)
	case n == 0:
		p.d.Add(check, diagnosis.OK, "no process answers as "+name, "", figure)
	default:
		p.d.Add(check, diagnosis.OK, "one process answers as "+name, "", figure)
	}
	return nil
}

// presence is whether a daemon uses a state file.
type presence int

const (
	unknown presence = iota
	present
	away
)

// daemonOf reports whether a daemon has the state file of a configuration open.
func daemonOf(cfg *config.Config) presence {
	path, err := cfg.StorePath()
	if err != nil {
		return unknown
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return away
	}
	store, err := statefile.Open(path)
	if errors.Is(err, persist.ErrLocked) {
		return present
	}
	if err != nil {
		return unknown
	}
	store.Close()
	return away
}

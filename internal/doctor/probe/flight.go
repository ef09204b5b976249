package probe

import (
	"context"
	"errors"
	"fmt"

	"edge/internal/broker"
	"edge/internal/doctor/diagnosis"
)

const probeFlight = 8 // messages that are in flight when the connection ends, and as many afterwards

// flight records what becomes of messages that were not acknowledged when their
// connection ended. They are in flight until the client acknowledges them, so that the
// broker may not give their identifiers to others.
type flight struct {
	inbox
	sent   map[string]uint16 // identifiers by payload, of the first connection
	again  map[string]bool   // payloads that the second connection brought
	others map[uint16]bool   // identifiers of other messages there
}

// before receives a message of the first connection.
func (f *flight) before(m broker.Message) {
	f.mu.Lock()
	f.sent[string(m.Payload)] = m.ID
	f.mu.Unlock()
	f.receive(m)
}

// after receives a message of the second connection.
func (f *flight) after(m broker.Message) {
	f.mu.Lock()
	if _, ok := f.sent[string(m.Payload)]; ok {
		f.again[string(m.Payload)] = true
	} else {
		f.others[m.ID] = true
	}
	f.mu.Unlock()
	f.receive(m)
}

// result returns the number of messages that were in flight, and how many of them did not
// come again although others have their identifiers. The broker may send the rest later.
func (f *flight) result() (sent, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for payload, id := range f.sent {
		if !f.again[payload] && f.others[id] {
			lost++
		}
	}
	return len(f.sent), lost
}

// flight tests whether the broker sends messages again that were in flight when a
// connection ended, although others came meanwhile.
func (p *probe) flight(ctx context.Context) (err error) {
	const name = "messages in flight"
	topic, kept := p.topic+"/flight", broker.Options{ID: p.clientID("flight"), KeepSession: true, NoAcks: true}
	f := &flight{inbox: inbox{quiet: p.within.Quiet}, sent: map[string]uint16{}, again: map[string]bool{}, others: map[uint16]bool{}}
	kept.Receive = f.before
	c, err := p.connect(ctx, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.forget(ctx, kept.ID)) }()
	_, err = p.subscribe(ctx, c, topic, 1)
	if err == nil {
		err = p.several(ctx, topic, 0)
	}
	f.wait(ctx, probeFlight, p.within.Answer)
	c.Close()
	if err == nil {
		err = p.several(ctx, topic, probeFlight)
	}
	if err != nil {
		return err
	}
	first := f.count()
	kept.Receive, kept.NoAcks = f.after, false
	if c, err = p.connect(ctx, kept); err != nil {
		return err
	}
	f.wait(ctx, first+2*probeFlight, p.within.Answer)
	c.Close()
	if sent, n := f.result(); n > 0 && ctx.Err() == nil {
		p.d.Add(name, diagnosis.Fail, fmt.Sprintf("of %d messages that were not acknowledged when a connection ended, the broker gives the identifiers of %d to others: it loses them", sent, n),
			"use a broker that sends them again, such as mosquitto; with this one each lost connection and each stop of the node may lose labels", map[string]int{"in_flight": sent, "lost": n})
	}
	return ctx.Err()
}

// several publishes probeFlight messages with consecutive numbers.
func (p *probe) several(ctx context.Context, topic string, from int) error {
	for i := range probeFlight {
		if err := p.publish(ctx, topic, fmt.Appendf(nil, "%d", from+i)); err != nil {
			return err
		}
	}
	return nil
}

// forget ends the kept session of a client by a clean one under its identifier.
func (p *probe) forget(ctx context.Context, id string) error {
	last, err := p.connect(context.WithoutCancel(ctx), broker.Options{ID: id})
	if err == nil {
		last.Close()
	}
	return err
}

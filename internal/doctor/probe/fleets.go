package probe

import (
	"context"
	"errors"
	"fmt"

	"edge/internal/broker"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
	"edge/stream/field"
	"edge/stream/membership"
)

const (
	leastContribution = 4 << 10 // the smallest fleet.max_message
	tinyContribution  = 64      // distinguishes a limit on sizes from missing rights

	limitOfSize = "raise the broker's limit (mosquitto: message_size_limit, max_packet_size; EMQX: max_packet_size, and max_payload_size of retainer)"
)

// fleets tests the broker for each model in a fleet. For a member: whether the broker keeps a
// retained message of the size of a contribution, and sends it to subscriptions with a wildcard. For
// a follower: whether it sends that of a member. Brokers acknowledge messages that they drop, and
// grant subscriptions for which they send nothing.
func (p *probe) fleets(ctx context.Context) error {
	for _, name := range field.Names(p.cfg.Models) {
		c := p.cfg.Models[name].Fleet
		check := "fleet " + c.Concept
		if c.Enabled() && p.unfit != "" {
			p.d.Fail(check, "the broker "+p.unfit+": who connects later does not hear of the others", "use one that does, such as mosquitto or NATS with JetStream (docs/guide/fleet.md)")
			continue
		}
		if !c.Enabled() {
			continue
		}
		topics := membership.NewTopics(p.cfg.MQTT.BaseTopic, c.Concept)
		if c.Follows() {
			if err := p.contributions(ctx, check, topics); err != nil {
				return err
			}
			continue
		}
		own, need := topics.Contribution(p.cfg.Node), int(c.MaxMessage)
		size, above, kept := need, need, false
		for {
			var err error
			if kept, err = p.keeps(ctx, topics, p.cfg.Node, size); err != nil {
				return err
			}
			if kept || size == tinyContribution {
				break
			}
			if above = size; size == leastContribution {
				size = tinyContribution
			} else {
				size = max(size/2, leastContribution)
			}
		}
		figure := map[string]int{"kept": size, "max_message": need}
		switch {
		case !kept:
			figure["kept"] = 0
			p.d.Add(check, diagnosis.Fail, "what this node publishes below "+own+"/ does not come back: the others would not hear of it",
				fmt.Sprintf("let user %s write %s and %s/#, and read %s; retained messages have to be kept, and sent to subscriptions with a wildcard (docs/guide/fleet.md)", p.user(), own, own, topics.Filter()), figure)
		case size < leastContribution:
			figure["kept"] = 0
			p.d.Add(check, diagnosis.Fail, fmt.Sprintf("the broker keeps no messages of %s, which contributions need: the others would not hear of this node", terminal.Bytes(leastContribution)), limitOfSize, figure)
			continue // it keeps no common basis either
		case size < need:
			p.d.Add(check, diagnosis.Warn, fmt.Sprintf("the broker keeps contributions of %s, and not of %s", terminal.Bytes(uint64(size)), terminal.Bytes(uint64(above))),
				fmt.Sprintf("set models.%s.fleet.max_message to %d, so that larger ones go in parts; or "+limitOfSize, name, size), figure)
		default:
			p.d.Add(check, diagnosis.OK, fmt.Sprintf("the broker keeps contributions of %s, and sends them to subscriptions with a wildcard", terminal.Bytes(uint64(need))), "", figure)
		}
		if c.Basis == membership.BasisShared {
			if err := p.sharedBasis(ctx, c.Concept, topics); err != nil {
				return err
			}
		}
	}
	return nil
}

// contributions tests whether the broker sends this node, which only follows, a contribution.
func (p *probe) contributions(ctx context.Context, check string, topics membership.Topics) error {
	some, err := p.delivers(ctx, topics.Filter(), 0, func(m broker.Message) bool {
		name, _, ok := topics.Read(m.Topic)
		return ok && name != membership.BasisName
	})
	if some {
		p.d.OK(check, "the broker sends contributions of members")
	} else if err == nil {
		p.d.Warn(check, "the broker sends no contribution, and this node, which only follows, answers by those alone",
			"if members have published (edge fleet ls --kept, as a user who may read "+topics.Filter()+"), let user "+p.user()+" read it")
	}
	return err
}

// sharedBasis tests whether this node may write the common basis of a fleet.
func (p *probe) sharedBasis(ctx context.Context, concept string, topics membership.Topics) error {
	kept, err := p.keeps(ctx, topics, membership.BasisName, leastContribution)
	if err != nil {
		return err
	}
	check, topic := "basis of fleet "+concept, topics.Contribution(membership.BasisName)
	if kept {
		p.d.Add(check, diagnosis.OK, "the broker keeps a common basis that this node publishes", "", nil)
		return nil
	}
	p.d.Add(check, diagnosis.Warn, "what this node publishes below "+topic+"/ does not come back: it cannot propose a common basis",
		fmt.Sprintf("let user %s write %s and %s/#, unless another node of the fleet may (docs/guide/fleet.md)", p.user(), topic, topic), nil)
	return nil
}

// keeps reports whether a retained message of a number of bytes, on a topic of a member of
// a fleet, reaches a subscription with a wildcard that is made later. It removes the
// message.
func (p *probe) keeps(ctx context.Context, topics membership.Topics, member string, bytes int) (kept bool, err error) {
	probe := topics.Probe(member, bytes)
	writer, err := p.connect(ctx, broker.Options{})
	if err != nil {
		return false, err
	}
	defer writer.Close()
	refused := p.retain(ctx, writer, probe.Topic, probe.Payload) != nil
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if refused { // the broker has ended the connection, and has kept nothing
		return false, nil
	}
	defer func() {
		err = errors.Join(err, p.remove(ctx, writer, probe.Topic))
	}()
	return p.delivers(ctx, topics.Contribution(member)+"/+", 0, func(m broker.Message) bool {
		return m.Topic == probe.Topic && len(m.Payload) == bytes
	})
}

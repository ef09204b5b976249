package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/internal/broker"
	"edge/internal/doctor/diagnosis"
	"edge/internal/timing"
	"edge/stream/codec"
	"edge/stream/field"
)

// retained tests whether the broker keeps a retained message, and removes the
// message.
func (p *probe) retained(ctx context.Context) (err error) {
	const name = "retained messages"
	topic := p.topic + "/kept"
	keeper, err := p.connect(ctx, broker.Options{})
	if err != nil {
		return err
	}
	defer keeper.Close()
	if err := p.retain(ctx, keeper, topic, []byte("kept")); err != nil && ctx.Err() == nil {
		p.d.Fail(name, "the broker refuses them and ends the connection: "+err.Error()+"; a daemon could not stay connected", "allow them (mosquitto, EMQX: retain_available true)")
		return nil
	}
	defer func() { // also where the test failed
		err = errors.Join(err, p.remove(ctx, keeper, topic))
	}()
	kept, err := p.finds(ctx, topic, topic)
	if err == nil && !kept {
		kept, err = p.findsUnmarked(ctx, topic)
	}
	if err != nil {
		return err
	}
	if !kept {
		p.unfit = "keeps no retained messages"
		p.d.Warn(name, "the broker keeps none: a client that connects later does not see whether the node is online, nor its scores; Home Assistant forgets the models when it starts", "allow them (mosquitto, EMQX: retain_available true)")
		return nil
	}
	found, err := p.finds(ctx, topic, p.topic+"/+")
	switch {
	case err != nil:
		return err
	case !found:
		p.unfit = "does not send retained messages to subscriptions with a wildcard"
		p.d.Warn(name, "kept, and not sent to subscriptions with a wildcard: what subscribes to "+p.owner+"/# sees state, info and scores only when they are published anew"+p.wantsRetained(),
			"subscribe to the topics by their whole names, such as "+p.owner+"/state; or use a broker that sends them, such as mosquitto")
	default:
		return p.severalRetained(ctx, keeper)
	}
	return nil
}

// severalRetained tests whether the broker keeps as many retained messages as a node publishes: its state, its info,
// its scores, its cursor and a contribution in parts. It removes them.
func (p *probe) severalRetained(ctx context.Context, keeper *broker.Client) (err error) {
	const name, several = "retained messages", 8
	prefix := p.topic + "/kept"
	for i := range several {
		topic := fmt.Sprint(prefix, i)
		if err := p.retain(ctx, keeper, topic, []byte("kept")); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, p.remove(ctx, keeper, topic))
		}()
	}
	n, err := p.delivered(ctx, p.topic+"/+", p.qos, several, func(m broker.Message) bool {
		return (m.Retained || p.unmarked) && m.Topic != prefix && strings.HasPrefix(m.Topic, prefix)
	})
	figure := map[string]int{"published": several, "kept": n}
	switch {
	case err != nil:
		return err
	case n < several:
		p.d.Add(name, diagnosis.Warn, fmt.Sprintf("of %d more the broker keeps %d: it limits their number, and who comes later does not hear of those that it leaves out", several, n),
			"raise the limit (EMQX: max_retained_messages 0)", figure)
	case p.unmarked:
		p.d.Add(name, diagnosis.Warn, "kept, and sent without the mark of a retained message: the node takes a retained sample for a new one at each connect", "do not retain samples, or give them ids", figure)
	default:
		p.d.Add(name, diagnosis.OK, "kept, and sent to subscriptions with a wildcard, too", "", figure)
	}
	return nil
}

// mark returns the topic of a message that follows one that may not be delivered.
// A broker sends to each client in order, so a client that has received the mark
// would have received that message, however slow the broker is.
func (p *probe) mark() string { return p.topic + "/mark" }

// untilMark publishes the mark, waits until n marks have arrived, and returns the
// number of other messages, at most limit.
func (p *probe) untilMark(ctx context.Context, in *inbox, n, limit int) (int, error) {
	const poll = 2 * time.Millisecond
	if err := p.publish(ctx, p.mark(), []byte("mark")); err != nil {
		return 0, err
	}
	for end := time.Now().Add(p.within.Step); ; {
		in.mu.Lock()
		marks := in.marks
		in.mu.Unlock()
		if marks >= n {
			return in.wait(ctx, limit, p.within.Quiet), ctx.Err()
		}
		if time.Now().After(end) {
			return 0, fmt.Errorf("what was published on %s did not come within %v", p.mark(), p.within.Step)
		}
		if err := timing.Sleep(ctx, poll); err != nil {
			return 0, err
		}
	}
}

// finds reports whether the broker sends the retained message of a topic to a new
// subscription to filter. A busy broker may send others late, and the message itself as a new
// one, as mochi does that has acknowledged it before.
func (p *probe) finds(ctx context.Context, topic, filter string) (bool, error) {
	return p.delivers(ctx, filter, p.qos, func(m broker.Message) bool { return m.Topic == topic && (m.Retained || p.unmarked) })
}

// findsUnmarked reports whether the broker keeps the message of a topic and sends it without the
// mark of a retained message. The first of two new subscriptions may be sent it as a new one.
func (p *probe) findsUnmarked(ctx context.Context, topic string) (found bool, err error) {
	p.unmarked = true
	for range 2 {
		if found, err = p.finds(ctx, topic, topic); err != nil || !found {
			p.unmarked = false
			break
		}
	}
	return found, err
}

// delivers reports whether the broker sends a certain message to a new subscription to filter.
func (p *probe) delivers(ctx context.Context, filter string, qos byte, certain func(broker.Message) bool) (bool, error) {
	n, err := p.delivered(ctx, filter, qos, 1, certain)
	return n > 0, err
}

// delivered is the number of certain messages, at most limit, that the broker sends to a new subscription to filter.
func (p *probe) delivered(ctx context.Context, filter string, qos byte, limit int, certain func(broker.Message) bool) (int, error) {
	in := &inbox{quiet: p.within.Quiet, mark: p.mark()}
	reader, err := p.connect(ctx, broker.Options{Receive: func(m broker.Message) {
		if m.Topic == in.mark || certain(m) {
			in.receive(m)
		}
	}})
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	for _, f := range []string{p.mark(), filter} {
		if granted, err := p.subscribe(ctx, reader, f, qos); err != nil || !granted {
			return 0, err
		}
	}
	return p.untilMark(ctx, in, 1, limit)
}

// wantsRetained returns a remark on the streams that take retained messages by a
// wildcard, "" without such streams.
func (p *probe) wantsRetained() string {
	var names []string
	for _, name := range field.Names(p.cfg.Streams) {
		if slices.ContainsFunc(p.cfg.Streams[name].Sources(), func(s codec.Stream) bool {
			return s.AcceptsRetained() && strings.ContainsAny(strings.Join(s.Topics, ""), "+#")
		}) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return "; retained messages do not reach stream " + strings.Join(names, ", ")
}

const sharedName = "shared subscriptions" // of the check

// shared tests whether a message to a shared subscription reaches exactly one of
// its members. Brokers without shared subscriptions grant them as ordinary topics.
func (p *probe) shared(ctx context.Context) error {
	const members, turns = 2, 6
	filter := "$share" + p.topic[strings.LastIndex(p.topic, "/"):] + "/" + p.topic + "/shared/+"
	in := &inbox{quiet: p.within.Quiet, mark: p.mark()}
	for range members {
		c, err := p.connect(ctx, broker.Options{Receive: in.receive})
		if err != nil {
			return err
		}
		defer c.Close()
		granted, err := p.subscribe(ctx, c, filter, p.qos)
		if err != nil {
			if ctx.Err() == nil {
				p.unshared("the broker ends the connection over them", nil)
				return nil
			}
			return err
		}
		if !granted {
			p.unshared("the broker refuses them", nil)
			return nil
		}
		if _, err := p.subscribe(ctx, c, p.mark(), p.qos); err != nil {
			return err
		}
	}
	for i := range turns {
		if err := p.publish(ctx, fmt.Sprintf("%s/shared/%d", p.topic, i), []byte("shared")); err != nil {
			return err
		}
	}
	n, err := p.untilMark(ctx, in, members, members*turns)
	if err != nil {
		return err
	}
	figure := map[string]int{"sent": turns, "delivered": n, "members": members}
	switch {
	case n == turns:
		p.d.Add(sharedName, diagnosis.OK, "each message goes to one of the members", "", figure)
	case n == 0:
		p.unshared("the broker grants them and delivers nothing", figure)
	default:
		p.unshared(fmt.Sprintf("of %d messages %d members were sent %d together", turns, members, n), figure)
	}
	return nil
}

// unshared reports that shared subscriptions do not work, which is a failure if
// the configuration has one.
func (p *probe) unshared(detail string, figure any) {
	filters := slices.DeleteFunc(p.filters(), func(f string) bool { return !strings.HasPrefix(f, sharePrefix) })
	if len(filters) == 0 {
		p.d.Add(sharedName, diagnosis.OK, detail+"; the configuration has none", "", figure)
		return
	}
	_, plain, _ := strings.Cut(strings.TrimPrefix(filters[0], sharePrefix), "/")
	p.d.Add(sharedName, diagnosis.Fail, detail+"; the configuration has "+strings.Join(filters, ", "),
		"subscribe without $share ("+plain+"), and give each node topics of its own, or it is sent what all of them are; or use a broker that delivers them, such as mosquitto", figure)
}

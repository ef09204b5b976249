package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"edge/internal/broker"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
)

// Bounds of the tests of a broker's limits.
const (
	probeWindow  = 128     // messages that are left unacknowledged
	probeQueue   = 3000    // messages while a client is away
	probePayload = 4 << 20 // bytes
	leastPayload = 256
	ownPayload   = 1024 // about the largest message of the daemon, contributions to fleets aside
)

// window measures the number of messages that the broker sends before one is
// acknowledged.
func (p *probe) window(ctx context.Context) error {
	const name = "in-flight window"
	in := &inbox{quiet: p.within.Quiet}
	c, err := p.connect(ctx, broker.Options{ID: p.clientID("window"), NoAcks: true, Receive: in.receive})
	if err != nil {
		return err
	}
	defer c.Close()
	topic := p.topic + "/window"
	if _, err := p.subscribe(ctx, c, topic, 1); err != nil {
		return err
	}
	sent, err := p.send(ctx, topic, max(probeWindow, 2*p.cfg.MQTT.InflightWindow))
	if err != nil {
		return err
	}
	n := in.wait(ctx, sent, p.within.Answer)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	need := p.cfg.MQTT.InflightWindow
	figure := map[string]int{"window": n, "at_least": sent, "configured": need}
	detail := fmt.Sprintf("the broker sends %d messages before the first is acknowledged", n)
	if n >= sent {
		detail = fmt.Sprintf("the broker sends %d messages and more before the first is acknowledged", sent)
	}
	detail += fmt.Sprintf("; mqtt.inflight_window is %d", need)
	if n < need {
		p.d.Add(name, diagnosis.Warn, detail+": each group waits for journal_flush in vain", fmt.Sprintf("set mqtt.inflight_window to %d, or raise the broker's (mosquitto: max_inflight_messages, EMQX: max_inflight)", max(n-n/5, 1)), figure)
		return nil
	}
	p.d.Add(name, diagnosis.OK, detail, "", figure)
	return nil
}

// send publishes up to n small messages, as many as time allows.
func (p *probe) send(ctx context.Context, topic string, n int) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.within.Sending)
	defer cancel()
	for sent < n {
		if err := p.publisher.Publish(ctx, topic, fmt.Appendf(nil, "%d", sent)); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			return sent, fmt.Errorf("publish on %s: %w", topic, err)
		}
		sent++
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), p.within.Step)
	defer cancel()
	return sent, p.publisher.Drain(ctx)
}

// session tests whether the broker keeps a session while its client is away, and
// measures the number of messages that it keeps.
func (p *probe) session(ctx context.Context) (err error) {
	topic, kept := p.topic+"/queue", broker.Options{ID: p.clientID("session"), KeepSession: true}
	c, err := p.connect(ctx, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.forget(ctx, kept.ID)) }()
	_, err = p.subscribe(ctx, c, topic, 1)
	c.Close()
	if err != nil {
		return err
	}
	sent, err := p.send(ctx, topic, probeQueue)
	if err != nil {
		return err
	}
	in := &inbox{quiet: p.within.Quiet}
	kept.Receive = in.receive
	back, err := p.connect(ctx, kept)
	if err != nil {
		return err
	}
	n, within := in.wait(ctx, 1, p.within.Answer), p.within.Queue
	arrival, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if n > 0 {
		n = in.wait(arrival, sent, p.within.Quiet)
	}
	slow := n > 0 && n < sent && arrival.Err() != nil
	back.Close()
	switch {
	case ctx.Err() != nil:
	case slow:
		p.d.Add(queueName, diagnosis.Warn, fmt.Sprintf("of %d messages for a client that was away %d came within %v, and more were to come", sent, n, within),
			"after an outage a node is behind until they have come: is the way to the broker slow, or the broker busy?", map[string]any{"kept": n, "sent": sent, "session_present": back.Resumed})
	default:
		p.judgeSession(n, sent, back.Resumed)
	}
	return ctx.Err()
}

const queueName = "queue while away" // of the check

// judgeSession adds the finding on n messages that the broker kept of those that
// were sent while the client was away.
func (p *probe) judgeSession(n, sent int, resumed bool) {
	const few = 100
	figure := map[string]any{"kept": n, "sent": sent, "session_present": resumed}
	note := "whether it does so over its own restart cannot be tried from here (mosquitto: persistence true; EMQX forgets it, and sessions whose client is away for session_expiry_interval, 2 h)"
	if !resumed {
		note = "it does not say that it has a session (Session Present is 0, as with ActiveMQ 5); " + note
	}
	switch {
	case n == 0:
		p.d.Add(queueName, diagnosis.Fail, "the broker forgets a client's session when it disconnects: what comes while the node is away is lost", "allow persistent sessions (mosquitto: no persistent_client_expiration of seconds, max_queued_messages above 0; EMQX: session_expiry_interval)", figure)
	case n < sent:
		grade := diagnosis.OK
		if n < few {
			grade = diagnosis.Warn
		}
		p.d.Add(queueName, grade, fmt.Sprintf("the broker keeps %d messages for a node that is away, and drops the rest silently; %s", n, note),
			fmt.Sprintf("at 1 message a second that is an outage of %s: raise it for the longest that you expect (mosquitto: max_queued_messages, EMQX: max_mqueue_len)", terminal.Duration(time.Duration(n)*time.Second)), figure)
	default:
		p.d.Add(queueName, diagnosis.OK, fmt.Sprintf("the broker keeps %d messages and more for a node that is away; %s", sent, note), "", figure)
	}
}

// payload tests whether the largest message of the configuration passes.
func (p *probe) payload(ctx context.Context) error {
	const name = "largest message"
	need := 0
	for _, s := range p.cfg.Streams {
		for _, in := range s.Sources() {
			need = max(need, int(in.MaxPayload))
		}
	}
	first := min(need, probePayload)
	size, least := first, min(first, leastPayload)
	for size >= least {
		passes, err := p.passes(ctx, size)
		if err != nil {
			return err
		}
		if passes {
			break
		}
		size /= 2
	}
	figure := map[string]int{"passes": size, "configured": need}
	switch {
	case size < least:
		p.d.Add(name, diagnosis.Fail, fmt.Sprintf("not even %d bytes pass", 2*size), "raise the broker's limit (mosquitto: max_packet_size, message_size_limit; EMQX: max_packet_size)", figure)
	case size < min(first, ownPayload):
		p.d.Add(name, diagnosis.Fail, fmt.Sprintf("%d bytes pass, %d do not; the daemon's own info and predictions may be as large, and are discarded then", size, 2*size),
			"raise the broker's limit (mosquitto: max_packet_size, message_size_limit; EMQX: max_packet_size)", figure)
	case size < first:
		p.d.Add(name, diagnosis.Warn, fmt.Sprintf("%s pass, %s do not; max_payload allows %s", terminal.Bytes(uint64(size)), terminal.Bytes(uint64(2*size)), terminal.Bytes(uint64(need))),
			"raise the broker's limit (mosquitto: max_packet_size, message_size_limit; EMQX: max_packet_size), or lower max_payload of the streams to what is sent", figure)
	default:
		p.d.Add(name, diagnosis.OK, fmt.Sprintf("%s pass; max_payload allows %s", terminal.Bytes(uint64(size)), terminal.Bytes(uint64(need))), "", figure)
	}
	return nil
}

// passes reports whether a message of this size comes back. It uses a connection
// of its own, because brokers end the connection after too large a message.
func (p *probe) passes(ctx context.Context, size int) (bool, error) {
	in := &inbox{quiet: p.within.Quiet}
	c, err := p.connect(ctx, broker.Options{ID: p.clientID("payload"), Receive: in.receive})
	if err != nil {
		return false, err
	}
	defer c.Close()
	topic := p.topic + "/payload"
	if _, err := p.subscribe(ctx, c, topic, p.qos); err != nil { // Moquette drops smaller ones of QoS 0
		return false, err
	}
	if p.publishOver(ctx, c, topic, make([]byte, size)) != nil {
		return false, ctx.Err() // the broker has ended the connection
	}
	return in.wait(ctx, 1, p.within.Answer) == 1, ctx.Err()
}

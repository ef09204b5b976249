package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/terminal"
)

// Bounds of what is tried on a broker.
const (
	trialWindow  = 128     // messages that are left unacknowledged
	trialQueue   = 3000    // messages while a client is away
	trialPayload = 4 << 20 // bytes
	leastPayload = 256
	certificate  = 14 * 24 * time.Hour // before its end it should be known
)

// trial finds out what a broker does, on topics of its own below the node's.
type trial struct {
	d     *Diagnosis
	cfg   *config.Config
	topic string // of its own, without a / at its end
	owner string // topic of the node

	publisher *broker.Publisher
}

// newTrial returns a trial whose topic is no other's.
func newTrial(d *Diagnosis, cfg *config.Config) *trial {
	id := make([]byte, 4)
	rand.Read(id)
	owner := cfg.MQTT.BaseTopic + "/" + cfg.Node
	return &trial{d: d, cfg: cfg, owner: owner, topic: owner + "/doctor-" + hex.EncodeToString(id)}
}

// examineBroker tries what the daemon needs of its broker.
func examineBroker(ctx context.Context, d *Diagnosis, cfg *config.Config) {
	t := newTrial(d, cfg)
	t.examine(ctx, func(c *broker.Client) {
		t.certificate(c.TLS())
		t.subscriptions(ctx, c)
	}, t.retained, t.shared, t.window, t.session, t.payload)
}

// ExamineDelivery tries what a broker may grant and not do.
func ExamineDelivery(ctx context.Context, d *Diagnosis, cfg *config.Config) {
	t := newTrial(d, cfg)
	t.examine(ctx, func(*broker.Client) {}, t.retained, t.shared)
}

// examine connects, sends a few messages there and back, looks at the connection, and tries
// one thing after the other.
func (t *trial) examine(ctx context.Context, look func(*broker.Client), tries ...func(context.Context) error) {
	d, cfg, began := t.d, t.cfg, time.Now()
	echo := &inbox{quiet: d.Within.quiet}
	first, err := t.connect(ctx, "", true, echo)
	if err != nil {
		advice := "see what `edge check --connect` and the broker's log say"
		for _, s := range cfg.MQTT.Servers {
			if strings.Contains(s, ".local") {
				advice += "; names that end in .local are found by systems with nss-mdns alone, which a static program does not ask: use an address"
			}
		}
		d.fail("broker", err.Error(), advice)
		return
	}
	connected := time.Since(began)
	defer first.Close()
	if t.publisher, err = broker.NewPublisher(ctx, cfg.MQTT, 1, nil, func(string, []byte, bool) {}, func() {}); err != nil {
		d.fail("broker", err.Error(), "a second connection was refused: does the broker limit them (max_connections)?")
		return
	}
	defer t.publisher.Close()
	if err := t.roundTrip(ctx, first, echo, connected); err != nil {
		d.fail("broker", err.Error(), "let user "+orNobody(cfg.MQTT.Username)+" read and write "+t.owner+"/#; the daemon needs the same")
		return
	}
	look(first)
	for _, try := range tries {
		if err := try(ctx); err != nil {
			d.fail("broker", err.Error(), "the broker or the network failed during the trial: try again, and see the broker's log")
		}
	}
}

func orNobody(username string) string {
	if username == "" {
		return "(none)"
	}
	return username
}

// inbox counts what a client hears.
type inbox struct {
	quiet time.Duration // without another message: no more are to come
	mark  string        // topic of messages that are counted by themselves; "" for none

	mu    sync.Mutex
	last  time.Time
	total int // without the marks
	marks int
}

func (b *inbox) hear(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = time.Now()
	if topic == b.mark {
		b.marks++
	} else {
		b.total++
	}
}

// settle waits until so many messages have come, or no more come: within is the
// patience for the first. It returns how many there are.
func (b *inbox) settle(ctx context.Context, n int, within time.Duration) int {
	const poll = 2 * time.Millisecond
	began := time.Now()
	for {
		b.mu.Lock()
		total, since, patience := b.total, began, within
		if b.last.After(began) {
			since, patience = b.last, b.quiet
		}
		b.mu.Unlock()
		if total >= n || time.Since(since) > patience || sleep(ctx, poll) != nil {
			return total
		}
	}
}

// connect makes a client whose messages in, if given, counts. Its kind tells it
// from the others of this trial; one of kindWindow acknowledges nothing.
func (t *trial) connect(ctx context.Context, kind string, clean bool, in *inbox) (*broker.Client, error) {
	o := broker.Options{KeepSession: !clean, NoAck: kind == kindWindow, Answer: t.d.Within.step}
	if kind != "" { // a session that another connection finds again
		o.ID = strings.ReplaceAll(t.topic[strings.LastIndex(t.topic, "/")+1:], "doctor", "edge-doctor") + "-" + kind
	}
	if in != nil {
		o.Receive = func(topic string, _ []byte, _ bool) { in.hear(topic) }
	}
	c, err := broker.Dial(ctx, t.cfg.MQTT, o)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("connect to %s: %w", strings.Join(t.cfg.MQTT.Servers, ", "), err)
	}
	return c, err
}

// Kinds of clients whose sessions differ.
const (
	kindWindow  = "window"
	kindSession = "session"
	kindPayload = "payload"
)

// subscribe returns whether the broker grants it.
func (t *trial) subscribe(ctx context.Context, c *broker.Client, filter string, qos byte) (granted bool, err error) {
	granted, err = c.Subscribe(ctx, filter, qos)
	if err != nil {
		err = fmt.Errorf("subscribe to %s: %w", filter, err)
	}
	return granted, err
}

// roundTrip sends itself a few messages.
func (t *trial) roundTrip(ctx context.Context, c *broker.Client, in *inbox, connected time.Duration) error {
	const turns = 5
	topic := t.topic + "/echo"
	if granted, err := t.subscribe(ctx, c, topic, 1); err != nil {
		return err
	} else if !granted {
		return fmt.Errorf("subscribe to %s: the broker refuses it", topic)
	}
	var times []time.Duration
	for i := range turns {
		began := time.Now()
		if err := t.publish(ctx, topic, []byte("echo")); err != nil {
			return err
		}
		if in.settle(ctx, i+1, t.d.Within.answer) <= i {
			return fmt.Errorf("what was published on %s did not come back: the broker's access list does not let it pass", topic)
		}
		in.mu.Lock()
		times = append(times, in.last.Sub(began))
		in.mu.Unlock()
	}
	if err := c.Unsubscribe(ctx, topic); err != nil {
		return err
	}
	t.d.ok("broker", "connected in %v, a message there and back takes %.1f ms", connected.Round(time.Millisecond), medianMicros(times)/1e3)
	return nil
}

func (t *trial) publish(ctx context.Context, topic string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, t.d.Within.step)
	defer cancel()
	if err := t.publisher.Publish(ctx, topic, payload); err != nil {
		return fmt.Errorf("publish on %s: %w", topic, err)
	}
	return t.publisher.Drain(ctx)
}

// certificate looks at what the broker has shown.
func (t *trial) certificate(peer tls.ConnectionState) {
	if len(peer.PeerCertificates) == 0 {
		return
	}
	end := peer.PeerCertificates[0].NotAfter
	detail := fmt.Sprintf("%s; the broker's certificate is valid until %s", tls.VersionName(peer.Version), end.Format(time.DateOnly))
	if time.Until(end) < certificate {
		t.d.warn("broker's certificate", detail, "renew it")
		return
	}
	t.d.ok("broker's certificate", "%s", detail)
}

// sharePrefix begins the filter of a shared subscription.
const sharePrefix = "$share/"

// filters are those that a daemon subscribes to for samples and labels.
func (t *trial) filters() (filters []string) {
	for _, name := range slices.Sorted(maps.Keys(t.cfg.Streams)) {
		filters = append(filters, t.cfg.Streams[name].Topics...)
	}
	for _, l := range t.cfg.Labels {
		filters = append(filters, l.Topics...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.cfg.Models)) {
		filters = append(filters, t.owner+"/"+name+"/label/#")
	}
	return filters
}

// subscriptions asks for the topics of the configuration, and leaves them again.
// Shared ones would take messages away from the daemon: they are left out.
func (t *trial) subscriptions(ctx context.Context, c *broker.Client) {
	var refused []string
	filters := slices.DeleteFunc(t.filters(), func(f string) bool { return strings.HasPrefix(f, sharePrefix) })
	for _, f := range filters {
		granted, err := t.subscribe(ctx, c, f, 0)
		if err != nil {
			t.d.fail("subscriptions", err.Error(), "see the broker's log")
			return
		}
		if !granted {
			refused = append(refused, f)
		}
		if err := c.Unsubscribe(ctx, f); err != nil {
			t.d.fail("subscriptions", err.Error(), "see the broker's log")
			return
		}
	}
	if len(refused) > 0 {
		t.d.fail("subscriptions", "the broker refuses "+strings.Join(refused, ", "), "let user "+orNobody(t.cfg.MQTT.Username)+" read these topics in the broker's access list")
		return
	}
	t.d.ok("subscriptions", "the broker grants all %d (what it lets pass, it does not say)", len(filters))
}

// retained tries whether the broker keeps a message, and takes it back.
func (t *trial) retained(ctx context.Context) (err error) {
	const name = "retained messages"
	topic := t.topic + "/kept"
	keeper, err := t.connect(ctx, "", true, nil)
	if err != nil {
		return err
	}
	defer keeper.Close()
	if err := keeper.Publish(ctx, topic, 1, true, []byte("kept")); err != nil && ctx.Err() == nil {
		t.d.fail(name, "the broker refuses them and ends the connection: "+err.Error()+"; a daemon could not stay connected", "allow them (mosquitto: retain_available true)")
		return nil
	}
	defer func() { // also where the trial failed
		err = errors.Join(err, keeper.Publish(context.WithoutCancel(ctx), topic, 1, true, nil))
	}()
	kept, err := t.finds(ctx, topic)
	if err != nil {
		return err
	}
	if !kept {
		t.d.warn(name, "the broker keeps none: whoever connects later does not see whether the node is online, nor its scores; Home Assistant forgets the models when it starts", "allow them (mosquitto: retain_available true)")
		return nil
	}
	found, err := t.finds(ctx, t.topic+"/+")
	switch {
	case err != nil:
		return err
	case !found:
		t.d.warn(name, "kept, and not sent to subscriptions with a wildcard: what subscribes to "+t.owner+"/# sees state, info and scores only when they are published anew"+t.wantsRetained(),
			"subscribe to the topics by their whole names, such as "+t.owner+"/state; or use a broker that sends them, such as mosquitto")
	default:
		t.d.ok(name, "kept, and sent to subscriptions with a wildcard, too")
	}
	return nil
}

// window finds how many messages the broker sends without an acknowledgement.
func (t *trial) window(ctx context.Context) error {
	const name = "in-flight window"
	in := &inbox{quiet: t.d.Within.quiet}
	c, err := t.connect(ctx, kindWindow, true, in)
	if err != nil {
		return err
	}
	defer c.Close()
	topic := t.topic + "/window"
	if _, err := t.subscribe(ctx, c, topic, 1); err != nil {
		return err
	}
	most := max(trialWindow, 2*t.cfg.MQTT.InflightWindow)
	sent, err := t.send(ctx, topic, most)
	if err != nil {
		return err
	}
	n := in.settle(ctx, sent, t.d.Within.answer)
	need := t.cfg.MQTT.InflightWindow
	figure := map[string]int{"window": n, "at_least": sent, "configured": need}
	words := fmt.Sprintf("the broker sends %d messages before the first is acknowledged", n)
	if n >= sent {
		words = fmt.Sprintf("the broker sends %d messages and more before the first is acknowledged", sent)
	}
	words += fmt.Sprintf("; mqtt.inflight_window is %d", need)
	switch {
	case n < need:
		t.d.add(name, Warn, words+": each group waits for journal_flush in vain", fmt.Sprintf("set mqtt.inflight_window to %d, or raise the broker's (mosquitto: max_inflight_messages)", max(n-n/5, 1)), figure)
	default:
		t.d.add(name, OK, words, "", figure)
	}
	return nil
}

// send publishes up to n small messages, as many as time allows.
func (t *trial) send(ctx context.Context, topic string, n int) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.d.Within.sending)
	defer cancel()
	for sent < n {
		if err := t.publisher.Publish(ctx, topic, fmt.Appendf(nil, "%d", sent)); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			return sent, fmt.Errorf("publish on %s: %w", topic, err)
		}
		sent++
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), t.d.Within.step)
	defer cancel()
	return sent, t.publisher.Drain(ctx)
}

// session finds whether the broker keeps a session while a client is away, and
// how many messages.
func (t *trial) session(ctx context.Context) (err error) {
	const name = "queue while away"
	topic := t.topic + "/queue"
	c, err := t.connect(ctx, kindSession, false, nil)
	if err != nil {
		return err
	}
	defer func() { // a clean session under its id ends the other
		last, e := t.connect(context.WithoutCancel(ctx), kindSession, true, nil)
		if e == nil {
			last.Close()
		}
		err = errors.Join(err, e)
	}()
	_, err = t.subscribe(ctx, c, topic, 1)
	c.Close()
	if err != nil {
		return err
	}
	sent, err := t.send(ctx, topic, trialQueue)
	if err != nil {
		return err
	}
	in := &inbox{quiet: t.d.Within.quiet}
	back, err := t.connect(ctx, kindSession, false, in)
	if err != nil {
		return err
	}
	n, resumed := in.settle(ctx, sent, t.d.Within.answer), back.Resumed()
	back.Close()
	figure := map[string]any{"kept": n, "sent": sent, "session_present": resumed}
	restart := "whether it does so over its own restart cannot be tried from here (mosquitto: persistence true)"
	const few = 100
	switch {
	case !resumed || n == 0:
		t.d.add(name, Fail, "the broker forgets a client's session when it disconnects: what comes while the node is away is lost", "allow persistent sessions (mosquitto: no persistent_client_expiration of seconds, max_queued_messages above 0)", figure)
	case n < sent:
		grade := OK
		if n < few {
			grade = Warn
		}
		t.d.add(name, grade, fmt.Sprintf("the broker keeps %d messages for a node that is away, and drops the rest silently; %s", n, restart),
			fmt.Sprintf("at 1 message a second that is an outage of %s: raise it for the longest that you expect (mosquitto: max_queued_messages)", terminal.Duration(time.Duration(n)*time.Second)), figure)
	default:
		t.d.add(name, OK, fmt.Sprintf("the broker keeps %d messages and more for a node that is away; %s", sent, restart), "", figure)
	}
	return nil
}

// payload finds whether the largest message of the configuration passes.
func (t *trial) payload(ctx context.Context) error {
	const name = "largest message"
	need := 0
	for _, s := range t.cfg.Streams {
		need = max(need, int(s.MaxPayload))
	}
	tried := min(need, trialPayload)
	size := tried
	for size >= leastPayload {
		passes, err := t.passes(ctx, size)
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
	case size < leastPayload:
		t.d.add(name, Fail, fmt.Sprintf("not even %d bytes pass", leastPayload), "raise the broker's limit (mosquitto: max_packet_size, message_size_limit)", figure)
	case size < tried:
		t.d.add(name, Warn, fmt.Sprintf("%s pass, %s do not; max_payload allows %s", terminal.Bytes(uint64(size)), terminal.Bytes(uint64(2*size)), terminal.Bytes(uint64(need))),
			"raise the broker's limit (mosquitto: max_packet_size, message_size_limit), or lower max_payload of the streams to what is sent", figure)
	default:
		t.d.add(name, OK, fmt.Sprintf("%s pass; max_payload allows %s", terminal.Bytes(uint64(size)), terminal.Bytes(uint64(need))), "", figure)
	}
	return nil
}

// passes reports whether a message of some size comes back. Brokers end the
// connection over one that is too large, so it has one of its own.
func (t *trial) passes(ctx context.Context, size int) (bool, error) {
	in := &inbox{quiet: t.d.Within.quiet}
	c, err := t.connect(ctx, kindPayload, true, in)
	if err != nil {
		return false, err
	}
	defer c.Close()
	topic := t.topic + "/payload"
	if _, err := t.subscribe(ctx, c, topic, 0); err != nil {
		return false, err
	}
	if c.Publish(ctx, topic, 1, false, make([]byte, size)) != nil {
		return false, ctx.Err() // the broker has ended the connection
	}
	return in.settle(ctx, 1, t.d.Within.answer) == 1, ctx.Err()
}

// Package probe tests the behaviour of a broker, on topics of its own below the node's: what it
// grants, what it delivers, what it keeps, and how much. It adds findings to a diagnosis.
//
//	probe.go     All, Delivery; connections, subscriptions, a message there and back
//	inbox.go     counts the messages that a test receives
//	names.go     processes that answer by the name of the node; starts.go those with its client_id
//	delivery.go  retained messages, shared subscriptions
//	fleets.go    contributions and common bases of fleets
//	flight.go    messages that were not acknowledged when a connection ended
//	limits.go    window, queue of a client that is away, largest message
//
// All brokers are the same to it: a finding follows from what a broker did.
package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/stream/field"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// Limits are the longest durations of the tests.
type Limits struct {
	Step    time.Duration // one answer of the broker
	Answer  time.Duration // a message back, once the broker has acknowledged it
	Quiet   time.Duration // without another message: no more will arrive
	Sending time.Duration // probeQueue messages
	Queue   time.Duration // those of them that the broker has kept, after the first
}

// Patient returns the usual limits multiplied by times.
func Patient(times int) Limits {
	n := time.Duration(times)
	return Limits{Step: n * 5 * time.Second, Answer: n * 2 * time.Second, Quiet: n * 500 * time.Millisecond, Sending: n * 8 * time.Second, Queue: n * 16 * time.Second}
}

// probe tests the behaviour of a broker on topics of its own below the
// node's.
type probe struct {
	d      *diagnosis.Diagnosis
	cfg    *config.Config
	within Limits
	topic  string // of the probe, without a / at its end
	owner  string // topic of the node
	qos    byte   // of the daemon
	named  int    // processes that answer by the name of the node
	unfit  string // why the broker is none for a fleet, by the test of retained messages; "": it may be one

	unmarked bool // the broker sends retained messages without their mark

	publisher *broker.Publisher
}

// newProbe returns a probe with a random topic.
func newProbe(d *diagnosis.Diagnosis, cfg *config.Config, within Limits) *probe {
	id := make([]byte, 4)
	rand.Read(id)
	owner := cfg.MQTT.BaseTopic + "/" + cfg.Node
	return &probe{d: d, cfg: cfg, within: within, owner: owner, qos: byte(cfg.MQTT.QoS), topic: owner + "/doctor-" + hex.EncodeToString(id)}
}

// All tests the properties that the daemon needs of its broker, and adds the findings to d.
func All(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, within Limits) {
	p := newProbe(d, cfg, within)
	tests := []func(context.Context) error{p.names, p.retained, p.shared, p.fleets}
	if p.qos > 0 {
		tests = append(tests, p.window, p.flight, p.session)
	}
	p.run(ctx, func(c *broker.Client, in *inbox) {
		p.certificate(c)
		p.subscriptions(ctx, c, in)
	}, p.followed(append(tests, p.payload)...)...)
}

// Delivery tests what a broker grants, and the deliveries that it may grant and not make: retained messages,
// contributions to fleets and shared subscriptions. It adds the findings to d.
func Delivery(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, within Limits) {
	p := newProbe(d, cfg, within)
	p.run(ctx, func(c *broker.Client, in *inbox) { p.subscriptions(ctx, c, in) }, p.retained, p.shared, p.fleets)
}

// run connects, sends a few messages there and back, calls inspect with the
// connection and its inbox, and runs one test after the other.
func (p *probe) run(ctx context.Context, inspect func(*broker.Client, *inbox), tests ...func(context.Context) error) {
	d, cfg, began := p.d, p.cfg, time.Now()
	echoes := &inbox{quiet: p.within.Quiet}
	first, err := p.connect(ctx, broker.Options{Receive: echoes.receive})
	if err != nil {
		advice := cmp.Or(mqtt.Advice(err), "see what the broker's log says")
		for _, s := range cfg.MQTT.Servers {
			if strings.Contains(s, ".local") {
				advice += "; names that end in .local are found by systems with nss-mdns alone, which a static program does not ask: use an address"
			}
		}
		d.Fail("broker", err.Error(), advice)
		return
	}
	connected := time.Since(began)
	defer first.Close()
	if p.publisher, err = broker.NewPublisher(ctx, cfg.MQTT, p.qos, broker.Listener{}); err != nil {
		d.Fail("broker", err.Error(), "a second connection was refused: does the broker limit them (max_connections)?")
		return
	}
	defer p.publisher.Close()
	if errors.Is(p.unsubscribe(ctx, first, p.topic+"/echo"), mqtt.ErrLost) {
		d.Fail("broker", "it ends a connection when a second one with another client_id comes: it takes the two for one client", "if it takes the user name for the client identifier (mosquitto: use_username_as_clientid), each command ends the daemon's connection: give commands a user of their own, as by EDGE_MQTT_USERNAME")
		return
	}
	if err := p.roundTrip(ctx, first, echoes, connected); err != nil {
		d.Fail("broker", err.Error(), "let user "+p.user()+" read and write "+p.owner+"/#; the daemon needs the same. For a broker that allows QoS 0 alone set mqtt.qos: 0")
		return
	}
	inspect(first, echoes)
	for _, test := range tests {
		err := test(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		const advice = "the broker or the network failed during the test: try again, and see the broker's log"
		if errors.Is(err, errConnect) {
			d.Fail("broker", err.Error()+": the tests that are missing here were not done", advice+"; or the broker limits connections, and a test needs four (mosquitto: max_connections)")
			break
		}
		d.Fail("broker", err.Error(), advice)
	}
	if ctx.Err() != nil {
		d.Fail("broker", "the time for all tests was over: those that are missing here were not done", "edge doctor --patience N takes N times as long; a slow way to the broker needs it")
	}
}

// certificate examines the broker's certificate.
func (p *probe) certificate(c *broker.Client) {
	if len(c.TLS.PeerCertificates) == 0 {
		return
	}
	p.d.Certificate("broker's certificate", tls.VersionName(c.TLS.Version)+"; the broker's certificate is valid", c.TLS.PeerCertificates[0])
}

// user returns the user name of the connection for advice.
func (p *probe) user() string {
	if p.cfg.MQTT.Username == "" {
		return "(none)"
	}
	return p.cfg.MQTT.Username
}

// errConnect is a connection that the broker or the network refuses.
var errConnect = errors.New("connect")

// connect returns a connection to the broker. The error is errConnect, unless ctx has ended.
func (p *probe) connect(ctx context.Context, o broker.Options) (*broker.Client, error) {
	c, err := broker.Dial(ctx, p.cfg.MQTT, o)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w to %s: %w", errConnect, strings.Join(p.cfg.MQTT.Servers, ", "), err)
	}
	return c, err
}

// clientID returns the identifier of a session that another connection of this
// probe resumes.
func (p *probe) clientID(kind string) string {
	return strings.ReplaceAll(p.topic[strings.LastIndex(p.topic, "/")+1:], "doctor", "edge-doctor") + "-" + kind
}

// step bounds one answer of the broker.
func (p *probe) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.within.Step, fmt.Errorf("no answer within %v", p.within.Step))
}

// subscribe reports whether the broker grants a subscription.
func (p *probe) subscribe(ctx context.Context, c *broker.Client, filter string, qos byte) (granted bool, err error) {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Subscribe(ctx, filter, qos)
}

// unsubscribe ends a subscription.
func (p *probe) unsubscribe(ctx context.Context, c *broker.Client, filter string) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Unsubscribe(ctx, filter)
}

// publishOver publishes a message over a connection.
func (p *probe) publishOver(ctx context.Context, c *broker.Client, topic string, payload []byte) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Publish(ctx, topic, p.qos, false, payload)
}

// retain publishes a retained message over a connection.
func (p *probe) retain(ctx context.Context, c *broker.Client, topic string, payload []byte) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Publish(ctx, topic, p.qos, true, payload)
}

// remove removes a retained message, also after the end of ctx.
func (p *probe) remove(ctx context.Context, c *broker.Client, topic string) error {
	return p.retain(context.WithoutCancel(ctx), c, topic, nil)
}

// publish publishes a message over the probe's publisher.
func (p *probe) publish(ctx context.Context, topic string, payload []byte) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	err := p.publisher.Publish(ctx, topic, payload)
	if err == nil {
		err = p.publisher.Drain(ctx)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("publish on %s: %w", topic, err)
}

// roundTrip sends a few messages that c receives.
func (p *probe) roundTrip(ctx context.Context, c *broker.Client, in *inbox, connected time.Duration) error {
	const turns = 5
	topic := p.topic + "/echo"
	if granted, err := p.subscribe(ctx, c, topic, p.qos); err != nil {
		return err
	} else if !granted {
		return fmt.Errorf("subscribe to %s: the broker refuses it", topic)
	}
	var times []time.Duration
	for i := range turns {
		began := time.Now()
		if err := p.publish(ctx, topic, []byte("echo")); err != nil {
			return err
		}
		if in.wait(ctx, i+1, p.within.Answer) <= i {
			return fmt.Errorf("what was published on %s did not come back: the broker's access list does not let it pass", topic)
		}
		in.mu.Lock()
		times = append(times, in.last.Sub(began))
		in.mu.Unlock()
	}
	if err := p.unsubscribe(ctx, c, topic); err != nil {
		return err
	}
	slices.Sort(times)
	median, longest, l := times[turns/2], times[turns-1], &p.within // a silence of one round trip is not the end of the messages
	l.Answer, l.Quiet = max(l.Answer, 2*longest), max(l.Quiet, 2*longest)
	p.d.OK("broker", "a connection takes %v, a message there and back %.1f ms", connected.Round(time.Millisecond), median.Seconds()*1e3)
	return nil
}

// sharePrefix begins the filter of a shared subscription.
const sharePrefix = "$share/"

// filters returns the filters to which a daemon subscribes for samples, labels
// and the contributions of fleets.
func (p *probe) filters() (filters []string) {
	for _, name := range field.Names(p.cfg.Streams) {
		filters = append(filters, p.cfg.Streams[name].Filters()...)
	}
	for _, l := range p.cfg.Labels {
		filters = append(filters, l.Topics...)
	}
	for _, name := range field.Names(p.cfg.Models) {
		filters = append(filters, p.owner+"/"+name+"/label/#")
		if c := p.cfg.Models[name].Fleet; c.Enabled() {
			filters = append(filters, membership.NewTopics(p.cfg.MQTT.BaseTopic, c.Concept).Filter())
		}
	}
	return filters
}

// subscriptions subscribes to the topics of the configuration and unsubscribes
// again. It leaves shared subscriptions out, which would take messages from the
// daemon. in receives what the broker sends.
func (p *probe) subscriptions(ctx context.Context, c *broker.Client, in *inbox) {
	var refused []string
	received := in.count()
	filters := slices.DeleteFunc(p.filters(), func(f string) bool { return strings.HasPrefix(f, sharePrefix) })
	for _, f := range filters {
		granted, err := p.subscribe(ctx, c, f, 0)
		if err == nil && !granted {
			refused = append(refused, f)
		}
		if err == nil {
			err = p.unsubscribe(ctx, c, f)
		}
		if err != nil {
			detail, advice := err.Error(), "see the broker's log"
			if n := in.count() - received; n > 0 {
				detail = fmt.Sprintf("%v, and %d messages on %s", err, n, f)
				advice = "if the broker keeps more messages for these topics than its queue holds, it drops its answer with them (mosquitto logs `Outgoing messages are being dropped`): raise the limit (mosquitto: max_queued_messages), or give each site of a fleet a concept of its own"
			}
			p.d.Fail("subscriptions", detail, advice)
			return
		}
	}
	if len(refused) > 0 {
		p.d.Fail("subscriptions", "the broker refuses "+strings.Join(refused, ", "), "let user "+p.user()+" read these topics in the broker's access list"+mqtt.WordsAdvice(refused...))
		return
	}
	p.d.OK("subscriptions", "the broker grants all %d (what it lets pass, it does not say)", len(filters))
}

package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/stream/field"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// brokerProbe tests the behaviour of a broker on topics of its own below the
// node's.
type brokerProbe struct {
	d     *Diagnosis
	cfg   *config.Config
	topic string // of the probe, without a / at its end
	owner string // topic of the node
	qos   byte   // of the daemon
	named int    // processes that answer by the name of the node
	unfit string // why the broker is none for a fleet, by the test of retained messages; "": it may be one

	publisher *broker.Publisher
}

// newBrokerProbe returns a probe with a random topic.
func newBrokerProbe(d *Diagnosis, cfg *config.Config) *brokerProbe {
	id := make([]byte, 4)
	rand.Read(id)
	owner := cfg.MQTT.BaseTopic + "/" + cfg.Node
	return &brokerProbe{d: d, cfg: cfg, owner: owner, qos: byte(cfg.MQTT.QoS), topic: owner + "/doctor-" + hex.EncodeToString(id)}
}

// examineBroker tests the properties that the daemon needs of its broker.
func examineBroker(ctx context.Context, d *Diagnosis, cfg *config.Config) {
	p := newBrokerProbe(d, cfg)
	tests := []func(context.Context) error{p.names, p.retained, p.shared, p.fleets}
	if p.qos > 0 {
		tests = append(tests, p.window, p.flight, p.session)
	}
	p.examine(ctx, func(c *broker.Client, in *inbox) {
		p.certificate(c)
		p.subscriptions(ctx, c, in)
	}, p.followed(append(tests, p.payload)...)...)
}

// ExamineDelivery tests what a broker grants, and the deliveries that it may grant and not make:
// retained messages, contributions to fleets and shared subscriptions.
func ExamineDelivery(ctx context.Context, cfg *config.Config) *Diagnosis {
	d := &Diagnosis{V: 1, Grade: OK, within: patient(1)}
	ctx, cancel := context.WithTimeout(ctx, d.within.all)
	defer cancel()
	p := newBrokerProbe(d, cfg)
	p.examine(ctx, func(c *broker.Client, in *inbox) { p.subscriptions(ctx, c, in) }, p.retained, p.shared, p.fleets)
	return d
}

// examine connects, sends a few messages there and back, calls inspect with the
// connection and its inbox, and runs one test after the other.
func (p *brokerProbe) examine(ctx context.Context, inspect func(*broker.Client, *inbox), tests ...func(context.Context) error) {
	d, cfg, began := p.d, p.cfg, time.Now()
	echoes := &inbox{quiet: d.within.quiet}
	first, err := p.connect(ctx, broker.Options{Receive: echoes.receive})
	if err != nil {
		advice := cmp.Or(mqtt.Advice(err), "see what the broker's log says")
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
	if p.publisher, err = broker.NewPublisher(ctx, cfg.MQTT, p.qos, broker.Listener{}); err != nil {
		d.fail("broker", err.Error(), "a second connection was refused: does the broker limit them (max_connections)?")
		return
	}
	defer p.publisher.Close()
	if err := p.roundTrip(ctx, first, echoes, connected); err != nil {
		d.fail("broker", err.Error(), "let user "+p.user()+" read and write "+p.owner+"/#; the daemon needs the same. For a broker that allows QoS 0 alone set mqtt.qos: 0")
		return
	}
	inspect(first, echoes)
	for _, test := range tests {
		if err := test(ctx); err != nil && ctx.Err() == nil {
			d.fail("broker", err.Error(), "the broker or the network failed during the test: try again, and see the broker's log")
		}
	}
	if ctx.Err() != nil {
		d.fail("broker", "the time for all tests was over: those that are missing here were not done", "edge doctor --patience N takes N times as long; a slow way to the broker needs it")
	}
}

// user returns the user name of the connection for advice.
func (p *brokerProbe) user() string {
	if p.cfg.MQTT.Username == "" {
		return "(none)"
	}
	return p.cfg.MQTT.Username
}

// connect connects to the broker.
func (p *brokerProbe) connect(ctx context.Context, o broker.Options) (*broker.Client, error) {
	c, err := broker.Dial(ctx, p.cfg.MQTT, o)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("connect to %s: %w", strings.Join(p.cfg.MQTT.Servers, ", "), err)
	}
	return c, err
}

// clientID returns the identifier of a session that another connection of this
// probe resumes.
func (p *brokerProbe) clientID(kind string) string {
	return strings.ReplaceAll(p.topic[strings.LastIndex(p.topic, "/")+1:], "doctor", "edge-doctor") + "-" + kind
}

// step bounds one answer of the broker.
func (p *brokerProbe) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.d.within.step, fmt.Errorf("no answer within %v", p.d.within.step))
}

// subscribe reports whether the broker grants a subscription.
func (p *brokerProbe) subscribe(ctx context.Context, c *broker.Client, filter string, qos byte) (granted bool, err error) {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Subscribe(ctx, filter, qos)
}

// unsubscribe ends a subscription.
func (p *brokerProbe) unsubscribe(ctx context.Context, c *broker.Client, filter string) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Unsubscribe(ctx, filter)
}

// publishOver publishes a message over a connection.
func (p *brokerProbe) publishOver(ctx context.Context, c *broker.Client, topic string, payload []byte) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Publish(ctx, topic, p.qos, false, payload)
}

// retain publishes a retained message over a connection.
func (p *brokerProbe) retain(ctx context.Context, c *broker.Client, topic string, payload []byte) error {
	ctx, cancel := p.step(ctx)
	defer cancel()
	return c.Publish(ctx, topic, p.qos, true, payload)
}

// remove removes a retained message, also after the end of ctx.
func (p *brokerProbe) remove(ctx context.Context, c *broker.Client, topic string) error {
	return p.retain(context.WithoutCancel(ctx), c, topic, nil)
}

// publish publishes a message over the probe's publisher.
func (p *brokerProbe) publish(ctx context.Context, topic string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.d.within.step)
	defer cancel()
	if err := p.publisher.Publish(ctx, topic, payload); err != nil {
		return fmt.Errorf("publish on %s: %w", topic, err)
	}
	return p.publisher.Drain(ctx)
}

// roundTrip sends a few messages that c receives.
func (p *brokerProbe) roundTrip(ctx context.Context, c *broker.Client, in *inbox, connected time.Duration) error {
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
		if in.wait(ctx, i+1, p.d.within.answer) <= i {
			return fmt.Errorf("what was published on %s did not come back: the broker's access list does not let it pass", topic)
		}
		in.mu.Lock()
		times = append(times, in.last.Sub(began))
		in.mu.Unlock()
	}
	if err := p.unsubscribe(ctx, c, topic); err != nil {
		return err
	}
	longest, l := slices.Max(times), &p.d.within // a silence of one round trip is not the end of the messages
	l.answer, l.quiet = max(l.answer, 2*longest), max(l.quiet, 2*longest)
	p.d.ok("broker", "a connection takes %v, a message there and back %.1f ms", connected.Round(time.Millisecond), medianMicros(times)/1e3)
	return nil
}

// sharePrefix begins the filter of a shared subscription.
const sharePrefix = "$share/"

// filters returns the filters to which a daemon subscribes for samples, labels
// and the contributions of fleets.
func (p *brokerProbe) filters() (filters []string) {
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
func (p *brokerProbe) subscriptions(ctx context.Context, c *broker.Client, in *inbox) {
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
			p.d.fail("subscriptions", detail, advice)
			return
		}
	}
	if len(refused) > 0 {
		p.d.fail("subscriptions", "the broker refuses "+strings.Join(refused, ", "), "let user "+p.user()+" read these topics in the broker's access list"+mqtt.WordsAdvice(refused...))
		return
	}
	p.d.ok("subscriptions", "the broker grants all %d (what it lets pass, it does not say)", len(filters))
}

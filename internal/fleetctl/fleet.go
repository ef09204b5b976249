package fleetctl

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

const (
	quiet = time.Second // without a message after which all retained ones have come
	busy  = 3           // times quiet without a retained one, where members publish meanwhile

	answerWithin = 5 * time.Second // for a broker, which is believed then

	manyMessages = 1000 // at once, above which mosquitto sends no more: its max_queued_messages
)

// Fleet is one fleet at a broker, which keeps the contributions of its members.
type Fleet struct {
	MQTT    mqtt.Config
	Concept string
	Limit   int // bytes of a message that Import sends

	quiet time.Duration // 0: the constant
}

// Retained are the retained messages of a fleet.
type Retained struct {
	Contributions []Contribution // by name, with the common basis
	Dropped       int            // messages that there was no room for
	Many          bool           // there were more than manyMessages: the broker may not have sent all
	Strays        []string       // topics with messages that are those of no member
}

// Contribution is the retained message of one member, or of the common basis, whose Member
// is membership.BasisName.
type Contribution struct {
	*fleet.Contribution
	Member string
	Data   []byte   // as encoded
	Topics []string // with its messages
	Err    error    // it cannot be read
}

// String describes the version and the size of the contribution.
func (c *Contribution) String() string {
	if c.Err != nil {
		return "it cannot be read: " + c.Err.Error()
	}
	return fmt.Sprintf("version %d.%d with %d labels, %s", c.Epoch, c.Sequence, c.N, terminal.Bytes(uint64(len(c.Data))))
}

// topics returns the topics of the fleet.
func (f *Fleet) topics() membership.Topics { return membership.NewTopics(f.MQTT.BaseTopic, f.Concept) }

// Read returns the messages that the broker keeps of the fleet; of one member if it is not "".
func (f *Fleet) Read(ctx context.Context, member string) (*Retained, error) {
	topics := f.topics()
	filters := []string{topics.Filter(), topics.Parts()}
	if member != "" {
		filters = []string{topics.Contribution(member), topics.Contribution(member) + "/+"}
	}
	var mu sync.Mutex
	var last, retained time.Time // when a message came; the silence begins once all is subscribed
	messages := 0                // retained ones
	collected := membership.NewCollector(topics)
	client, err := broker.Connect(ctx, f.MQTT, broker.Options{Receive: func(m broker.Message) {
		mu.Lock()
		defer mu.Unlock()
		if last = time.Now(); m.Retained {
			retained = last
			messages++
		}
		collected.Receive(m.Topic, m.Payload)
	}})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	refused, err := client.SubscribeAll(ctx, filters, 0)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("the broker refuses the subscription to %s: give this user the right to read it", strings.Join(refused, ", "))
	}
	if err != nil {
		return nil, broker.Failure(ctx, err)
	}
	mu.Lock()
	last = time.Now()
	retained = last
	mu.Unlock()
	err = f.settle(ctx, client, func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return min(f.silence()-time.Since(last), busy*f.silence()-time.Since(retained))
	})
	if err != nil {
		return nil, broker.Failure(ctx, err)
	}
	mu.Lock()
	defer mu.Unlock()
	all := &Retained{Dropped: collected.Dropped(), Many: messages > manyMessages, Strays: collected.Strays()}
	for _, name := range collected.Members() {
		one := Contribution{Member: name, Topics: collected.Kept(name)}
		if one.Contribution, one.Data, one.Err = collected.Contribution(name); one.Contribution == nil {
			one.Err = explain(one.Data, one.Err)
		}
		all.Contributions = append(all.Contributions, one)
	}
	return all, nil
}

// settle waits until no time is left of a silence in which the retained messages would have come. A process, or a
// network, that has stood still meanwhile was silent as well: so it asks the broker for an answer, which comes
// behind what the broker has sent before, and no time must be left after that either. It needs no permission for it.
func (f *Fleet) settle(ctx context.Context, client *broker.Client, left func() time.Duration) error {
	for {
		for wait := left(); wait > 0; wait = left() {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		asked, cancel := context.WithTimeout(ctx, answerWithin)
		err := client.Answer(asked)
		silent := asked.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && !silent {
			return err
		}
		if left() <= 0 {
			return nil
		}
	}
}

// silence is the time without a message after which all retained ones have come.
func (f *Fleet) silence() time.Duration {
	if f.quiet > 0 {
		return f.quiet
	}
	return quiet
}

// one returns the retained contribution of a member, nil for none.
func (f *Fleet) one(ctx context.Context, member string) (*Contribution, error) {
	all, err := f.Read(ctx, member)
	if err != nil || len(all.Contributions) == 0 {
		return nil, err
	}
	return &all.Contributions[0], nil
}

// Find returns what the broker keeps of a member. If that is nothing, the error has the names of the
// members of which it keeps something.
func (f *Fleet) Find(ctx context.Context, member string) (*Contribution, error) {
	kept, err := f.one(ctx, member)
	if err != nil || kept != nil {
		return kept, err
	}
	all, err := f.Read(ctx, "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range all.Contributions {
		if c.Member != membership.BasisName {
			names = append(names, c.Member)
		}
	}
	others := "nor of any other member, or this user may not read it"
	if len(names) > 0 {
		others = "but of " + strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("the broker keeps no contribution of %s on %s, %s; a member publishes after its warm-up, and one that was forgotten after more labels", member, f.topics().Contribution(member), others)
}

// Forget removes the retained messages of a member that Find has found.
func (f *Fleet) Forget(ctx context.Context, found *Contribution) error {
	var clear []membership.Publication
	for _, topic := range found.Topics {
		clear = append(clear, membership.Publication{Topic: topic})
	}
	if err := f.send(ctx, clear); err != nil {
		return err
	}
	kept, err := f.one(ctx, found.Member)
	if err != nil {
		return err
	}
	if kept != nil {
		topic := f.topics().Contribution(found.Member)
		return exit.With(exit.Broker, fmt.Errorf("the broker still keeps %s: either %s runs and has published again, or this user may not write there; it needs the right to write %s and %s/#", kept.Topics[0], found.Member, topic, topic))
	}
	return nil
}

// Online reports whether the broker knows a node as online. It is false for a node
// whose state this user may not read.
func (f *Fleet) Online(ctx context.Context, node string) (online bool, err error) {
	state := make(chan string, 1)
	client, err := broker.Connect(ctx, f.MQTT, broker.Options{Receive: func(m broker.Message) {
		select {
		case state <- string(m.Payload):
		default:
		}
	}})
	if err != nil {
		return false, err
	}
	defer client.Close()
	if granted, err := client.Subscribe(ctx, f.MQTT.BaseTopic+"/"+node+"/state", 0); err != nil {
		return false, broker.Failure(ctx, err)
	} else if !granted {
		return false, nil
	}
	subscribed := time.Now()
	err = f.settle(ctx, client, func() time.Duration {
		if len(state) > 0 {
			return 0
		}
		return f.silence() - time.Since(subscribed)
	})
	if err != nil {
		return false, broker.Failure(ctx, err)
	}
	select {
	case s := <-state:
		return s == "online", nil
	default:
		return false, nil
	}
}

// publish lets the broker keep a contribution that is newer than the one it has.
func (f *Fleet) publish(ctx context.Context, c *fleet.Contribution, data []byte) error {
	kept, err := f.one(ctx, c.Member)
	if err != nil {
		return err
	}
	messages := f.topics().Messages(c.Member, c.Version, data, f.Limit)
	if kept != nil && kept.Err == nil {
		if kept.Version == c.Version && bytes.Equal(kept.Data, data) {
			return nil
		}
		if !c.Newer(kept.Version) {
			return fmt.Errorf("the broker has version %d.%d of %s, and the file version %d.%d: the newer one stays", kept.Epoch, kept.Sequence, c.Member, c.Epoch, c.Sequence)
		}
	}
	if kept != nil {
		messages = append(messages, obsolete(kept.Topics, messages)...)
	}
	if err := f.send(ctx, messages); err != nil {
		return err
	}
	if kept, err = f.one(ctx, c.Member); err != nil {
		return err
	}
	if kept == nil || kept.Err != nil || !bytes.Equal(kept.Data, data) {
		topic := f.topics().Contribution(c.Member)
		return exit.With(exit.Broker, fmt.Errorf("the broker has not kept the contribution: this user needs the right to write %s and %s/#, and the broker room for messages of %d bytes", topic, topic, f.Limit))
	}
	return nil
}

// obsolete returns the publications that clear those topics that no new message replaces.
func obsolete(kept []string, by []membership.Publication) (clear []membership.Publication) {
	replaced := map[string]bool{}
	for _, m := range by {
		replaced[m.Topic] = true
	}
	for _, topic := range kept {
		if !replaced[topic] {
			clear = append(clear, membership.Publication{Topic: topic})
		}
	}
	return clear
}

// send publishes retained messages over one connection.
func (f *Fleet) send(ctx context.Context, messages []membership.Publication) error {
	client, err := broker.Connect(ctx, f.MQTT, broker.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, m := range messages {
		if err := client.Publish(ctx, m.Topic, 1, true, m.Payload); err != nil {
			return broker.Failure(ctx, fmt.Errorf("publish on %s: %w", m.Topic, err))
		}
	}
	return nil
}

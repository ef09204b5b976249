package stream

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"edge/model"
	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

const (
	fleetEvery   = time.Second           // interval of the checks for due work
	waitingEvery = 20 * time.Millisecond // interval of looks at the outbox while publications wait for room in it
	fleetAhead   = 16                    // publications in the outbox at which those of a fleet wait

	maxFleetMessages = 4096 // that wait to be read

	markEpoch = 16 // first bit of the epoch of the own contributions in a model's mark
)

// FleetModel is a Model that takes part in a fleet; *online.Loop implements it.
type FleetModel interface {
	// Contribution returns the contribution of the model's own labels.
	Contribution(ctx context.Context, member string) (*fleet.Contribution, error)
	// Merge returns the sum of a set.
	Merge(ctx context.Context, member string, set *fleet.Set) (*fleet.Merge, error)
}

// Follow is online.Follow for one configuration.
type Follow func(member string, set *fleet.Set) (*model.Posterior, *fleet.Merge, error)

// fleets are the parts of a node's models in fleets. One goroutine, in run, receives,
// publishes and merges.
type fleets struct {
	node  *Node
	inbox *mqtt.Queue[*mqtt.Message]
	wake  chan struct{} // capacity 1

	mu      sync.Mutex // guards the fields below
	conn    mqtt.Origin
	members []*fleetMember
	flooded int // messages that found inbox full
}

// fleetMember is the part of one model.
type fleetMember struct {
	*membership.Member // set by newFleets and inherit, before run
	of                 *modelState
	asked              uint64                   // epoch that was given to the committer
	waiting            []membership.Publication // for room in the outbox
}

// newFleets returns the parts of the models that are in a fleet.
func (n *Node) newFleets() *fleets {
	f := &fleets{
		node: n, inbox: mqtt.NewQueue(maxFleetMessages, membership.MaxWaiting, mqtt.MessageSize),
		wake: make(chan struct{}, 1),
	}
	instance := rand.Uint64()
	for _, m := range n.models {
		if !m.Fleet.Enabled() {
			continue
		}
		id := membership.Identity{Base: n.cfg.MQTT.BaseTopic, Node: n.cfg.Node, Instance: instance, Epoch: m.Mark >> markEpoch}
		member := membership.New(m.Fleet, id, n.fleetEvent(m))
		if post := m.Model.Snapshot(); post.Fleet != nil {
			member.Joined()
		}
		f.members = append(f.members, &fleetMember{Member: member, of: m})
	}
	return f
}

// fleetTroubles are the events that are logged as warnings: the operator has to act.
var fleetTroubles = []string{"fleet_duplicate", "fleet_not_kept", "fleet_regressed"}

// fleetEvent returns a function that publishes and logs an event of a model.
func (n *Node) fleetEvent(m *modelState) func(kind, detail string) {
	return func(kind, detail string) {
		level := slog.LevelInfo
		if slices.Contains(fleetTroubles, kind) {
			level = slog.LevelWarn
		}
		n.log.Log(context.Background(), level, "fleet: "+kind, "model", m.Name, "concept", m.Fleet.Concept, "detail", detail)
		n.report.event(m.Name, kind, detail)
	}
}

// filters returns the filters to subscribe to.
func (f *fleets) filters() (filters []string) {
	for _, m := range f.members {
		filters = append(filters, m.Topics().Filter())
	}
	return filters
}

// qualities sets the quality of service of the fleets' filters.
func (f *fleets) qualities(of map[string]byte) {
	for _, m := range f.members {
		of[m.Topics().Filter()] = 0
	}
}

// aside returns the function that takes the messages of fleets out of the others. They
// are of QoS 0: each connection begins with the newest ones, and one that the broker has
// lost is asked for again. It returns nil where no model is in a fleet.
func (f *fleets) aside() mqtt.Aside {
	if len(f.members) == 0 {
		return nil
	}
	return func(msg *mqtt.Message) bool {
		if msg.Topic != f.node.client.StateTopic && !slices.ContainsFunc(f.members, func(m *fleetMember) bool { return m.Topics().Has(msg.Topic) }) {
			return false
		}
		if taken, _ := f.inbox.Push(msg, nil); !taken {
			msg.Free()
			f.mu.Lock()
			f.flooded++
			f.mu.Unlock()
		}
		return true
	}
}

// serve notes the beginning of a connection; the function that it returns notes its end.
func (f *fleets) serve(c mqtt.Origin) (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(c)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range f.members {
			if m.Disconnected(time.Now()) {
				m.waiting = nil
				f.node.outbox.Remove(m.OwnTopics())
			}
		}
	}
}

// begin notes the connection of a message, or of a serve. The retained messages may come
// before the connection is served.
func (f *fleets) begin(c mqtt.Origin) {
	if f.conn == c {
		return
	}
	f.conn = c
	for _, m := range f.members {
		m.Connected(time.Now())
	}
}

// run works until ctx ends, where a model is in a fleet.
func (f *fleets) run(ctx context.Context) {
	if len(f.members) == 0 {
		return
	}
	tick := time.NewTicker(fleetEvery)
	defer tick.Stop()
	for {
		var more <-chan time.Time
		if f.pushWaiting() && f.node.client.Conn() != nil { // without a connection the next tick is soon enough
			more = time.After(waitingEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.inbox.Ready():
			f.receive()
		case <-f.wake:
		case <-tick.C:
			f.step(ctx)
		case <-more:
		}
	}
}

// receive takes one message.
func (f *fleets) receive() {
	msg, ok := f.inbox.Pop()
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if msg.From != nil {
		f.begin(msg.From)
	}
	for _, m := range f.members {
		switch {
		case msg.Topic == f.node.client.StateTopic:
			m.OtherEnded()
		case m.Topics().Has(msg.Topic):
			m.Receive(time.Now(), msg.Topic, msg.Payload, msg.Retained)
		}
	}
	msg.Free()
}

// step does the due work.
func (f *fleets) step(ctx context.Context) {
	f.mu.Lock()
	if f.flooded > 0 {
		f.members[0].Flood(time.Now(), f.flooded)
		f.flooded = 0
	}
	f.mu.Unlock()
	for _, m := range f.members {
		status := m.of.Model.Status()
		f.mu.Lock()
		own, basis := f.underway(m)
		m.Sending(time.Now(), own, basis)
		todo := m.Step(time.Now(), learntBy(status))
		f.mu.Unlock()
		if todo.Parts {
			f.node.client.Also(m.Topics().Parts())
		}
		f.node.client.Drop(todo.Enough...) // first: a filter may be in both
		f.node.client.Also(todo.Ask...)
		if todo.Epoch > m.asked {
			f.storeEpoch(m, todo.Epoch)
		}
		if todo.Publish {
			f.publish(ctx, m)
		}
		f.mu.Lock()
		m.waiting = append(m.waiting, todo.Announce...)
		f.mu.Unlock()
		if todo.Merge != nil {
			f.merge(ctx, m, todo.Merge)
		}
	}
}

// underway reports whether messages of the model's contribution, and of the common basis, are on their way to the
// broker. The caller holds mu.
func (f *fleets) underway(m *fleetMember) (own, basis bool) {
	look := func(topic string) {
		if name, _, ours := m.Topics().Read(topic); ours {
			own, basis = own || name == m.Name(), basis || name == membership.BasisName
		}
	}
	for _, p := range m.waiting {
		look(p.Topic)
	}
	f.node.outbox.Underway(func(p *mqtt.Publication) { look(p.Topic) })
	return own, basis
}

// learntBy returns the progress of a model. A contribution holds no label of the minibatch
// that is filling.
func learntBy(s *online.Status) membership.Learnt {
	return membership.Learnt{Labels: s.Learned, Nats: float64(float64(s.Scores.N)*s.Scores.NLL) - s.OpenNLL, Ready: s.WarmedUp, Behind: s.Recovering}
}

// storeEpoch lets the committer make an epoch durable.
func (f *fleets) storeEpoch(m *fleetMember, epoch uint64) {
	taken := f.commit(m, "fleet_epoch", func(c *committer) {
		c.mark(m.of, m.of.mark&(1<<markEpoch-1)|epoch<<markEpoch)
	}, func() { m.EpochDurable(epoch) })
	if taken {
		m.asked = epoch
	}
}

// commit queues a change among the messages. done is called, with the lock, once it is
// durable. It reports false if there is no room for it.
func (f *fleets) commit(m *fleetMember, what string, change func(*committer), done func()) bool {
	return f.node.commit(m.of, what, change, func() {
		f.mu.Lock()
		done()
		f.mu.Unlock()
		wake(f.wake)
	})
}

// publish publishes the own contribution.
func (f *fleets) publish(ctx context.Context, m *fleetMember) {
	learner, ok := m.of.Model.(FleetModel)
	if !ok {
		return
	}
	c, err := learner.Contribution(ctx, f.node.cfg.Node)
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []membership.Publication
	if err == nil {
		all, err = m.Publish(now, c)
	}
	if err == nil {
		m.replace(all)
	} else {
		m.NotReady(now)
		if !errors.Is(err, online.ErrNotReady) && !errors.Is(err, online.ErrRecovering) && ctx.Err() == nil {
			f.node.log.Warn("the contribution to the fleet cannot be made", "model", m.of.Name, "error", err)
		}
	}
}

// replace lets the messages of a contribution wait in place of those of an earlier one. An
// announcement of a basis waits on.
func (m *fleetMember) replace(all []membership.Publication) {
	m.waiting = slices.DeleteFunc(m.waiting, func(p membership.Publication) bool {
		member, _, _ := m.Topics().Read(p.Topic)
		return member == m.Name()
	})
	m.waiting = append(m.waiting, all...)
}

// pushWaiting gives the waiting publications to the outbox, as far as that is nearly empty:
// large contributions must not displace predictions. It reports whether some are left.
func (f *fleets) pushWaiting() (left bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		for len(m.waiting) > 0 && f.node.outbox.Len() < fleetAhead {
			f.push(m.waiting[0])
			m.waiting[0] = membership.Publication{} // frees the payload
			m.waiting = m.waiting[1:]
		}
		left = left || len(m.waiting) > 0
	}
	return left
}

func (f *fleets) push(p membership.Publication) {
	f.node.outbox.Push(&mqtt.Publication{Topic: p.Topic, Payload: p.Payload, QoS: 1, Retained: true})
}

// merge lets the model add the contributions of a set, and the committer journal the
// result and hand it over.
func (f *fleets) merge(ctx context.Context, m *fleetMember, set *fleet.Set) {
	sum, failure := f.sum(ctx, m, set)
	err := failure
	if err == nil && m.of.Fleet.Follows() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.merged(m, sum)
		return
	}
	if err == nil {
		record := online.MergeEvent(sum)
		if f.commit(m, "fleet_merge", func(c *committer) { c.group.record(m.of, record) }, func() { f.merged(m, sum) }) {
			return
		}
		err = ErrBusy
	}
	if errors.Is(failure, online.ErrRecovering) || ctx.Err() != nil {
		failure = nil
	} else {
		f.node.log.Warn("the contributions of the fleet cannot be merged now", "model", m.of.Name, "error", err)
	}
	if p, ok := errors.AsType[*online.Panic](failure); ok {
		f.node.log.Error("a merge panicked, which is an error of this program", "model", m.of.Name, "stack", string(p.Stack))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m.MergeFailed(time.Now(), failure)
}

// merged notes a merge that is durable, or that a follower answers by. The caller holds mu.
func (f *fleets) merged(m *fleetMember, sum *fleet.Merge) {
	m.Merged(time.Now(), sum)
	f.node.log.Info("fleet merged", "model", m.of.Name, "concept", m.of.Fleet.Concept, "members", sum.Taken(), "of", len(sum.Members))
}

// again lets a model merge at once: its state is another one.
func (f *fleets) again(of *modelState) {
	if m := f.member(of.Name); m != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		m.Again()
	}
}

// sum returns the sum of a set; a follower answers by it from now on.
func (f *fleets) sum(ctx context.Context, m *fleetMember, set *fleet.Set) (sum *fleet.Merge, err error) {
	defer online.Recover(&err)
	if follower, ok := m.of.Model.(*follower); ok {
		return follower.follow(f.node.cfg.Node, set)
	}
	learner, ok := m.of.Model.(FleetModel)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return learner.Merge(ctx, f.node.cfg.Node, set)
}

// leave lets the committer make the epochs durable that were not due yet, so that final may
// publish, unless another node follows. It is called when run has returned.
func (f *fleets) leave(ctx context.Context) {
	if errors.Is(context.Cause(ctx), ErrReplaced) {
		return
	}
	for f.inbox.Len() > 0 {
		f.receive()
	}
	for _, m := range f.members {
		f.mu.Lock()
		epoch := m.Leave(time.Now())
		f.mu.Unlock()
		if epoch > m.asked {
			f.storeEpoch(m, epoch)
		}
	}
}

// final publishes the labels since the last publication, unless another node
// follows. It is called after leave and the end of the committer.
func (f *fleets) final(working, ctx context.Context) {
	if errors.Is(context.Cause(ctx), ErrReplaced) {
		return
	}
	for _, m := range f.members {
		f.mu.Lock()
		due := m.Final(m.of.Model.Status().Learned) && m.of.Model.Status().WarmedUp
		f.mu.Unlock()
		if due {
			f.publish(working, m)
		}
		f.mu.Lock()
		for _, p := range m.waiting {
			f.push(p)
		}
		m.waiting = nil
		f.mu.Unlock()
	}
}

// inherit continues the parts of the previous node in the same fleets. Others begin after the
// epoch that it has stored.
func (f *fleets) inherit(old *fleets) {
	for _, m := range f.members {
		m.EpochDurable(m.of.Mark >> markEpoch)
		switch o := old.member(m.of.Name); {
		case o == nil:
		case o.Topics() != m.Topics():
			m.Moved()
		case o.Config().Role == m.Config().Role && o.Name() == m.Name():
			m.Member = o.Member
			m.Member.Continue(m.of.Fleet, f.node.fleetEvent(m.of))
			m.waiting = o.waiting
			if now, ok := m.of.Model.(*follower); ok {
				now.answer.Store(o.of.Model.(*follower).answer.Load())
			}
		}
	}
}

// retained returns the topics on which the broker may keep messages of the node's parts.
func (f *fleets) retained() (topics []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		topics = append(topics, m.OwnTopics()...)
	}
	return topics
}

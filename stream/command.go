package stream

import (
	"fmt"
	"strings"
	"time"

	"edge/online"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// Bits of a model's mark in the journal.
const (
	markFrozen    uint64 = 1 << iota // learning is switched off
	markAnnounced                    // Home Assistant knows the model
)

// scope is the set of models that a command applies to.
type scope int

const (
	wholeNode scope = iota // no model
	oneModel               // the model in the topic; without one, the only model
	anyModels              // the model in the topic; without one, all models
)

// command is one kind of request. Exactly one of mutate and background is set.
type command struct {
	name  string
	scope scope
	keys  []string // of its data; nil: it has none
	// mutate prepares a change that the committer makes durable, in the worker's
	// goroutine: its position among the messages decides which labels precede it.
	mutate func(n *Node, r *request) (*mutation, error)
	// background prepares a command that may take long, outside the message path.
	background func(n *Node, r *request) backgroundCommand
}

// commands are all commands. The linker lays out an array; a map would be filled at the start, by code.
var commands = [...]command{
	{"ping", wholeNode, nil, (*Node).ping, nil},
	{"health_check", wholeNode, nil, (*Node).healthCheck, nil},
	{"set_log_level", wholeNode, []string{"level"}, (*Node).setLogLevel, nil},
	{"reload", wholeNode, nil, nil, (*Node).reload},
	{"learning", oneModel, []string{"learning"}, (*Node).switchLearning, nil},
	{"freeze", anyModels, nil, (*Node).freeze, nil},
	{"unfreeze", anyModels, nil, (*Node).unfreeze, nil},
	{"checkpoint", anyModels, nil, nil, (*Node).checkpoint},
	{"export", oneModel, []string{"name"}, nil, (*Node).export},
	{"rollback", oneModel, []string{"to"}, nil, (*Node).rollback},
	{"reset", oneModel, nil, (*Node).reset, nil},
	{"class_add", oneModel, []string{"class"}, (*Node).classAdd, nil},
	{"class_remove", oneModel, []string{"class"}, (*Node).classRemove, nil},
	{"class_rename", oneModel, []string{"from", "to"}, (*Node).classRename, nil},
	{"fleet", oneModel, nil, (*Node).fleetView, nil},
	{"fleet_forget", oneModel, []string{"member"}, (*Node).fleetForget, nil},
	{"fleet_rebase", oneModel, []string{"basis"}, (*Node).fleetRebase, nil},
}

// mutation is a change that the committer makes durable.
type mutation struct {
	// apply adds the change to the committer's group. done returns the data of the
	// response once the change is durable; an error is returned to the client at once.
	// repeated: the broker has sent the request before, and it was carried out.
	apply func(c *committer, repeated bool) (done func() map[string]any, err error)
	reply *reply
}

// commit queues a change of a model's state among the messages. done is called once it is
// durable. It reports false if there is no room for it. Like eventMutation it is not inlined.
//
//go:noinline
func (n *Node) commit(m *modelState, what string, change func(*committer), done func()) bool {
	order := &mutation{reply: newReply(nil, func(ResponsePayload) {})}
	order.apply = func(c *committer, _ bool) (func() map[string]any, error) {
		change(c)
		return func() map[string]any {
			done()
			return nil
		}, nil
	}
	return n.enqueue(what+"/"+m.Name, order)
}

// enqueue queues a mutation among the messages. It reports false if there is no room for it.
func (n *Node) enqueue(what string, order *mutation) bool {
	msg := &mqtt.Message{Topic: "request/" + what, QoS: 1, Arrived: time.Now(), Attached: order, Ack: func() {}}
	taken, _ := n.ring.Push(msg, nil)
	return taken
}

// commandOf returns the command with a name, nil if there is none.
func commandOf(name string) *command {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i]
		}
	}
	return nil
}

// replyOnly is a mutation that changes nothing.
func replyOnly(data map[string]any) *mutation {
	return &mutation{apply: func(*committer, bool) (func() map[string]any, error) {
		return func() map[string]any { return data }, nil
	}}
}

func (n *Node) ping(*request) (*mutation, error) {
	return replyOnly(map[string]any{"node": n.cfg.Node, "version": n.report.build.Version, "uptime_s": int64(n.report.started.since().Seconds())}), nil
}

func (n *Node) healthCheck(*request) (*mutation, error) {
	s := n.Stats()
	return replyOnly(map[string]any{
		"healthy": !s.Degraded, "connected": s.Connected, "subscribed": s.Subscribed, "journal": !s.Degraded,
		"predictions": s.Predictions, "learned": s.Learned, "queues": map[string]int{"in": s.Ring, "commit": s.Commit, "out": s.Outbox},
	}), nil
}

func (n *Node) setLogLevel(r *request) (*mutation, error) {
	level, err := r.text("level")
	switch {
	case err != nil:
		return nil, err
	case n.program.LogLevel == nil:
		return nil, errNotAvailable
	}
	if err := n.program.LogLevel(level); err != nil {
		return nil, err
	}
	return replyOnly(map[string]any{"level": level}), nil
}

// switchLearning is the command of Home Assistant's switch: ON or OFF.
func (n *Node) switchLearning(r *request) (*mutation, error) {
	word := r.argument
	if r.data.Exists() {
		word = r.data.Get("learning").String()
	}
	switch strings.ToLower(word) {
	case "on", "true":
		return n.unfreeze(r)
	case "off", "false":
		return n.freeze(r)
	}
	return nil, fmt.Errorf(`want ON or OFF, or {"data": {"learning": true}}, not %.40q`, word)
}

func (n *Node) freeze(r *request) (*mutation, error) { return setLearning(r.models, false), nil }

func (n *Node) unfreeze(r *request) (*mutation, error) {
	if m := r.models[0]; m.Fleet.Follows() && len(r.models) == 1 {
		return nil, fmt.Errorf("model %s only follows its fleet: it learns with fleet.role: member", m.Name)
	}
	return setLearning(r.models, true), nil
}

// setLearning switches learning on or off. While it is off, samples are answered, and
// labels are acknowledged, counted, and neither scored nor learnt. The setting survives
// a restart. A request that the broker repeats changes nothing.
func setLearning(models []*modelState, on bool) *mutation {
	expected := !on
	for _, m := range models {
		m.frozen.Store(&expected)
	}
	return &mutation{apply: func(c *committer, repeated bool) (func() map[string]any, error) {
		var changed []*modelState
		for _, m := range models {
			bits := m.mark | markFrozen
			if on {
				bits = m.mark &^ markFrozen
			}
			if bits != m.mark && !repeated {
				c.mark(m, bits)
				changed = append(changed, m)
			}
			off := m.learningOff()
			m.frozen.CompareAndSwap(&expected, &off) // unless there is a later request
		}
		return func() map[string]any {
			for _, m := range models {
				if !repeated {
					m.learning.Store(on && !m.Fleet.Follows())
				}
				c.report.scores(m)
			}
			for _, m := range changed {
				event := map[bool]string{true: "learning_on", false: "learning_off"}[on]
				c.log.Info("a request has switched learning", "model", m.Name, "event", event)
				c.report.event(m.Name, event, "")
			}
			return map[string]any{"learning": on}
		}, nil
	}}
}

func (n *Node) reset(r *request) (*mutation, error) {
	return r.eventMutation(online.Event{Kind: online.Reset}, map[string]any{"model": r.models[0].Name}, nil), nil
}

func (n *Node) classAdd(r *request) (*mutation, error) {
	name, err := r.className("class")
	if err != nil {
		return nil, err
	}
	return r.eventMutation(online.Event{Kind: online.ClassAdd, Label: name}, map[string]any{"class": name}, nil), nil
}

func (n *Node) classRemove(r *request) (*mutation, error) {
	name, err := r.className("class")
	if err != nil {
		return nil, err
	}
	return r.eventMutation(online.Event{Kind: online.ClassRemove, Label: name}, map[string]any{"class": name}, nil), nil
}

func (n *Node) classRename(r *request) (*mutation, error) {
	from, err := r.className("from")
	to, err2 := r.className("to")
	if err := field.Join(err, err2); err != nil {
		return nil, err
	}
	return r.eventMutation(online.Event{Kind: online.ClassRename, Label: from, Name: to}, map[string]any{"from": from, "to": to}, nil), nil
}

// eventMutation makes a mutation that journals an event among the labels; the learner
// applies it in this order. A request that the broker repeats is applied once. brings are the
// classes of a Replace (online.ClassRecords). It is not inlined: each command would have a copy of apply.
//
//go:noinline
func (r *request) eventMutation(ev online.Event, data map[string]any, brings []online.Record) *mutation {
	m := r.models[0]
	ev.Key = r.key
	return &mutation{apply: func(c *committer, repeated bool) (func() map[string]any, error) {
		done := func() map[string]any { return data }
		if repeated || r.mayRepeat && c.seen(m, ev.Key) {
			return done, nil
		}
		if err := m.classes.change(c.group.next(), &ev); err != nil {
			return nil, err
		}
		m.classes.foresee(brings, c.group.next())
		if ev.Kind == online.Reset || ev.Kind == online.Replace {
			c.forgetLearnt(m)
			m.labelCount, _ = data["samples"].(uint64) // of the state; none after a reset
		}
		c.group.record(m, ev)
		return done, nil
	}}
}

// apply applies a mutation.
func (c *committer) apply(o *mutation, repeated bool) {
	done, err := o.apply(c, repeated)
	if err != nil {
		o.reply.fail(err)
		return
	}
	c.group.onCommit(func() { o.reply.ok(done()) })
}

package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

const (
	requestsName   = "requests"    // what requests are counted under
	maxRequest     = 4 * codec.KiB // bytes of a request's payload
	maxTransaction = 128           // bytes of its transaction
	requestTimeout = 10 * time.Second
)

// Bits of a model's mark in the journal.
const (
	markFrozen    uint64 = 1 << iota // learning is switched off
	markAnnounced                    // Home Assistant was told about the model
)

// scope says which models a request is for.
type scope int

const (
	wholeNode scope = iota // none
	oneModel               // the one that the topic names; the only one, if it names none
	anyModels              // the one that the topic names; all, if it names none
)

// verb is one kind of request. Exactly one of order and errand is set.
type verb struct {
	scope scope
	// order prepares what the committer makes durable, in the worker's goroutine:
	// its place among the messages decides which labels come before it.
	order func(n *Node, r *request) (*instruction, error)
	// errand is for what may take long, outside the way of the messages.
	errand func(n *Node, r *request) errand
}

// verbs are all requests that there are.
var verbs = map[string]verb{
	"ping":          {wholeNode, (*Node).ping, nil},
	"health_check":  {wholeNode, (*Node).healthCheck, nil},
	"set_log_level": {wholeNode, (*Node).setLogLevel, nil},
	"reload":        {wholeNode, nil, (*Node).reload},
	"learning":      {oneModel, (*Node).switchLearning, nil},
	"freeze":        {anyModels, (*Node).freeze, nil},
	"unfreeze":      {anyModels, (*Node).unfreeze, nil},
	"checkpoint":    {anyModels, nil, (*Node).checkpoint},
	"export":        {oneModel, nil, (*Node).export},
	"rollback":      {oneModel, nil, (*Node).rollback},
	"reset":         {oneModel, (*Node).reset, nil},
	"class_add":     {oneModel, (*Node).classAdd, nil},
	"class_remove":  {oneModel, (*Node).classRemove, nil},
	"class_rename":  {oneModel, (*Node).classRename, nil},
}

// request is a message on <base>/<node>/request/<verb>[/<model>]:
//
//	{"transaction": "a1", "data": {…}}
//
// All of it may be left out. Its answer follows on …/response/<verb>[/<model>]:
//
//	{"status": "ok", "data": {…}, "transaction": "a1"}   or "error", with "error" in words
type request struct {
	verb        verb
	what        string // <verb>[/<model>]
	models      []*modelState
	transaction json.RawMessage // as it came, nil if there is none
	data        gjson.Result
	word        string // the payload, where it is no object
	key         uint64 // identity of the message
	repeat      bool   // a background command that the broker may have sent before
	replace     string // what a rollback replaces: Name of the event
	reply       *reply
}

// instruction is what a request asks of the committer.
type instruction struct {
	// apply puts what is to be durable in the committer's group. Done says what
	// to tell once it is; an error is told at once.
	// Repeated: the broker has sent the request before, and it was carried out.
	apply func(c *committer, repeated bool) (done func() map[string]any, err error)
	reply *reply
}

// reply is the answer to one request, given once: what was done, or that it took
// too long.
type reply struct {
	give        func(ResponsePayload)
	timer       *time.Timer
	transaction json.RawMessage // of the request; nil: it has none
}

func newReply(transaction json.RawMessage, give func(ResponsePayload)) *reply {
	r := &reply{give: give, transaction: transaction}
	r.timer = time.AfterFunc(requestTimeout, func() {
		r.give(ResponsePayload{Status: "error", Error: fmt.Sprintf("not done within %v; it may still be", requestTimeout), Transaction: transaction})
	})
	return r
}

func (r *reply) ok(data map[string]any) {
	if r.timer.Stop() { // else it was answered
		r.give(ResponsePayload{Status: "ok", Data: data, Transaction: r.transaction})
	}
}

func (r *reply) fail(err error) {
	if r.timer.Stop() {
		r.give(ResponsePayload{Status: "error", Error: err.Error(), Transaction: r.transaction})
	}
}

// request carries out a message below <base>/<node>/request/. A request that
// changes a state is answered with ok when the change is durable. The worker's
// goroutine calls it.
func (n *Node) request(it *item, prefix string) error {
	msg := it.msg
	if msg.Retained {
		return codec.Refuse(codec.Retained, "the broker kept this request, which would be carried out at each connect")
	}
	what := strings.TrimPrefix(msg.Topic, prefix+"request/")
	r, transaction, refusal := n.parseRequest(what, msg.Payload)
	answer := newReply(transaction, func(v ResponsePayload) {
		n.outbox.Push(&mqtt.Publication{Topic: prefix + "response/" + what, Payload: n.report.encode(v), QoS: n.report.qos})
	})
	if refusal != nil {
		answer.fail(refusal.Err)
		return refusal
	}
	r.reply, r.key, r.repeat = answer, messageKey(msg.Topic, msg.Payload, 0), msg.Dup && r.verb.errand != nil
	if r.verb.errand != nil {
		if !n.errands.push(answer, r.verb.errand(n, r)) {
			answer.fail(fmt.Errorf("busy with other requests: %w", ErrBusy))
		}
		return nil
	}
	order, err := r.verb.order(n, r)
	if err != nil {
		answer.fail(err)
		return codec.Refuse(codec.BadRequest, "%w", err)
	}
	order.reply = answer
	it.order = order
	return nil
}

// parseRequest reads a request; the transaction is as it came, nil if there is none.
func (n *Node) parseRequest(what string, payload []byte) (r *request, transaction json.RawMessage, err *codec.Refusal) {
	name, model, named := strings.Cut(what, "/")
	payload = bytes.TrimSpace(payload)
	r = &request{what: what, word: string(payload)}
	switch {
	case len(payload) > int(maxRequest):
		return nil, nil, codec.Refuse(codec.TooLarge, "a request of more than %s", maxRequest)
	case bytes.HasPrefix(payload, []byte("{")):
		if err := codec.CheckJSON(payload); err != nil {
			return nil, nil, err
		}
		root := gjson.ParseBytes(payload)
		if t := root.Get("transaction"); t.Exists() && len(t.Raw) <= maxTransaction {
			transaction = json.RawMessage(t.Raw)
		}
		r.data, r.word = root.Get("data"), ""
	}
	var known bool
	if r.verb, known = verbs[name]; !known {
		return nil, transaction, codec.Refuse(codec.BadRequest, "unknown request %.40q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	r.transaction = transaction
	for _, m := range n.models {
		if m.Name == model && r.verb.scope != wholeNode || !named && (r.verb.scope == anyModels || r.verb.scope == oneModel && len(n.models) == 1) {
			r.models = append(r.models, m)
		}
	}
	switch {
	case r.verb.scope == wholeNode && named:
		return nil, transaction, codec.Refuse(codec.BadRequest, "%s is for the node: send it to request/%s", name, name)
	case r.verb.scope == oneModel && !named && len(r.models) == 0:
		return nil, transaction, codec.Refuse(codec.BadRequest, "%s is for one model: send it to request/%s/<model>", name, name)
	case r.verb.scope != wholeNode && len(r.models) == 0:
		return nil, transaction, codec.Refuse(codec.BadRequest, "there is no model %.40q", model)
	}
	return r, transaction, nil
}

// text returns a text of the request's data.
func (r *request) text(key string) (string, error) {
	v := r.data.Get(key)
	if v.Type != gjson.String || v.Str == "" {
		return "", fmt.Errorf(`want {"data": {%q: "…"}}`, key)
	}
	return v.Str, nil
}

// className returns a name that a class may have.
func (r *request) className(key string) (string, error) {
	text, err := r.text(key)
	if err != nil {
		return "", err
	}
	if err := codec.CheckLabel(text); err != nil {
		return "", fmt.Errorf("%s %w", key, err)
	}
	return text, nil
}

// told is an instruction that needs nothing to be durable.
func told(data map[string]any) *instruction {
	return &instruction{apply: func(*committer, bool) (func() map[string]any, error) {
		return func() map[string]any { return data }, nil
	}}
}

func (n *Node) ping(*request) (*instruction, error) {
	return told(map[string]any{"node": n.cfg.Node, "version": n.report.build.Version, "uptime_s": int64(time.Since(n.report.started).Seconds())}), nil
}

func (n *Node) healthCheck(*request) (*instruction, error) {
	s := n.Stats()
	return told(map[string]any{
		"healthy": !s.Degraded, "connected": s.Connected, "subscribed": s.Subscribed, "journal": !s.Degraded,
		"predictions": s.Predictions, "learned": s.Learned, "queues": map[string]int{"in": s.Ring, "commit": s.Commit, "out": s.Outbox},
	}), nil
}

func (n *Node) setLogLevel(r *request) (*instruction, error) {
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
	return told(map[string]any{"level": level}), nil
}

// switchLearning is what Home Assistant's switch sends: ON or OFF.
func (n *Node) switchLearning(r *request) (*instruction, error) {
	word := r.word
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

func (n *Node) freeze(r *request) (*instruction, error)   { return setLearning(r.models, false), nil }
func (n *Node) unfreeze(r *request) (*instruction, error) { return setLearning(r.models, true), nil }

// setLearning switches learning on or off. While it is off, samples are answered
// as ever, and labels are acknowledged, counted and neither scored nor learnt.
// That survives a restart.
func setLearning(models []*modelState, on bool) *instruction {
	for _, m := range models {
		m.frozen = !on
	}
	return &instruction{apply: func(c *committer, _ bool) (func() map[string]any, error) {
		var changed []*modelState
		for _, m := range models {
			bits := m.mark | markFrozen
			if on {
				bits = m.mark &^ markFrozen
			}
			if bits != m.mark {
				c.mark(m, bits)
				changed = append(changed, m)
			}
		}
		return func() map[string]any {
			for _, m := range models {
				m.learning.Store(on)
				c.report.scores(m)
			}
			for _, m := range changed {
				c.report.event(m.Name, map[bool]string{true: "learning_on", false: "learning_off"}[on], "")
			}
			return map[string]any{"learning": on}
		}, nil
	}}
}

func (n *Node) reset(r *request) (*instruction, error) {
	m := r.models[0]
	return r.teach(online.Event{Kind: online.Reset}, map[string]any{"model": m.Name}, func() error {
		m.classes.reset(m.Classes.Names)
		return nil
	}), nil
}

func (n *Node) classAdd(r *request) (*instruction, error) {
	name, err := r.className("class")
	if err != nil {
		return nil, err
	}
	return r.teach(online.Event{Kind: online.ClassAdd, Label: name}, map[string]any{"class": name}, func() error {
		return r.models[0].classes.declare(name)
	}), nil
}

func (n *Node) classRemove(r *request) (*instruction, error) {
	name, err := r.className("class")
	if err != nil {
		return nil, err
	}
	return r.teach(online.Event{Kind: online.ClassRemove, Label: name}, map[string]any{"class": name}, func() error {
		return r.models[0].classes.remove(name)
	}), nil
}

func (n *Node) classRename(r *request) (*instruction, error) {
	from, err := r.className("from")
	to, err2 := r.className("to")
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	return r.teach(online.Event{Kind: online.ClassRename, Label: from, Name: to}, map[string]any{"from": from, "to": to}, func() error {
		return r.models[0].classes.rename(from, to)
	}), nil
}

// teach makes an event of a request: it is journalled among the labels, and
// carried out by the learner when they are. A request that the broker repeats is
// carried out once.
func (r *request) teach(ev online.Event, data map[string]any, check func() error) *instruction {
	m := r.models[0]
	ev.Key = r.key
	return &instruction{apply: func(c *committer, repeated bool) (func() map[string]any, error) {
		done := func() map[string]any { return data }
		if repeated || r.repeat && c.seen(m, ev.Key) {
			return done, nil
		}
		if err := check(); err != nil {
			return nil, err
		}
		c.group.record(m, ev)
		return done, nil
	}}
}

// obey carries out an instruction.
func (c *committer) obey(o *instruction, repeated bool) {
	done, err := o.apply(c, repeated)
	if err != nil {
		o.reply.fail(err)
		return
	}
	c.group.done = append(c.group.done, func() { o.reply.ok(done()) })
}

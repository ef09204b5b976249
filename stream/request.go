package stream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/topic"
)

// MaxRequest is the largest payload of a request.
const MaxRequest = 4 * field.KiB

const (
	requestsName   = "requests" // name of their counters
	maxTransaction = 128        // largest transaction, in bytes
	buttonPress    = "PRESS"    // from a button of Home Assistant that configures no payload
	requestTimeout = 10 * time.Second
)

// request is a message on <base>/<node>/request/<command>[/<model>]:
//
//	{"transaction": "a1", "data": {…}}
//
// All members are optional. The response follows on …/response/<command>[/<model>]:
//
//	{"status": "ok", "data": {…}, "transaction": "a1"}   or "error", with a text in "error"
type request struct {
	command     *command
	target      string // <command>[/<model>]
	models      []*modelState
	transaction json.RawMessage // as received; nil if absent
	data        gjson.Result
	argument    string // the payload if it is not an object of transaction and data
	key         uint64 // identity of the message
	mayRepeat   bool   // a background command that the broker may have sent before
	replace     string // scope of a rollback: Name of the event
	reply       *reply
}

// request handles a message below <base>/<node>/request/. A command that changes a
// state is answered with ok once the change is durable. The worker's goroutine calls it.
func (n *Node) request(it *item) error {
	msg, prefix := it.msg, n.report.prefix
	if msg.Retained {
		return codec.Refuse(codec.Retained, "the broker kept this request, which would be carried out at each connect")
	}
	what := strings.TrimPrefix(strings.TrimPrefix(msg.Topic, prefix+"request"), "/") // the filter request/# matches request
	if err := topic.Check(prefix + "response/" + what); err != nil {                 // one byte longer
		return codec.Refuse(codec.BadTopic, "the topic of the response %w", err)
	}
	r, refusal := n.parseRequest(what, msg.Payload)
	r.reply = newReply(r.transaction, func(v ResponsePayload) { n.report.respond(what, v) })
	if refusal != nil {
		r.reply.fail(refusal.Err)
		return refusal
	}
	r.key, r.mayRepeat = messageKey(msg.Topic, msg.Payload), msg.Dup && r.command.background != nil
	if r.command.background != nil {
		if !n.background.push(r.reply, r.command.background(n, r)) {
			r.reply.fail(fmt.Errorf("busy with other requests: %w", ErrBusy))
		}
		return nil
	}
	order, err := r.command.mutate(n, r)
	if err != nil {
		r.reply.fail(err)
		return codec.Refuse(codec.BadRequest, "%w", err)
	}
	order.reply = r.reply
	it.mutation = order
	return nil
}

// CheckRequest returns why no node carries out a request, <command>[/<model>]; nil if one may.
func CheckRequest(what string) error {
	name, _, named := strings.Cut(what, "/")
	c := commandOf(name)
	switch {
	case c == nil:
		var names []string
		for i := range commands {
			names = append(names, commands[i].name)
		}
		slices.Sort(names)
		return fmt.Errorf("unknown request %.40q: there are %s", name, strings.Join(names, ", "))
	case c.scope == wholeNode && named:
		return fmt.Errorf("%s is for the node: send it to request/%s", name, name)
	}
	return nil
}

// parseRequest reads a request. One that is refused may have a transaction nevertheless.
func (n *Node) parseRequest(what string, payload []byte) (*request, *codec.Refusal) {
	name, model, named := strings.Cut(what, "/")
	payload = bytes.TrimSpace(payload)
	r := &request{target: what, argument: string(payload)}
	switch {
	case len(payload) > int(MaxRequest):
		return r, codec.Refuse(codec.TooLarge, "a request of more than %s", MaxRequest)
	case string(payload) == buttonPress:
		r.argument = ""
	case bytes.HasPrefix(payload, []byte("{")):
		if err := codec.CheckJSON(payload); err != nil {
			return r, err
		}
		root := gjson.ParseBytes(payload)
		if t := root.Get("transaction"); t.Exists() && len(t.Raw) <= maxTransaction {
			r.transaction = json.RawMessage(t.Raw)
		}
		r.data, r.argument = root.Get("data"), ""
		root.ForEach(func(key, _ gjson.Result) bool {
			if key.Str != "transaction" && key.Str != "data" {
				r.argument = string(payload)
			}
			return true
		})
	}
	if err := CheckRequest(what); err != nil {
		return r, codec.Refuse(codec.BadRequest, "%w", err)
	}
	r.command = commandOf(name)
	if err := r.unread(); err != nil {
		return r, codec.Refuse(codec.BadRequest, "%w", err)
	}
	for _, m := range n.models {
		if m.Name == model && r.command.scope != wholeNode || !named && (r.command.scope == anyModels || r.command.scope == oneModel && len(n.models) == 1) {
			r.models = append(r.models, m)
		}
	}
	if r.command.scope != wholeNode && len(r.models) == 0 {
		var names []string
		for _, m := range n.models {
			names = append(names, m.Name)
		}
		has := strings.Join(names, ", ")
		if !named {
			return r, codec.Refuse(codec.BadRequest, "which model? the node has %s: send it to request/%s/<model>", has, name)
		}
		return r, codec.Refuse(codec.BadRequest, "there is no model %.40q; the node has %s", model, has)
	}
	return r, nil
}

// text returns a text of the request's data.
func (r *request) text(key string) (string, error) {
	v := r.data.Get(key)
	if v.Type != gjson.String || v.Str == "" {
		return "", fmt.Errorf(`want {"data": {%q: "…"}}`, key)
	}
	if err := codec.CheckText(v); err != nil {
		return "", fmt.Errorf("%s %w", key, err)
	}
	return v.Str, nil
}

// unread returns an error for a part of the request that its command does not read: without it the
// command may do something else than the client means, as a freeze of one model that its data names.
func (r *request) unread() error {
	part := r.argument
	if r.command.name == "learning" && !r.data.Exists() { // which is a word, or ends with the words that it wants
		part = ""
	}
	r.data.ForEach(func(key, value gjson.Result) bool {
		if !slices.Contains(r.command.keys, key.Str) && r.data.Type != gjson.Null {
			part = cmp.Or(key.Str, value.Raw)
		}
		return true
	})
	switch keys := r.command.keys; {
	case part == "":
		return nil
	case keys == nil:
		return fmt.Errorf("it takes no data, and %.60q came; the topic names a model", part)
	default:
		return fmt.Errorf(`want {"data": {"%s": "…"}}, not %.60q`, strings.Join(keys, `": "…", "`), part)
	}
}

// optional returns the text of a key of the request's data that may be absent, "" without it.
func (r *request) optional(key string) (string, error) {
	value := r.data.Get(key)
	if value.Exists() && value.Type != gjson.String {
		return "", fmt.Errorf(`want {"data": {%q: "…"}}, or no data`, key)
	}
	return value.Str, nil
}

// className returns a valid name of a class from the request's data.
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

// reply is the response to one request, sent once: the result or a timeout.
type reply struct {
	give        func(ResponsePayload)
	timer       *time.Timer
	transaction json.RawMessage // of the request; nil if absent
}

func newReply(transaction json.RawMessage, give func(ResponsePayload)) *reply {
	r := &reply{give: give, transaction: transaction}
	r.timer = time.AfterFunc(requestTimeout, func() {
		r.give(ResponsePayload{Status: "error", Error: fmt.Sprintf("not done within %v; it may still complete", requestTimeout), Transaction: transaction})
	})
	return r
}

func (r *reply) ok(data map[string]any) {
	if r.timer.Stop() { // otherwise the timeout was sent
		r.give(ResponsePayload{Status: "ok", Data: data, Transaction: r.transaction})
	}
}

func (r *reply) fail(err error) {
	if r.timer.Stop() {
		r.give(ResponsePayload{Status: "error", Error: err.Error(), Transaction: r.transaction})
	}
}

package stream

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// requestsName is what requests are counted under.
const requestsName = "requests"

// Bits of a model's mark in the journal.
const (
	markFrozen    uint64 = 1 << iota // learning is switched off
	markAnnounced                    // Home Assistant was told about the model
)

// instruction is what a request asks of the committer. The worker has carried
// out its part, so that a label is taught or not by its place among the
// messages; the committer makes it durable with the labels around it.
type instruction struct {
	to       *modelState
	learning bool
	answer   func() // once it is durable
}

// request carries out a message on <base>/<node>/request/<verb>/<model>:
//
//	learning/<model>   ON or OFF, or {"data": {"learning": false}, "transaction": "a1"}
//
// and lets the answer follow on …/response/<verb>/<model>. While learning is
// off, samples are answered as ever, and labels are acknowledged, counted and
// neither scored nor learnt. That survives a restart. The worker's goroutine
// calls it.
func (n *Node) request(it *item, prefix string) error {
	msg := it.msg
	if msg.retained {
		return refuse(Retained, "the broker kept this request, which would be carried out at each connect")
	}
	what := strings.TrimPrefix(msg.topic, prefix+"request/")
	answer := func(answer map[string]any) {
		n.outbox.push(&outgoing{topic: prefix + "response/" + what, payload: n.report.encode(answer), qos: n.report.qos})
	}
	m, learning, transaction, err := n.parseRequest(what, msg.payload)
	reply := map[string]any{"status": "ok"}
	if transaction != nil {
		reply["transaction"] = transaction
	}
	if err != nil {
		reply["status"], reply["error"] = "error", err.Err.Error()
		answer(reply)
		return err
	}
	reply["data"] = map[string]any{"learning": learning}
	m.frozen = !learning
	it.order = &instruction{to: m, learning: learning, answer: func() { answer(reply) }}
	return nil
}

// parseRequest reads a request; the transaction is as it came, nil if there is none.
func (n *Node) parseRequest(what string, payload []byte) (m *modelState, learning bool, transaction json.RawMessage, err *Refusal) {
	verb, name, _ := strings.Cut(what, "/")
	payload = bytes.TrimSpace(payload)
	word := string(payload)
	if bytes.HasPrefix(payload, []byte("{")) {
		if err := checkJSON(payload); err != nil {
			return nil, false, nil, err
		}
		root := gjson.ParseBytes(payload)
		if t := root.Get("transaction"); t.Exists() && len(t.Raw) <= maxID {
			transaction = json.RawMessage(t.Raw)
		}
		word = root.Get("data.learning").String()
	}
	if verb != "learning" {
		return nil, false, transaction, refuse(BadRequest, "unknown request %.40q: there is learning/<model>", verb)
	}
	for _, candidate := range n.models {
		if candidate.Name == name {
			m = candidate
		}
	}
	if m == nil {
		return nil, false, transaction, refuse(BadRequest, "there is no model %.40q", name)
	}
	switch strings.ToLower(word) {
	case "on", "true":
		return m, true, transaction, nil
	case "off", "false":
		return m, false, transaction, nil
	}
	return nil, false, transaction, refuse(BadRequest, `want ON or OFF, or {"data": {"learning": true}}, not %.40q`, word)
}

// obey makes an instruction durable.
func (c *committer) obey(o *instruction) {
	m := o.to
	bits := m.mark | markFrozen
	if o.learning {
		bits = m.mark &^ markFrozen
	}
	changed := bits != m.mark
	if changed {
		c.mark(m, bits)
	}
	c.group.done = append(c.group.done, func() {
		m.learning.Store(o.learning)
		c.report.scores(m)
		if changed {
			c.report.event(m.Name, map[bool]string{true: "learning_on", false: "learning_off"}[o.learning], "")
		}
		o.answer()
	})
}

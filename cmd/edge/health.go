package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"edge/stream"
)

const (
	aliveWithin = 20 * time.Second // silence of a loop that learns; a step or a checkpoint is much shorter
	storeWithin = 10 * time.Second // age of what is known about the store
)

// check is one condition, in words.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// health is the answer to /healthz and /readyz.
type health struct {
	Status string  `json:"status"`           // ok or failing
	Checks []check `json:"checks,omitempty"` // not for those who have to give a password and do not
}

// healthOf is failing if one of the checks is.
func healthOf(checks []check) health {
	h := health{"ok", checks}
	for _, c := range checks {
		if !c.OK {
			h.Status = "failing"
		}
	}
	return h
}

func (h health) code() int {
	if h.Status != "ok" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// alive reports whether the loop of every model has given a sign of life lately.
func (m *monitor) alive(within time.Duration) []check {
	var checks []check
	for _, served := range m.now().models {
		silence := served.loop.Silence()
		checks = append(checks, check{
			"model " + served.name, silence < within,
			fmt.Sprintf("the loop that learns gave its last sign of life %v ago", silence.Round(time.Millisecond)),
		})
	}
	return checks
}

// ready reports whether what arrives is answered, and what it teaches kept.
func (m *monitor) ready() []check {
	s := m.now().node.Stats()
	broker := check{"broker", s.Connected, "connected"}
	if !s.Connected {
		broker.Detail = "not connected: " + cmp.Or(s.Failure, "not tried yet")
	}
	topics := check{"subscriptions", s.Connected && s.Subscribed, "granted"}
	switch {
	case !s.Connected:
		topics.Detail = "none without a connection"
	case len(s.Refused) > 0:
		topics.Detail = "refused by the broker: " + strings.Join(s.Refused, ", ")
	case !s.Subscribed:
		topics.Detail = "not granted yet"
	}
	message := check{"last message", true, "none yet"} // a silent sensor is no fault of the node
	if s.Received > 0 {
		message.Detail = fmt.Sprintf("%v ago", s.SinceMessage.Round(time.Millisecond))
	}
	return []check{broker, topics, m.storeReady(&s), message}
}

func (m *monitor) storeReady(s *stream.Stats) check {
	st := m.store.Load()
	switch {
	case s.Degraded:
		return check{"store", false, "the journal cannot be written; nothing is learnt or acknowledged until it can: " + s.CommitError}
	case st == nil:
		return check{"store", false, "not looked at yet"}
	case st.err != nil:
		return check{"store", false, st.err.Error()}
	}
	if age := time.Since(st.at); age > storeWithin {
		return check{"store", false, fmt.Sprintf("the disk has not answered for %v", age.Round(time.Second))}
	}
	return check{"store", true, fmt.Sprintf("writable, %s", byteSize(uint64(st.FileBytes)))}
}

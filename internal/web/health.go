package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"edge/internal/terminal"
	"edge/stream"
)

const (
	AliveWithin = 20 * time.Second // silence of a learning loop; a step is much shorter
	storeWithin = 10 * time.Second // time of a read of the store
)

// Check is one condition and its description.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// health is the answer to /healthz and /readyz.
type health struct {
	Status string  `json:"status"`           // ok or failing
	Checks []Check `json:"checks,omitempty"` // empty without a required password
}

// healthOf is failing if one of the checks is.
func healthOf(checks []Check) health {
	h := health{"ok", checks}
	for _, c := range checks {
		if !c.OK {
			h.Status = "failing"
		}
	}
	return h
}

// code is the status of the answer.
func (h health) code() int {
	if h.Status != "ok" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// Alive checks that the loop of every model has shown activity recently.
func (m *Monitor) Alive(within time.Duration) []Check {
	var checks []Check
	for _, served := range m.deployment().Models {
		silence := served.Loop.Silence()
		checks = append(checks, Check{
			"model " + served.Name, silence < within,
			fmt.Sprintf("the loop that learns gave its last sign of life %v ago", silence.Round(time.Millisecond)),
		})
	}
	return checks
}

// ready checks that messages arrive and are answered, and labels are stored.
func (m *Monitor) ready() []Check {
	s := m.deployment().Node.Stats()
	broker := Check{"broker", s.Connected, "connected"}
	if !s.Connected {
		broker.Detail = "not connected: " + cmp.Or(s.Failure, "not tried yet")
	}
	topics := Check{"subscriptions", s.Connected && s.Subscribed, "granted"}
	switch {
	case !s.Connected:
		topics.Detail = "none without a connection"
	case len(s.Refused) > 0:
		topics.Detail = "refused by the broker: " + strings.Join(s.Refused, ", ")
	case !s.Subscribed:
		topics.Detail = "not granted yet"
	}
	message := Check{"last message", true, "none yet"} // a silent sensor is no fault of the node
	if s.SinceMessage > 0 {
		message.Detail = fmt.Sprintf("%v ago", s.SinceMessage.Round(time.Millisecond))
	}
	return append([]Check{broker, topics, m.storeReady(&s), message}, m.recovering()...)
}

// recovering describes the models that recover. They answer, so that the node is ready.
func (m *Monitor) recovering() (checks []Check) {
	for _, served := range m.deployment().Models {
		if st := served.Loop.Status(); st.Recovering {
			checks = append(checks, Check{"model " + served.Name, true, fmt.Sprintf("recovers: it answers from its last checkpoint, and has %d records of the journal to learn", st.Behind)})
		}
	}
	return checks
}

// storeReady checks that the journal can be written, and that the disk answers.
func (m *Monitor) storeReady(s *stream.Stats) Check {
	st := m.storeFigures()
	switch {
	case s.Degraded:
		return Check{"store", false, "the journal cannot be written; nothing is learnt or acknowledged until it can: " + s.CommitError}
	case st == nil:
		return Check{"store", false, "not read yet"}
	case st.err != nil:
		return Check{"store", false, st.err.Error()}
	}
	if began := m.reading.Load(); began != 0 {
		if silent := time.Since(m.started) - time.Duration(began); silent > storeWithin {
			return Check{"store", false, fmt.Sprintf("the disk has not answered for %v", silent.Round(time.Second))}
		}
	}
	return Check{"store", true, fmt.Sprintf("writable, %s", terminal.Bytes(uint64(st.FileBytes)))}
}

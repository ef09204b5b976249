package daemon

import (
	"sync"
	"testing"

	"edge/internal/broker/brokertest"
)

// recorder keeps all published messages.
type recorder struct {
	mu       sync.Mutex
	payloads map[string][]string // payloads by topic, in order
}

func record(t *testing.T, connection, filter string) *recorder {
	t.Helper()
	e := &recorder{payloads: map[string][]string{}}
	client := brokertest.Subscribe(t, connection, []string{filter}, func(topic string, payload []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.payloads[topic] = append(e.payloads[topic], string(payload))
	})
	t.Cleanup(client.Close)
	return e
}

// last returns the newest payload of a topic.
func (e *recorder) last(topic string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if all := e.payloads[topic]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (e *recorder) count(topic, payload string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.payloads[topic] {
		if p == payload {
			n++
		}
	}
	return n
}

package stream

import (
	"runtime"
	"testing"
	"weak"

	"edge/online"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// The samples that waited for their labels at the start take no memory once they are dropped.
func TestSamplesOfTheStartAreFreed(t *testing.T) {
	cfg, m := testConfig()
	x := make([]float64, 2)
	freed := weak.Make(&x[0])
	m.Waiting = []online.Pending{{Model: m.Name, Key: 7, X: x}}
	node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	if err != nil {
		t.Fatal(err)
	}
	m.Waiting, x = nil, nil
	node.committer.group.reset()
	node.committer.resume()
	s := node.models[0].pendingStore
	if s.removeKey(7) == nil {
		t.Fatal("the sample does not wait")
	}
	s.commit()
	runtime.GC()
	if freed.Value() != nil {
		t.Error("the sample is kept")
	}
	runtime.KeepAlive(node)
}

// A publication of a fleet takes no memory once the outbox has it.
func TestPublicationsOfAFleetAreFreed(t *testing.T) {
	cfg, _ := testConfig()
	n := &Node{outbox: mqtt.NewOutbox(cfg.Outbox, new(mqtt.Counters))}
	payload := make([]byte, 1000)
	freed := weak.Make(&payload[0])
	m := &fleetMember{waiting: []membership.Publication{{Topic: "t", Payload: payload}}}
	f := &fleets{node: n, members: []*fleetMember{m}}
	payload = nil
	if f.pushWaiting() {
		t.Fatal("it waits on")
	}
	for _, ok := n.outbox.Pop(); ok; {
		_, ok = n.outbox.Pop()
	}
	n.outbox = nil
	runtime.GC()
	if freed.Value() != nil {
		t.Error("the publication is kept")
	}
	runtime.KeepAlive(f)
}

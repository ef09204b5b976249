package stream

import (
	"runtime"
	"testing"
	"weak"

	"edge/online"
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

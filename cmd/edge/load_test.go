//go:build linux

package main

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"edge/cmd/edge/internal/dataset"
)

// TestLoad teaches a daemon samples twice as fast as it can learn them, for
// EDGE_LOAD seconds (default 5). The broker has to hold what is too much:
// what is acknowledged stays a bounded number of samples ahead of what is
// learnt, what is not yet acknowledged is bounded, and memory stays what it was. Then it is killed: what it had
// acknowledged is known.
func TestLoad(t *testing.T) {
	length := time.Duration(tortureNumber(t, "EDGE_LOAD", 5)) * time.Second
	if testing.Short() {
		length = min(length, 3*time.Second)
	}
	s := newSoak(t, 1, "inducing: 100\n    window: 60") // some hundreds of samples a second
	s.start()
	s.connect()

	// Groups that wait for the learner, and the one that is committed; messages in
	// the ring, answered and held, and between worker and committer.
	const ahead, inside = (learnQueue + 2) * 16, 1024 + 1024 + 64 + 2*16
	most, longest, waiting, looks := 0, 0, 0.0, 0.0
	for begun := time.Now(); time.Since(begun) < length; time.Sleep(50 * time.Millisecond) {
		// What is learnt is read first: it can only have become more.
		learnt := int(s.learned())
		most = max(most, s.tap.acknowledged()-learnt)
		waiting, looks = waiting+s.metric(`edge_queue_length{queue="in"}`), looks+1
		longest = max(longest, int(s.metric("edge_unacked_messages")))
		s.measure()
		s.teach(2*learnt + 2*ahead - s.taught) // two for each that is learnt
	}
	acked := s.tap.acknowledged()
	learnt := int(s.learned())
	rate := float64(learnt) / length.Seconds()
	predictions, waited := s.metric(`edge_predict_seconds_count{model="waveform"}`), s.metric(`edge_predict_seconds_sum{model="waveform"}`)
	s.daemon.kill()
	s.tap.settle()
	s.start() // which compares what it knows with what it had acknowledged, and with the truth
	t.Logf("%d samples were published in %v, %d of them learnt, %d acknowledged, %d known after the restart; at most %d acknowledged ahead of learning, %d not acknowledged at once, of which %.0f wait for their prediction on average; %.3g ms from arrival to prediction",
		s.taught, length, learnt, acked, s.known, most, longest, waiting/looks, 1000*waited/predictions)
	if s.taught-acked < ahead/2 || learnt == 0 {
		t.Errorf("%d of %d samples are acknowledged, %d learnt: the load does not bite", acked, s.taught, learnt)
	}
	if want := ahead + int(rate); most > want { // what is known of learning may be half a second old
		t.Errorf("%d samples were acknowledged ahead of learning, want %d at most", most, want)
	}
	if longest > inside {
		t.Errorf("%d messages were in the daemon at once, want %d at most", longest, inside)
	}
	heap := float64(12 << 20) // what is inside grows with what the broker lets be on its way
	if length < time.Minute {
		heap = math.Inf(1) // so short a life has not come to its level
	}
	s.flat(heap)
}

// teach publishes more samples with their labels, n of them.
func (s *soak) teach(n int) {
	var (
		p   Player
		row dataset.Row
	)
	for range n {
		s.rows.Next(&row)
		if err := s.publisher.Publish(s.t.Context(), "sensors/waveform", p.appendSample(nil, strconv.Itoa(row.Number), row.X, row.Label)); err != nil {
			s.t.Fatal(err)
		}
		s.taught++
	}
}

// learned is how many samples the learner has taken in, as the daemon knew half
// a second ago at most.
func (s *soak) learned() (n float64) {
	values, err := scrape(s.web)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range values {
		if strings.HasPrefix(name, "edge_learned_total{") {
			v, _ := strconv.ParseFloat(value, 64)
			n += v
		}
	}
	return n
}

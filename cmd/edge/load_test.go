//go:build linux

package main

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
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

	// As fast as it learns, at first: the window of the broker is never empty.
	rate := 0.0
	for begun, learnt := time.Now(), 0; rate == 0; {
		s.teach(tortureAhead - (s.taught - s.tap.acknowledged()))
		if n := int(s.learned()); learnt == 0 && n > 300 {
			learnt, begun = n, time.Now()
		} else if d := time.Since(begun); learnt > 0 && d > time.Second {
			rate = float64(n-learnt) / d.Seconds()
		}
		time.Sleep(10 * time.Millisecond)
	}

	// Groups that wait for the learner, and the one that is committed; messages in
	// the ring, answered and held, and between worker and committer.
	const ahead, inside = (learnQueue + 2) * 16, 1024 + 1024 + 64 + 2*16
	most, longest, waiting, looks := 0, 0, 0.0, 0.0
	begun := time.Now()
	excess := s.taught
	for i := 0; time.Since(begun) < length; i++ {
		due := excess + int(2*rate*time.Since(begun).Seconds())
		s.teach(due - s.taught)
		if i%20 == 0 {
			// What is learnt is read first: it can only have become more.
			learnt := int(s.learned())
			most = max(most, s.tap.acknowledged()-learnt)
			waiting, looks = waiting+s.metric(`edge_queue_length{queue="in"}`), looks+1
			longest = max(longest, int(s.metric("edge_unacked_messages")))
			s.measure()
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(begun)
	acked := s.tap.acknowledged()
	learnt := int(s.learned())
	predictions, waited := s.metric(`edge_predict_seconds_count{model="waveform"}`), s.metric(`edge_predict_seconds_sum{model="waveform"}`)
	s.daemon.kill()
	s.tap.settle()
	s.start() // which compares what it knows with what it had acknowledged, and with the truth
	t.Logf("it can learn %.0f samples a second; %d were published in %v, %d learnt, %d acknowledged, %d after the restart; at most %d acknowledged ahead of learning, %d not acknowledged at once, of which %.0f wait for their prediction on average; %.3g ms from arrival to prediction",
		rate, s.taught-excess, took.Round(time.Second), learnt, acked, s.known, most, longest, waiting/looks, 1000*waited/predictions)
	if s.taught-acked < int(rate*length.Seconds()/4) {
		t.Errorf("%d of %d samples are acknowledged: the load does not bite", acked, s.taught)
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
		row Row
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

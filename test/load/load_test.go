//go:build slow && linux

package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/test/harness"
)

// TestLoad offers a daemon samples twice as fast as it can learn them, for EDGE_LOAD
// seconds (default 5). The broker holds the excess, as many as mosquitto does by
// default; samples beyond that are not sent. The number of acknowledged samples that
// are not learnt yet is bounded, as is the number of samples that are not
// acknowledged, and memory stays constant. A client with unlabelled samples gets every
// answer; the test prints its latencies. Then the daemon is killed: it keeps all
// acknowledged samples.
func TestLoad(t *testing.T) {
	length := time.Duration(harness.Number(t, "EDGE_LOAD", 5)) * time.Second
	if testing.Short() {
		length = min(length, 3*time.Second)
	}
	size := 100
	if len(harness.Emulator) > 0 { // which computes more slowly
		size = 20
	}
	s := newSoak(t, 1, fmt.Sprintf("inducing: %d\n    window: 60", size)) // some hundreds of samples a second
	s.start()
	s.connect()

	// Groups that wait for the learner, and the one that is committed; messages in
	// the ring, or answered and held, and between worker and committer.
	const ahead, inside = (config.LearnQueue + 2) * 16, 2048 + 64 + 2*16
	const queued = 1000 + 20 // by mosquitto, and on their way
	most, longest, offered, waiting := 0, 0, 0, 0
	before, learnt := 0, 0 // acknowledged at the last look, and learnt
	asking := s.ask()
	const looks = 20 // at least, however slow the machine
	begun := time.Now()
	for ; time.Since(begun) < length || len(s.samples) < looks || (learnt < ahead || waiting < queued/2) && time.Since(begun) < brokertest.Patience; time.Sleep(50 * time.Millisecond) {
		// The number of learnt samples may be old. If it changes, it was read after the
		// last look.
		acked, now := s.tap.Acknowledged(), int(s.learned())
		if now > learnt {
			most = max(most, before-now)
		}
		before, learnt = acked, now
		longest = max(longest, int(s.metric("edge_unacked_messages")))
		s.measure()
		offer := max(2*learnt+2*ahead-offered, 0) // two for each that is learnt
		offered += offer
		s.publishLabelled(min(offer, queued-(s.labelled-s.tap.Acknowledged())))
		waiting = max(waiting, s.labelled-s.tap.Acknowledged())
		asking.one()
	}
	took := time.Since(begun).Round(time.Millisecond)
	asking.end()
	acked := s.tap.Acknowledged()
	learnt = int(s.learned())
	predictions, waited := s.metric(`edge_predict_seconds_count{model="waveform"}`), s.metric(`edge_predict_seconds_sum{model="waveform"}`)
	s.daemon.Kill()
	s.tap.Settle()
	s.start() // start compares the state with the acknowledged samples and with the truth
	t.Logf("%d samples were offered in %v, %d of them sent, %d learnt, %d acknowledged, %d known after the restart; at most %d not acknowledged, %d acknowledged ahead of learning, %d in the daemon at once; %.3g ms from arrival to prediction; %s",
		offered, took, s.labelled, learnt, acked, s.restored, waiting, most, longest, 1000*waited/predictions, asking)
	if waiting < queued/2 || offered < 3*learnt/2 || learnt == 0 {
		t.Errorf("%d samples were offered, %d of them waited at most, %d are learnt: the load is too low", offered, waiting, learnt)
	}
	if most > ahead {
		t.Errorf("%d samples were acknowledged ahead of learning, want %d at most", most, ahead)
	}
	if longest > inside {
		t.Errorf("%d messages were in the daemon at once, want %d at most", longest, inside)
	}
	heap, file := float64(12<<20), float64(2<<20) // messages in the daemon grow with the window of the broker
	if length < time.Minute {
		heap, file = math.Inf(1), 8<<20 // a short run has not reached its level, which max_size bounds
	}
	s.flat(heap, file)
}

// asking is a client of a loaded daemon that publishes unlabelled samples at QoS 0 and
// awaits each answer.
type asking struct {
	t     *testing.T
	rows  *dataset.Waveform
	pub   *broker.Publisher
	mu    sync.Mutex
	asked map[string]time.Time
	took  []time.Duration
}

func (s *soak) ask() *asking {
	a := &asking{t: s.t, rows: dataset.NewWaveform(7), asked: map[string]time.Time{}}
	cfg := brokertest.Config(s.broker.URL())
	subscribed := make(chan struct{}, 1)
	pub, err := broker.NewPublisher(s.t.Context(), cfg, 0, broker.Listener{Filters: []string{"edge/test/waveform/prediction", "asking/ready"}, Receive: func(topic string, payload []byte, _ bool) {
		if topic == "asking/ready" {
			select {
			case subscribed <- struct{}{}:
			default:
			}
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if at, ok := a.asked[gjson.GetBytes(payload, "id").String()]; ok {
			a.took = append(a.took, time.Since(at))
			delete(a.asked, gjson.GetBytes(payload, "id").String())
		}
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(pub.Close)
	a.pub = pub
	if !brokertest.Eventually(func() bool {
		if err := pub.Publish(s.t.Context(), "asking/ready", nil); err != nil {
			s.t.Fatal(err)
		}
		return len(subscribed) > 0
	}) {
		s.t.Fatal("the client does not receive its own messages")
	}
	return a
}

// one publishes one sample.
func (a *asking) one() {
	var (
		p   replay.Player
		row dataset.Row
	)
	a.rows.Next(&row)
	id := fmt.Sprint("asking", row.Number)
	a.mu.Lock()
	a.asked[id] = time.Now()
	a.mu.Unlock()
	if err := a.pub.Publish(a.t.Context(), "sensors/waveform", p.Sample(id, row.X, "")); err != nil {
		a.t.Fatal(err)
	}
}

// end waits for the missing answers.
func (a *asking) end() {
	a.t.Helper()
	if !brokertest.Eventually(func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.asked) == 0
	}) {
		a.t.Errorf("%d of %d questions are not answered", len(a.asked), len(a.asked)+len(a.took))
	}
}

func (a *asking) String() string {
	slices.Sort(a.took)
	at := func(q float64) float64 { return a.took[int(q*float64(len(a.took)-1))].Seconds() * 1000 }
	return fmt.Sprintf("%d answers came after %.3g ms in the median, %.3g ms one in a hundred, %.3g ms at most", len(a.took), at(0.5), at(0.99), at(1))
}

// publishLabelled publishes n more labelled samples.
func (s *soak) publishLabelled(n int) {
	var (
		p   replay.Player
		row dataset.Row
	)
	for range n {
		s.rows.Next(&row)
		if err := s.publisher.Publish(s.t.Context(), "sensors/waveform", p.Sample(strconv.Itoa(row.Number), row.X, row.Label)); err != nil {
			s.t.Fatal(err)
		}
		s.labelled++
	}
}

// learned returns the number of learnt samples, at most half a second old.
func (s *soak) learned() (n float64) {
	values, err := scrape(s.web)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range values {
		if strings.HasPrefix(name, "edge_learned_samples{") {
			v, _ := strconv.ParseFloat(value, 64)
			n += v
		}
	}
	return n
}

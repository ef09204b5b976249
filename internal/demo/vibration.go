package demo

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"edge/internal/broker"
	"edge/internal/timing"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// DefaultRowRate is the default of Config.Rate with Config.Signals: real time.
const DefaultRowRate = vibrationRate

const (
	vibrationRate  = 640 // rows a second, by the clock of the sensor
	windowRows     = 64
	messageRows    = 32
	shortestStay   = 20 // messages in one state
	longestStay    = 60
	labelledStays  = 6  // the first ones, so that there is something to see soon
	windowsAhead   = 20 // sent before their prediction
	aheadPatience  = 2 * time.Second
	resonance      = 170. // Hz, of the housing
	ringing        = 60.  // 1/s, decay of the resonance after an impact
	impactsPerTurn = 3.6  // of a worn bearing
)

// states are the classes of the simulated machine.
var states = []string{"off", "ok", "unbalanced", "worn"}

// vibration simulates an accelerometer of three axes on a machine whose state changes
// every few seconds. Speed, strength and noise are others in each stay in a state, so that
// the states overlap; a single row does not separate them.
type vibration struct {
	rng   *rand.Rand
	state string

	speed, strength, noise float64 // of the stay: Hz; of the rotation; of each axis
	phase, impact          float64 // turns; turns of the impacts
	since                  float64 // s since the last impact
}

// enter begins a stay in another state.
func (v *vibration) enter() {
	for was := v.state; v.state == was; {
		v.state = states[v.rng.IntN(len(states))]
	}
	spread := math.Exp(0.25 * v.rng.NormFloat64())
	v.speed, v.strength, v.noise, v.since = 23+3*v.rng.Float64(), 0.25*spread, 0.12*spread, 1
	switch v.state {
	case "off":
		v.strength, v.noise = 0, 0.02
	case "unbalanced":
		v.strength *= 1.9
	}
}

// row returns the acceleration along x, y and z, in units of gravity.
func (v *vibration) row() [3]float64 {
	const step = 1. / vibrationRate
	v.phase += v.speed * step
	v.since += step
	if v.impact += v.speed * impactsPerTurn * step; v.impact >= 1 {
		v.impact--
		v.since = 0
	}
	ring := 0.
	if v.state == "worn" {
		ring = 1.6 * v.strength * math.Exp(-ringing*v.since) * math.Sin(2*math.Pi*resonance*v.since)
	}
	sin, cos := math.Sincos(2 * math.Pi * v.phase)
	noise := func() float64 { return v.noise * v.rng.NormFloat64() }
	return [3]float64{v.strength*cos + 0.4*ring + noise(), v.strength*sin + ring + noise(), 1 + 0.1*v.strength*cos + 0.2*ring + noise()}
}

// burst is a message of the sensor.
type burst struct {
	Time  float64   `json:"t"` // of the last row, in s since 1970
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	Z     []float64 `json:"z"`
	Label string    `json:"label,omitempty"`
}

// sensor publishes the vibration, as a replay.Player publishes rows.
type sensor struct {
	machine   vibration
	topic     string
	rate      float64     // rows a second; 0: as fast as the daemon follows
	labels    float64     // fraction of the stays that bring their label
	messages  int64       // after which it ends; 0: none
	ready     func() bool // the daemon receives publications
	predicted atomic.Int64

	stays    int
	stay     int // messages left in the state
	labelled bool
	sent     int64 // messages
	lost     int64 // windows that the daemon has not predicted for long
	windows  int   // with a label
}

// newSensor returns the sensor of a demo.
func newSensor(d *Config, s *sensors) *sensor {
	return &sensor{machine: vibration{rng: rand.New(rand.NewPCG(d.Seed, 2))}, topic: "sensors/" + s.name, rate: d.Rate, labels: s.labels, messages: d.messages}
}

// Play publishes until ctx ends, or a number of messages, and returns the number of windows
// with a label.
func (s *sensor) Play(ctx context.Context, connection mqtt.Config) (samples int, err error) {
	pub, err := broker.NewPublisher(ctx, connection, byte(connection.QoS), broker.Listener{})
	if err != nil {
		return 0, err
	}
	defer pub.Close()
	for !s.ready() {
		if err := timing.Sleep(ctx, learntPoll); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	clock := signal.FromTime(begin.Round(time.Second)) // of the sensor: it measures without a pause
	last := ""
	for s.messages == 0 || s.sent < s.messages {
		if err := s.pace(ctx, begin); err != nil {
			return s.windows, err
		}
		s.sent++
		m := s.burst(float64(clock)/1e9 + float64(s.sent)*messageRows/vibrationRate)
		payload, err := json.Marshal(m)
		if err != nil {
			return s.windows, err
		}
		if err := pub.Publish(ctx, s.topic, payload); err != nil {
			return s.windows, err
		}
		if s.sent%(windowRows/messageRows) == 0 && m.Label != "" && m.Label == last {
			s.windows++
		}
		last = m.Label
	}
	return s.windows, pub.Drain(ctx)
}

// pace waits until the next message is due, and until the daemon has predicted all but the
// last windows.
func (s *sensor) pace(ctx context.Context, begin time.Time) error {
	if s.rate > 0 {
		due := begin.Add(timing.Duration(float64((s.sent+1)*messageRows) / s.rate * float64(time.Second)))
		if err := timing.Sleep(ctx, time.Until(due)); err != nil {
			return err
		}
	}
	ahead := func() int64 { return s.sent*messageRows/windowRows - s.predicted.Load() - s.lost }
	for since := time.Now(); ahead() > windowsAhead; {
		if time.Since(since) > aheadPatience {
			s.lost += ahead()
		}
		if err := timing.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// burst returns the next rows, the last of which are of the time t.
func (s *sensor) burst(t float64) *burst {
	if s.stay == 0 {
		s.machine.enter()
		s.stay = shortestStay + s.machine.rng.IntN(longestStay-shortestStay)
		s.stays++
		s.labelled = s.stays <= labelledStays || s.machine.rng.Float64() < s.labels
	}
	s.stay--
	m := &burst{Time: rounded(t, 6)}
	if s.labelled {
		m.Label = s.machine.state
	}
	for range messageRows {
		a := s.machine.row()
		m.X, m.Y, m.Z = append(m.X, rounded(a[0], 4)), append(m.Y, rounded(a[1], 4)), append(m.Z, rounded(a[2], 4))
	}
	return m
}

// rounded returns v with a number of decimals.
func rounded(v float64, decimals int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', decimals, 64), 64)
	return r
}

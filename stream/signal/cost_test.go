package signal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// threeAxes is a stage of windows of two seconds every second, of three signals at 100 Hz.
func threeAxes(t testing.TB) *Stage {
	return newStage(t, Options{Config: config([]string{"x", "y", "z"}, func(w *Window) {
		w.Length, w.Hop = Span{Time: 2 * time.Second}, Span{Time: time.Second}
	})})
}

// sensor gives rows of one device, a row each 10 ms.
type sensor struct {
	message Message
	n       int64
	values  [700][3]float64
}

func newSensor(device string) *sensor {
	s := &sensor{message: Message{Device: device, Own: true, Rows: make([]Row, 1)}}
	for n := range s.values {
		for i := range s.values[n] {
			s.values[n][i] = math.Sin(0.1*float64(n)*float64(i+1)) + 0.01*float64(n%7)
		}
	}
	return s
}

func (s *sensor) next() *Message {
	s.n++
	r := &s.message.Rows[0]
	*r = Row{Time: 1e18 + s.n*int64(10*time.Millisecond), X: s.values[s.n%int64(len(s.values))][:], Label: "walk"}
	return &s.message
}

// A stage that knows its device allocates nothing.
func TestStageAllocatesNothing(t *testing.T) {
	for name, s := range map[string]*Stage{
		"by time": threeAxes(t),
		"by count": newStage(t, Options{Config: config([]string{"x", "y", "z"}, func(w *Window) {
			w.Length, w.Hop = Span{Rows: 200}, Span{Rows: 100}
		})}),
		"derived": newStage(t, Options{Config: func() Config {
			c := config([]string{"x", "y", "z"}, func(w *Window) { w.Length = Span{Rows: 200} })
			c.Derive, c.Calendar, c.TimeZone = Formulas{{Name: "m", Text: "sqrt(x^2 + y^2 + z^2)"}, {Name: "d", Text: "m - lag(m, 5)"}}, []string{"hour"}, "Europe/Berlin"
			return c
		}()}),
	} {
		t.Run(name, func(t *testing.T) {
			from := newSensor("p")
			samples := 0
			second := func() {
				for range 100 {
					samples += len(s.Take(from.next()))
				}
			}
			for range 20 {
				second()
			}
			if n := testing.AllocsPerRun(20, second); n > 0 {
				t.Errorf("%v allocations a second", n)
			}
			if samples == 0 {
				t.Error("no samples")
			}
		})
	}
}

// The windows of 1,000 devices, of 256 rows of three signals each, are 6 MB of numbers, and
// hold little beside them.
func TestStageMemory(t *testing.T) {
	const devices, limit = 1000, 8 << 20
	s := newStage(t, Options{Config: config([]string{"x", "y", "z"}, func(w *Window) {
		w.Length, w.Hop = Span{Rows: 256}, Span{Rows: 128}
	})})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	from := newSensor("")
	for row := range 300 {
		for d := range devices {
			m := from.next()
			m.Device = fmt.Sprintf("device-%04d", d)
			m.Rows[0].Time = 1e18 + int64(row)*int64(10*time.Millisecond)
			s.Take(m)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > limit || held < 256*3*8*devices {
		t.Errorf("%d bytes are held, want at most %d", held, limit)
	}
	if s.Devices() != devices || s.Counts().Samples.Load() != devices {
		t.Errorf("%d devices, %d samples", s.Devices(), s.Counts().Samples.Load())
	}
	runtime.KeepAlive(s)
}

// Size counts the memory of windows of many lengths, with their spectra: that of twenty
// signals is no larger than what it says, twice the rows being held at most.
func TestSizeOfSpectra(t *testing.T) {
	signals := make([]string, 20)
	for i := range signals {
		signals[i] = fmt.Sprintf("s%02d", i)
	}
	c := config(signals, func(w *Window) {
		w.Length, w.Hop, w.MaxRows = Span{Time: 20 * time.Second}, Span{Time: time.Second}, 2000
		w.Features = Choice{All: []string{"bands", "median"}}
	})
	size := c.Size(100)
	if size.Rows != 2000 || size.Most != 2000 {
		t.Fatalf("windows of %d rows, at most %d", size.Rows, size.Most)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := newStage(t, Options{Config: c})
	rng, x := rand.New(rand.NewPCG(1, 1)), make([]float64, len(signals))
	m, samples := &Message{Device: "p", Own: true, Rows: make([]Row, 1)}, 0
	for row := range 10000 {
		if rng.Float64() < 0.1 { // windows of many lengths
			continue
		}
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		m.Rows[0] = Row{Time: 1e18 + int64(row)*int64(10*time.Millisecond), X: x}
		samples += len(s.Take(m))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held, want := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*size.Rows*size.RowBytes+size.Shared)
	const others = 256 << 10
	if samples < 70 || held > want+others || size.Shared > 4<<20 {
		t.Errorf("%d samples, %d bytes are held, want at most %d, of which features need %d", samples, held, want, size.Shared)
	}
	runtime.KeepAlive(s)
}

// The time for one second of three axes at 100 Hz, with the default features of a window
// of two seconds.
func BenchmarkStageSecond(b *testing.B) {
	s, from := threeAxes(b), newSensor("p")
	for range 1000 {
		s.Take(from.next())
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 100 {
			s.Take(from.next())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/s")
}

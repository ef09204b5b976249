package demo

import (
	"math/rand/v2"
	"time"

	"edge/internal/dataset"
	"edge/stream/signal"
)

// fleetWindow is the length of a window of the machines of a fleet, in rows. So short a one leaves
// the states hard to tell, so that labels are worth something.
const fleetWindow = 20

// machines are the rows of a fleet: features of windows of the vibration of machines, each of a
// machine that has just entered another state.
type machines struct {
	machine vibration
	stage   *signal.Stage
	message signal.Message
	number  int
	time    int64 // of the last row, ns
}

// newMachines returns the rows of a seed.
func newMachines(seed uint64) (*machines, error) {
	in := vibrationStream()
	in.Stage.Window.Length, in.Stage.Window.Hop = signal.Span{Rows: fleetWindow}, signal.Span{Rows: fleetWindow}
	stage, err := signal.NewStage(signal.Options{Config: in.StageConfig(), Rate: vibrationRate}, nil)
	if err != nil {
		return nil, err
	}
	return &machines{machine: vibration{rng: rand.New(rand.NewPCG(seed, 2))}, stage: stage, message: signal.Message{Own: true, Rows: make([]signal.Row, fleetWindow)}}, nil
}

// Next draws the next row. It never returns an error.
func (m *machines) Next(row *dataset.Row) error {
	m.machine.enter()
	for i := range m.message.Rows {
		m.time += int64(time.Second) / vibrationRate
		a := m.machine.row()
		m.message.Rows[i] = signal.Row{Time: m.time, X: a[:], Label: m.machine.state}
	}
	m.message.Arrived = m.time
	window := m.stage.Take(&m.message)[0]
	m.number++
	row.Number, row.X, row.Label = m.number, append(row.X[:0], window.X...), window.Label
	return nil
}

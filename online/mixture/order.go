package mixture

import (
	"math"

	"edge/model"
	"edge/online/wire"
)

// order learns model.Order: a move at each of the distances, and the evidence of the
// priors of its row, for every label when it comes.
type order struct {
	ring    [1 << (model.MaxSteps - 1)]int16 // the latest labels; that of label n at n mod its length. −1: its class was removed
	known   int                              // labels in the ring
	waiting [mostWaiting]waitingLabel        // labels whose moves at the distances above 1 are not counted
	waits   int                              // number of these
	pi      []float64                        // C  scratch
	paths   [model.Paths]float64             // log weights, the largest 0
	pending [model.Paths]float64             // Σ log p(label) of the minibatch that is filling
	priors  [model.Priors]float64            // scratch

	recent   []float64 // scratch of Foresee
	foreseen []int     // the same: counts that it raised
}

const (
	orderMemory = 2000 // labels by which the evidence of the priors fades
	pathMemory  = 100  // labels that the weights of the paths remember
)

// mostWaiting is the number of labels whose moves may wait, at most: far fewer than the
// ring has.
const mostWaiting = 16

// waitingLabel is a label when it came.
type waitingLabel struct {
	number        uint64 // of labels before it
	class, oldest int16  // oldest: the label that it replaced in the ring
	known         int    // labels in the ring before it
}

// NextLabel extends the order by a label of class k. Its move is judged before it is
// counted; at a distance of d labels neighbouring moves are much the same, and each is
// evidence of weight d^−½.
//
// The next answer needs the moves at the distance 1 alone. The others wait for CountMoves,
// which comes before Posterior.Counts change and before a snapshot.
func (m *Mixture) NextLabel(k int) {
	o, v := &m.order, &m.view.Pool.Order
	if v.Last = k; v.Steps == nil {
		return
	}
	if o.waits == len(o.waiting) {
		m.CountMoves()
	}
	if o.waits == 0 {
		m.setFrequenciesOfMoves()
	}
	slot, label := &o.ring[v.Labels%uint64(len(o.ring))], &o.waiting[o.waits]
	*label = waitingLabel{v.Labels, int16(k), *slot, o.known}
	o.waits++
	m.countMove(0, label)
	*slot = int16(k)
	o.known = min(o.known+1, len(o.ring))
	v.Labels++
	m.noteRecent(k)
}

// Foresee calls Foresee of the view for each of the next samples, with the order of the
// labels as it will be before the sample's own. Labels are the classes of the samples; −1:
// the sample's label does not go to NextLabel. Nothing else has changed afterwards.
func (m *Mixture) Foresee(labels []int, ws *model.Workspace) {
	o, v := &m.order, &m.view.Pool.Order
	if v.Steps == nil {
		for i, k := range labels {
			m.view.Foresee(i, min(k+1, 1), ws)
		}
		return
	}
	step, c := &v.Steps[0], len(m.view.Names)
	last, before, counted := v.Last, *step, o.foreseen[:0]
	o.recent = append(o.recent[:0], v.Recent...)
	defer func() {
		for _, at := range counted {
			step.Counts[at]--
		}
		v.Last, step.Stayed, step.All, step.Evidence = last, before.Stayed, before.All, before.Evidence
		copy(v.Recent, o.recent)
		o.foreseen = counted
	}()
	if o.waits == 0 {
		m.setFrequenciesOfMoves()
	}
	a := -1
	if o.known > 0 {
		a = int(o.ring[(v.Labels-1)%uint64(len(o.ring))])
	}
	for i, k := range labels {
		m.view.Foresee(i, min(k+1, 1), ws)
		if k < 0 {
			continue
		}
		if v.Last = k; a >= 0 && m.judgeMove(step, 1, a, k) {
			counted = append(counted, a*c+k)
		}
		m.noteRecent(k)
		a = k
	}
}

// CountMoves counts the moves that wait.
func (m *Mixture) CountMoves() {
	o := &m.order
	for i := range o.waiting[:o.waits] { // the processor begins with one distance while it waits for another
		for j := 1; j < len(m.view.Pool.Order.Steps); j++ {
			m.countMove(j, &o.waiting[i])
		}
	}
	o.waits = 0
}

// setFrequenciesOfMoves stores the present frequencies of the classes in order.pi. They stay
// the same while moves wait.
func (m *Mixture) setFrequenciesOfMoves() {
	if len(m.view.Names) > 1 {
		m.order.pi = m.view.FrequenciesTo(m.order.pi)
	}
}

// countMove counts the move to a label at the distance 2^j.
func (m *Mixture) countMove(j int, label *waitingLabel) {
	o, d := &m.order, 1<<j
	if d > label.known {
		return
	}
	a, k := int(label.oldest), int(label.class)
	if d < len(o.ring) {
		a = int(o.ring[(label.number-uint64(d))%uint64(len(o.ring))])
	}
	if a < 0 {
		return
	}
	m.judgeMove(&m.view.Pool.Order.Steps[j], d, a, k)
}

// judgeMove judges a move from class a to class k at the distance d, and counts it. It
// reports false if the count is full.
func (m *Mixture) judgeMove(step *model.Moves, d, a, k int) bool {
	o, c := &m.order, len(m.view.Names)
	if c > 1 {
		step.LogsTo(&o.priors, a, k, o.pi)
		weight := math.Sqrt(1 / float64(d))
		for z, logp := range o.priors {
			step.Evidence[z] = float64((1-1./orderMemory)*step.Evidence[z]) + float64(weight*logp)
		}
	}
	return step.Count(a, k, c)
}

// setPaths stores softmax(paths) in the view.
func (m *Mixture) setPaths() { weightsTo(m.view.Pool.Order.Paths[:], m.order.paths[:]) }

// noteRecent counts a label of class k among the latest.
func (m *Mixture) noteRecent(k int) {
	recent, c := m.view.Pool.Order.Recent, len(m.view.Names)
	for j, memory := range model.RecentMemories {
		row := recent[j*c : (j+1)*c]
		scale(1-1/memory, row)
		row[k]++
	}
}

// growOrder makes room for the classes that were added to the view since it had old.
func (m *Mixture) growOrder(old int) {
	c, v := len(m.view.Names), &m.view.Pool.Order
	if !m.cfg.Chain || (c == old && v.Steps != nil) {
		return
	}
	if v.Steps == nil {
		v.Steps, old = make([]model.Moves, model.MaxSteps), 0
	}
	for j := range v.Steps {
		v.Steps[j].Counts = grown(v.Steps[j].Counts, old, old, c, c)
	}
	v.Recent = grown(v.Recent, len(model.RecentMemories), old, len(model.RecentMemories), c)
}

// grown copies a matrix of rows × cols into a larger one.
func grown[T any](from []T, rows, cols, toRows, toCols int) []T {
	to := make([]T, toRows*toCols)
	for i := range rows {
		copy(to[i*toCols:], from[i*cols:(i+1)*cols])
	}
	return to
}

// dropFromOrder removes class k: its moves, and its labels. To maps each class before
// to its index afterwards.
func (m *Mixture) dropFromOrder(k int, to []int) {
	o, v := &m.order, &m.view.Pool.Order
	if v.Last >= 0 {
		v.Last = to[v.Last]
	}
	for i, a := range o.ring {
		if a >= 0 {
			o.ring[i] = int16(to[a])
		}
	}
	if v.Steps == nil {
		return
	}
	c := len(to)
	for j := range v.Steps {
		step := &v.Steps[j]
		kept := appendWithout(make([]uint32, 0, (c-1)*(c-1)), step.Counts[:k*c], k, c)
		step.Counts = appendWithout(kept, step.Counts[(k+1)*c:], k, c)
		step.Recount(c - 1)
	}
	v.Recent = appendWithout(nil, v.Recent, k, c)
}

// EncodeOrder appends the order of the labels; nothing if it is not used.
func (m *Mixture) EncodeOrder(e *wire.Encoder) {
	o, v := &m.order, &m.view.Pool.Order
	if v.Steps == nil {
		return
	}
	m.CountMoves()
	e.Uint(v.Labels)
	e.Int(o.known)
	for i := range o.known {
		e.Int(int(o.ring[(v.Labels-uint64(o.known-i))%uint64(len(o.ring))]) + 1)
	}
	e.Int(len(v.Steps))
	for j := range v.Steps {
		for _, n := range v.Steps[j].Counts {
			e.Uint(uint64(n))
		}
		e.Floats(v.Steps[j].Evidence[:])
	}
	e.Floats(v.Recent)
	e.Floats(o.paths[:])
	e.Floats(o.pending[:])
}

// DecodeOrder reads the values that EncodeOrder wrote.
func (m *Mixture) DecodeOrder(d *wire.Decoder) {
	c := len(m.view.Names)
	var o order
	v := model.Order{Last: -1, Labels: d.Uint()}
	o.known = d.Int(len(o.ring), "latest labels")
	for i := range o.known {
		v.Last = d.Int(c, "class") - 1
		o.ring[(v.Labels-uint64(o.known-i))%uint64(len(o.ring))] = int16(v.Last)
	}
	if uint64(o.known) > v.Labels {
		d.Fail("more latest labels than labels")
	}
	v.Steps = make([]model.Moves, d.Int(model.MaxSteps, "distances"))
	if len(v.Steps) == 0 {
		d.Fail("moves of no distance")
	}
	for j := range v.Steps {
		step := &v.Steps[j]
		if d.Len() < c*c {
			d.Fail("truncated moves")
			return
		}
		step.Counts = make([]uint32, c*c)
		for i := range step.Counts {
			n := d.Uint()
			if n > math.MaxUint32 {
				d.Fail("a count of moves is too large")
				return
			}
			step.Counts[i] = uint32(n)
		}
		step.Recount(c)
		d.Numbers(step.Evidence[:], "evidence of the moves")
	}
	v.Recent = make([]float64, len(model.RecentMemories)*c)
	d.Numbers(v.Recent, "latest labels")
	d.Numbers(o.paths[:], "weights of the paths")
	d.Numbers(o.pending[:], "evidence of the paths")
	if d.Err() == nil && m.cfg.Chain {
		m.order, m.view.Pool.Order = o, v
		m.setPaths()
	}
}

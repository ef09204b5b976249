package online

import (
	"encoding/binary"
	"fmt"
	"math"

	"edge/model"
)

// stateMagic and stateVersion open every encoded state. A version that this
// program does not know is refused. Version 1 had the scores in the middle of
// the model and no sections; it is read, and written no more.
const (
	stateMagic   = "edgelrn\x00"
	stateVersion = 2

	firstMembers = 12 // of the pool, in version 1
)

// encoder appends little-endian values to a byte slice.
type encoder struct{ buf []byte }

func (e *encoder) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }

func (e *encoder) int(v int) { e.uint(uint64(v)) }

func (e *encoder) float(v float64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
}

func (e *encoder) float32(v float64) {
	e.buf = binary.LittleEndian.AppendUint32(e.buf, math.Float32bits(float32(v)))
}

func (e *encoder) bool(v bool) {
	if v {
		e.uint(1)
	} else {
		e.uint(0)
	}
}

func (e *encoder) string(s string) {
	e.int(len(s))
	e.buf = append(e.buf, s...)
}

func (e *encoder) bytes(b []byte) {
	e.int(len(b))
	e.buf = append(e.buf, b...)
}

// floats writes values whose number the reader knows.
func (e *encoder) floats(x []float64) {
	for _, v := range x {
		e.float(v)
	}
}

// decoder reads what encoder wrote. After the first error every read returns
// zero; err says what was wrong. No length is believed beyond what is left.
type decoder struct {
	buf     []byte
	err     error
	section string // that it reads, if it reads one
}

func (d *decoder) fail(what string) {
	if d.err != nil {
		return
	}
	if d.section != "" {
		what = "section " + d.section + ": " + what
	}
	d.err = fmt.Errorf("online: state: %s: %w", what, ErrState)
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.fail("truncated number")
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

// int reads a count of at most limit.
func (d *decoder) int(limit int, what string) int {
	v := d.uint()
	if v > uint64(limit) {
		d.fail(fmt.Sprintf("%s %d is above %d", what, v, limit))
		return 0
	}
	return int(v)
}

func (d *decoder) bool() bool { return d.int(1, "flag") == 1 }

func (d *decoder) string() string { return string(d.bytes("string")) }

// bytes reads a length and as many bytes, which alias the input.
func (d *decoder) bytes(what string) []byte {
	n := d.int(len(d.buf), "length of a "+what)
	if n > len(d.buf) {
		d.fail("truncated " + what)
	}
	if d.err != nil {
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) float() float64 {
	if len(d.buf) < 8 {
		d.fail("truncated")
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(d.buf))
	d.buf = d.buf[8:]
	return v
}

// number reads a value that is finite.
func (d *decoder) number(what string) float64 {
	v := d.float()
	if v-v != 0 {
		d.fail(what + " hold a number that is not finite")
		return 0
	}
	return v
}

// float32 reads a finite value of 32 bits.
func (d *decoder) float32(what string) float64 {
	if len(d.buf) < 4 {
		d.fail("truncated " + what)
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(d.buf))
	d.buf = d.buf[4:]
	if v-v != 0 {
		d.fail(what + " holds a number that is not finite")
		return 0
	}
	return float64(v)
}

// fill reads len(dst) values, none of them NaN.
func (d *decoder) fill(dst []float64, what string) {
	if len(d.buf) < 8*len(dst) {
		d.fail("truncated " + what)
		return
	}
	for i := range dst {
		v := d.float()
		if math.IsNaN(v) {
			d.fail(what + " holds NaN")
			return
		}
		dst[i] = v
	}
}

// floats reads n values into a new slice.
func (d *decoder) floats(n int, what string) []float64 {
	if d.err != nil || len(d.buf)/8 < n {
		d.fail("truncated " + what)
		return nil
	}
	x := make([]float64, n)
	d.fill(x, what)
	return x
}

// ints reads n indices below limit.
func (d *decoder) ints(n, limit int, what string) []int {
	if d.err != nil || len(d.buf) < n {
		d.fail("truncated " + what)
		return nil
	}
	x := make([]int, n)
	for i := range x {
		x[i] = d.int(limit-1, what)
	}
	return x
}

// AppendBinary appends the whole state, from which Restore carries on exactly:
// the primary numbers only, triangles packed, then the sections. The error is
// always nil.
//
// Size in bytes, after the warm-up: 8·[H·C·(M(M+1)/2 + M) + R·(D + 2HC) +
// 3(MD + D + 3) + C²] plus the sections, of which the regression's 8·2C(D+1) is
// the largest; StateSize tells it part by part.
func (l *Learner) AppendBinary(dst []byte) ([]byte, error) {
	e := &encoder{buf: append(dst, stateMagic...)}
	e.uint(stateVersion)
	l.encodeCore(e)
	l.encodeSections(e)
	return e.buf, nil
}

// encodeCore appends what every state has.
func (l *Learner) encodeCore(e *encoder) {
	e.string(l.cfg.Shape())
	e.int(len(l.names))
	for _, name := range l.names {
		e.string(name)
	}
	e.int(len(l.view.Names))
	for _, n := range l.view.Counts {
		e.uint(n)
	}
	e.uint(l.view.N)
	e.int(len(l.poolLogw))
	e.floats(l.poolLogw)
	e.floats(l.pendPool)
	e.bool(l.view.Pool.Moves != nil)
	e.floats(l.view.Pool.Moves)
	e.int(l.view.Pool.Last + 1)
	e.bool(l.warm)
	e.int(l.lastBuild)
	e.floats(l.view.Scale.Mu)
	e.floats(l.view.Scale.Sd)
	if l.warm {
		e.floats(l.sd0)
	}
	e.int(len(l.bufY))
	e.floats(l.bufX)
	for _, k := range l.bufY {
		e.int(k)
	}
	e.int(len(l.pendY))
	e.floats(l.pendX)
	e.floats(l.pendLL)
	for _, k := range l.pendY {
		e.int(k)
	}
	for _, v := range l.counters.all() {
		e.uint(*v)
	}
	e.bool(l.view.Built())
	if l.view.Built() {
		l.encodeModel(e)
	}
}

// encodeModel appends parameters, optimiser, window and sites.
func (l *Learner) encodeModel(e *encoder) {
	e.int(len(l.winY))
	e.int(len(l.view.Latent))
	for _, k := range l.view.Latent {
		e.int(k)
	}
	e.floats(l.params.Theta)
	e.floats(l.opt.m)
	e.floats(l.opt.v)
	e.uint(l.opt.steps)
	e.floats(l.logw)
	e.floats(l.winX)
	for _, y := range l.winY {
		e.int(y)
	}
	for h := range l.bank {
		b := &l.bank[h]
		for k := range l.view.Latent {
			for i := range l.m {
				at := (k*l.m + i) * l.m
				e.floats(b.A[at : at+i+1])
			}
			at := k * l.capacity
			e.floats(b.s1[at : at+len(l.winY)])
			e.floats(b.s2[at : at+len(l.winY)])
		}
		e.floats(b.b)
	}
}

// Restore returns the learner whose AppendBinary gave data, under cfg. It
// carries on exactly: the same events lead to the same bytes. A cfg of another
// shape is refused with ErrShape, anything that is not a state with ErrState.
func Restore(cfg Config, data []byte) (*Learner, error) {
	l, err := NewLearner(cfg)
	if err != nil {
		return nil, err
	}
	if len(data) < len(stateMagic) || string(data[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("online: state does not begin with its mark: %w", ErrState)
	}
	d := &decoder{buf: data[len(stateMagic):]}
	version := d.uint()
	if d.err == nil && (version < 1 || version > stateVersion) {
		return nil, fmt.Errorf("online: state of version %d, this program reads versions 1 to %d: %w", version, stateVersion, ErrState)
	}
	if shape := d.string(); d.err == nil && shape != cfg.Shape() {
		return nil, fmt.Errorf("online: state was made with %s, configuration has %s: %w", shape, cfg.Shape(), ErrShape)
	}
	l.names, l.latent = nil, nil
	clear(l.class)
	for range d.int(maxClasses, "number of classes") {
		name := d.string()
		if _, twice := l.class[name]; twice {
			d.fail("class occurs twice")
		}
		l.addClass(name)
	}
	declared := d.int(len(l.names), "number of declared classes")
	l.view.Names = l.names[:declared:declared]
	l.view.Counts = make([]uint64, declared)
	for k := range l.view.Counts {
		l.view.Counts[k] = d.uint()
	}
	l.view.N = d.uint()
	members := firstMembers
	if version > 1 {
		members = d.int(len(model.Members), "number of the pool's members")
	}
	l.restorePool(d, members)
	l.warm = d.bool()
	l.lastBuild = d.int(math.MaxInt32, "build size")
	d.fill(l.view.Scale.Mu, "scale")
	d.fill(l.view.Scale.Sd, "scale")
	for _, sd := range l.view.Scale.Sd {
		if !(sd > 0) {
			d.fail("a standard deviation is not positive")
		}
	}
	if l.warm {
		l.sd0 = d.floats(l.d, "scale")
	}
	n := d.int(maxWarmup+maxBatch, "warm-up buffer")
	l.bufX = d.floats(n*l.d, "warm-up buffer")
	l.bufY, l.bufW = d.ints(n, len(l.names), "class"), ones(n)
	n = d.int(maxBatch, "minibatch")
	l.pendX = d.floats(n*l.d, "minibatch")
	l.pendLL = d.floats(n*len(cfg.Horizons), "minibatch")
	l.pendY, l.pendW = d.ints(n, len(l.names), "class"), ones(n)
	if version == 1 {
		l.judge.decodeVersion1(d)
	}
	for _, v := range l.counters.all() {
		*v = d.uint()
	}
	if built := d.bool(); built && d.err == nil {
		l.restoreModel(d)
	}
	if version > 1 {
		l.decodeSections(d)
	}
	if d.err == nil && len(d.buf) > 0 {
		d.fail(fmt.Sprintf("%d bytes too many", len(d.buf)))
	}
	if d.err != nil {
		return nil, d.err
	}
	// Classes declared since the state was written.
	for _, name := range cfg.Classes.Names {
		if _, known := l.class[name]; !known && !l.roster.gone[name] && len(l.names) < maxClasses {
			l.addClass(name)
		}
	}
	if len(cfg.Classes.Names) > 0 && l.Pending() == 0 {
		l.publishClasses()
	}
	return l, nil
}

// restorePool reads the pool as it was when it had so many members; those that
// came after them have to earn their trust.
func (l *Learner) restorePool(d *decoder, members int) {
	c, p := len(l.view.Names), &l.view.Pool
	d.fill(l.poolLogw[:members], "weights of the pool")
	d.fill(l.pendPool[:members], "evidence of the pool")
	for m := members; m < len(l.poolLogw); m++ {
		l.poolLogw[m] = distrust
	}
	p.Moves = nil
	if d.bool() {
		p.Moves = d.floats(c*c, "chain of labels")
	}
	for _, v := range p.Moves {
		if v < 0 {
			d.fail("a transition was seen less than never")
		}
	}
	p.Last = d.int(c, "last label") - 1
	switch {
	case d.err != nil:
		return
	case l.cfg.Temporal == TemporalOff:
		p.Moves, p.Last = nil, -1
	case p.Moves == nil: // the order of labels counts from now on
		p.Moves = make([]float64, c*c)
	}
	l.setPoolWeights()
	p.Stack.Recent = nil
	l.growRecent(0)
	l.distrustStack() // unless the state has it
}

func (l *Learner) restoreModel(d *decoder) {
	scale := l.view.Scale
	n := d.int(max(maxWindow, maxBatch)+replay, "window")
	// What was filling or in the window under a larger minibatch size still fits.
	l.setRoom(max(l.room, len(l.pendY)+1), n)
	l.allocate()
	copy(l.view.Scale.Mu, scale.Mu)
	copy(l.view.Scale.Sd, scale.Sd)
	c := d.int(len(l.names), "number of latent functions")
	l.reserve(c)
	for _, k := range d.ints(c, len(l.names), "class of a latent function") {
		l.ensureLatent(k)
	}
	if len(l.view.Latent) != c {
		d.fail("two latent functions of one class")
	}
	d.fill(l.params.Theta, "parameters")
	d.fill(l.opt.m, "optimiser")
	d.fill(l.opt.v, "optimiser")
	l.opt.steps = d.uint()
	d.fill(l.logw, "horizons' weights")
	l.winX = append(l.winX[:0], d.floats(n*l.d, "window")...)
	l.winY, l.winW = append(l.winY[:0], d.ints(n, c, "label")...), append(l.winW[:0], ones(n)...)
	for h := range l.bank {
		b := &l.bank[h]
		for k := range l.view.Latent {
			for i := range l.m {
				at := (k*l.m + i) * l.m
				d.fill(b.A[at:at+i+1], "absorbed sites")
			}
			at := k * l.capacity
			d.fill(b.s1[at:at+n], "sites")
			d.fill(b.s2[at:at+n], "sites")
		}
		d.fill(b.b, "absorbed sites")
	}
	if d.err != nil {
		return
	}
	l.setWeights()
	if err := l.setBases(); err != nil {
		d.err = fmt.Errorf("online: state: %w: %w", ErrState, err)
		return
	}
	l.features()
	if err := l.refreshAll(); err != nil {
		d.err = fmt.Errorf("online: state: %w: %w", ErrState, err)
	}
}

func (l *Learner) encodeFiltered(e *encoder) {
	if l.filtered > 0 {
		e.int(l.filtered)
	}
}

func (l *Learner) decodeFiltered(d *decoder) {
	l.filtered = d.int(min(replay-1, len(l.winY)), "number of filtered samples")
	if d.err != nil {
		return
	}
	l.features()
	if err := l.refreshAll(); err != nil {
		d.err = fmt.Errorf("online: state: %w: %w", ErrState, err)
	}
}

func (c *Counters) all() []*uint64 {
	return []*uint64{&c.Steps, &c.StepsRefused, &c.LabelsRefused, &c.CholeskyRetries}
}

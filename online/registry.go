package online

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"edge/model"
	"edge/online/conformal"
	"edge/online/wire"
)

// Bounds of the class registry.
const (
	maxUnconfirmed = 64   // labels that are not classes yet
	maxHeld        = 1600 // samples of all of them
	maxEpochs      = 32   // earlier lists of classes
	maxConfirm     = 100  // samples after which a new label is a class
)

// knownBefore, as the place of a held sample, marks a label that was known before it.
// Earlier programs wrote places of at most 2^30.
const knownBefore = math.MaxInt32

// registry holds the classes of a learner: their names, their latent functions, and
// the history that is needed to read predictions of earlier lists of classes.
type registry struct {
	names  []string       // every class; those of the last snapshot are in the view
	index  map[string]int // index in names, of names and aliases
	latent []int          // class → latent function, −1 before it has one

	epoch       uint64          // as in model.Posterior
	past        []remap         // oldest first
	imported    map[string]bool // classes of a fleet without an own label
	removed     map[string]bool // declared names that a command removed: a restart must not add them again
	unconfirmed []unconfirmed   // labels that are not classes yet, the latest at the end
}

// remap maps the classes of an earlier epoch to the present ones.
type remap struct {
	epoch uint64
	now   []int // present index, −1 if the class was removed
}

// unconfirmed is a label that is not a class yet.
type unconfirmed struct {
	name    string
	samples []Event // that carried it
}

func newRegistry() registry {
	return registry{index: map[string]int{}, imported: map[string]bool{}, removed: map[string]bool{}}
}

// add appends a class and returns its index. It is not inlined, which would make its many callers
// larger for a class that comes once.
//
//go:noinline
func (r *registry) add(name string) int {
	k := len(r.names)
	r.index[name] = k
	r.names = append(r.names, name)
	r.latent = append(r.latent, -1)
	return k
}

// clearLatent forgets the latent functions of all classes.
func (r *registry) clearLatent() {
	for k := range r.latent {
		r.latent[k] = -1
	}
}

// setLatent inverts latents, the class of each latent function.
func (r *registry) setLatent(latents []int) {
	r.clearLatent()
	for i, class := range latents {
		r.latent[class] = i
	}
}

// without returns the mapping that removes class k.
func (r *registry) without(k int) (to []int) {
	to = make([]int, len(r.names))
	for i := range to {
		switch {
		case i < k:
			to[i] = i
		case i == k:
			to[i] = -1
		default:
			to[i] = i - 1
		}
	}
	return to
}

// remove removes class k; to is without(k). A removed alias that is in declared is
// remembered. The caller calls change.
func (r *registry) remove(k int, to []int, declared []string) {
	for alias, i := range r.index {
		r.index[alias] = to[i]
		if i != k {
			continue
		}
		delete(r.index, alias)
		if slices.Contains(declared, alias) {
			r.removed[alias] = true
		}
	}
	delete(r.imported, r.names[k])
	r.names = slices.Delete(slices.Clone(r.names), k, k+1) // snapshots may share it
	r.latent = slices.Delete(r.latent, k, k+1)
}

// change composes every remap with a change of the list of classes: class i
// becomes to[i], −1 if it is removed. The epoch that ends is remembered as well.
func (r *registry) change(to []int) {
	for _, p := range r.past {
		for i, k := range p.now {
			if k >= 0 {
				p.now[i] = to[k]
			}
		}
	}
	if len(r.past) == maxEpochs {
		r.past = slices.Delete(r.past, 0, 1)
	}
	r.past = append(r.past, remap{r.epoch, slices.Clone(to)})
	r.epoch++
}

// now returns the present index of class k of an epoch; −1 if the class was
// removed or the epoch is forgotten.
func (r *registry) now(k int, epoch uint64) int {
	if epoch == r.epoch {
		return k
	}
	for _, p := range r.past {
		if p.epoch == epoch && k < len(p.now) {
			return p.now[k]
		}
	}
	return -1
}

// translate returns a prediction of an epoch over the present classes: the
// probability of removed classes is shared out among the others. Nil if no class of
// it is left.
func (r *registry) translate(probs []float64, epoch uint64) []float64 {
	if epoch == r.epoch {
		return probs
	}
	var now []float64
	var sum float64
	for k, v := range probs {
		at := r.now(k, epoch)
		if at < 0 {
			continue
		}
		for at >= len(now) {
			now = append(now, 0)
		}
		now[at] = v
		sum += v
	}
	if !(sum > 0) {
		return nil
	}
	for k := range now {
		now[k] /= sum
	}
	return now
}

// aliases are the former names of classes that still refer to them, and the present names
// of these classes.
func (r *registry) aliases() map[string]string {
	if len(r.index) == len(r.names) {
		return nil
	}
	names := map[string]string{}
	for name, k := range r.index {
		if now := r.names[k]; now != name {
			names[name] = now
		}
	}
	return names
}

// hold keeps a sample of an unconfirmed label, and returns all its samples once
// they are as many as needed; nil before.
func (r *registry) hold(ev *Event, needed int) (confirmed []Event, dropped uint64) {
	u := unconfirmed{ev.Label, r.release(ev.Label)}
	kept := *ev
	kept.X, kept.Probs, kept.Parts, kept.Meta = slices.Clone(ev.X), slices.Clone(ev.Probs), nil, conformal.PredictionMeta{}
	for i, v := range kept.X { // as a state keeps them; NaN stays
		kept.X[i] = min(max(v, -model.MaxFeature), model.MaxFeature)
	}
	u.samples = append(u.samples, kept)
	if len(u.samples) >= needed {
		return u.samples, 0
	}
	r.unconfirmed = append(r.unconfirmed, u)
	for len(r.unconfirmed) > maxUnconfirmed || r.held() > maxHeld {
		dropped++
		r.unconfirmed = slices.Delete(r.unconfirmed, 0, 1)
	}
	return nil, dropped
}

// held is the number of samples of unconfirmed labels.
func (r *registry) held() (n int) {
	for _, u := range r.unconfirmed {
		n += len(u.samples)
	}
	return n
}

// release removes an unconfirmed label and returns its samples.
func (r *registry) release(name string) (samples []Event) {
	at := slices.IndexFunc(r.unconfirmed, func(u unconfirmed) bool { return u.name == name })
	if at >= 0 {
		samples = r.unconfirmed[at].samples
		r.unconfirmed = slices.Delete(r.unconfirmed, at, at+1)
	}
	return samples
}

// drop removes a sample with the raw features x from an unconfirmed label; it
// reports whether it found one.
func (r *registry) drop(name string, x []float64) bool {
	for i := range r.unconfirmed {
		u := &r.unconfirmed[i]
		at := slices.IndexFunc(u.samples, func(held Event) bool { return sameSample(held.X, x) })
		if u.name == name && at >= 0 {
			u.samples = slices.Delete(u.samples, at, at+1)
			return true
		}
	}
	return false
}

// sameSample reports whether two samples have the same raw features.
func sameSample(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return bounded(a) == bounded(b) })
}

// encode appends the history; nothing if it is empty.
func (r *registry) encode(e *wire.Encoder) {
	aliases := r.aliases()
	if r.epoch == 0 && len(r.past)+len(r.removed)+len(r.unconfirmed)+len(aliases) == 0 {
		return
	}
	e.Uint(r.epoch)
	e.Int(len(r.past))
	for _, p := range r.past {
		e.Uint(p.epoch)
		e.Int(len(p.now))
		for _, k := range p.now {
			e.Int(k + 1)
		}
	}
	e.Int(len(r.removed))
	for _, name := range slices.Sorted(maps.Keys(r.removed)) {
		e.String(name)
	}
	e.Int(len(aliases))
	for _, name := range slices.Sorted(maps.Keys(aliases)) {
		e.String(name)
		e.Int(r.index[name])
	}
	e.Int(len(r.unconfirmed))
	for _, u := range r.unconfirmed {
		e.String(u.name)
		e.Int(len(u.samples))
		for i := range u.samples {
			s := &u.samples[i]
			for _, v := range s.X {
				e.Float(bounded(v))
			}
			e.Bool(s.Probs != nil)
			e.Int(len(s.Probs))
			e.Floats(s.Probs)
			e.Float(s.Weight)
			if s.Known {
				e.Int(knownBefore)
			} else {
				e.Int(0) // place in the order of the labels, of earlier programs
			}
			e.Int(0)
			e.Uint(s.Epoch)
		}
	}
}

// decode reads the history that encode wrote, of samples of that many features.
func (r *registry) decode(d *wire.Decoder, features int) {
	r.epoch = d.Uint()
	r.past = make([]remap, d.Int(maxEpochs, "number of epochs"))
	for i := range r.past {
		p := &r.past[i]
		p.epoch = d.Uint()
		p.now = make([]int, d.Int(maxClasses, "number of classes"))
		for k := range p.now {
			p.now[k] = d.Int(len(r.names), "class") - 1
		}
	}
	for range d.Int(math.MaxInt32, "number of names") {
		if d.Err() != nil {
			return
		}
		r.removed[d.String(math.MaxInt32)] = true
	}
	for range d.Int(MaxNames, "number of names") {
		name := d.String(math.MaxInt32)
		k := d.Int(len(r.names)-1, "class")
		if _, twice := r.index[name]; twice || d.Err() != nil {
			d.Fail("a name occurs twice")
			return
		}
		r.index[name] = k
	}
	r.unconfirmed = make([]unconfirmed, d.Int(maxUnconfirmed, "number of candidates"))
	for i := range r.unconfirmed {
		u := &r.unconfirmed[i]
		u.name = d.String(math.MaxInt32)
		u.samples = make([]Event, d.Int(maxConfirm, "number of samples"))
		for j := range u.samples {
			s := &u.samples[j]
			s.Kind, s.Label = Observe, u.name
			s.X = withNaN(d.Floats(features, "sample"))
			late := d.Bool()
			if s.Probs = d.Floats(d.Int(maxClasses, "number of classes"), "prediction"); !late {
				s.Probs = nil
			}
			s.Weight = d.Float()
			s.Known = d.Int(knownBefore, "distance") == knownBefore
			d.Int(maxClasses, "class")
			s.Epoch = d.Uint()
		}
	}
}

// checkNewLabel returns an error if a label that is not a class may not become
// one, and counts it.
func (l *Learner) checkNewLabel(label string) error {
	err := l.checkName(label)
	if err == nil && !l.cfg.Classes.Open {
		err = fmt.Errorf("online: label %.40q is not one of the classes, which are closed: %w", label, ErrClass)
	}
	if err != nil {
		l.counters.LabelsRefused++
	}
	return err
}

// checkName returns an error if a name may not be added to the classes.
func (l *Learner) checkName(name string) error {
	switch n := len(l.classes.names) - len(l.classes.imported); { // the imported ones make room
	case name == "" || len(name) > MaxLabel:
		return fmt.Errorf("online: label of %d bytes: want 1 to %d: %w", len(name), MaxLabel, ErrClass)
	case n >= l.cfg.Classes.Max:
		return fmt.Errorf("online: label %.40q with %d classes known, at most %d: %w", name, n, l.cfg.Classes.Max, ErrClass)
	}
	return nil
}

// confirm keeps a sample whose label is not a class yet, and returns the samples
// to be learnt now that the label is confirmed; none if it is not.
func (l *Learner) confirm(ev *Event) []Event {
	needed := l.cfg.Classes.Needed(len(l.classes.names))
	if needed <= 1 {
		return []Event{*ev}
	}
	confirmed, dropped := l.classes.hold(ev, needed)
	l.counters.CandidatesDropped += dropped
	return confirmed
}

package online

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"edge/model"
)

// Bounds of what is remembered about the classes.
const (
	maxCandidates = 64   // labels that are not classes yet
	maxWaiting    = 1600 // samples of all of them
	maxEpochs     = 32   // lists of classes of before
	maxConfirm    = 100  // samples after which a new label is a class
)

// roster is what a learner remembers about its classes beside their names.
type roster struct {
	epoch      uint64          // as in model.Posterior
	past       []lineage       // oldest first
	gone       map[string]bool // declared names that a request took away: a restart must not bring them back
	candidates []candidate     // labels that are not classes yet, the one seen last at the end
}

// lineage says what became of the classes of an earlier epoch.
type lineage struct {
	epoch uint64
	now   []int // index today, −1 if the class is gone
}

// candidate is a label that is not a class yet.
type candidate struct {
	name    string
	samples []Event // that were given it
}

// follow composes every lineage with a change of the list of classes: class i
// becomes to[i], −1 if it goes. The epoch that ends here is remembered as well.
func (r *roster) follow(to []int) {
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
	r.past = append(r.past, lineage{r.epoch, slices.Clone(to)})
	r.epoch++
}

// today returns the index of class k of an epoch; −1 if it is gone, or the
// epoch too long ago.
func (r *roster) today(k int, epoch uint64) int {
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

// translate returns a prediction of an epoch over today's classes: what was
// given to a class that is gone is shared out among the others. Nil if nothing
// of it is left to judge.
func (r *roster) translate(probs []float64, epoch uint64) []float64 {
	if epoch == r.epoch {
		return probs
	}
	var now []float64
	var sum float64
	for k, v := range probs {
		at := r.today(k, epoch)
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

// accept returns why a label may not become a class; nil if it may.
func (l *Learner) accept(label string) error {
	switch {
	case label == "" || len(label) > MaxLabel:
		return fmt.Errorf("online: label of %d bytes: want 1 to %d: %w", len(label), MaxLabel, ErrClass)
	case len(l.names) >= l.cfg.Classes.Max:
		return fmt.Errorf("online: label %.40q with %d classes known, at most %d: %w", label, len(l.names), l.cfg.Classes.Max, ErrClass)
	}
	return nil
}

// nominate keeps a sample whose label is no class yet, and returns those that
// are taught now that the label is confirmed; none if it is not.
func (l *Learner) nominate(ev *Event) []Event {
	needed := l.cfg.Classes.Needed(len(l.names))
	if needed <= 1 {
		return []Event{*ev}
	}
	r := &l.roster
	at := slices.IndexFunc(r.candidates, func(c candidate) bool { return c.name == ev.Label })
	c := candidate{name: ev.Label}
	if at >= 0 {
		c = r.candidates[at]
		r.candidates = slices.Delete(r.candidates, at, at+1)
	}
	kept := *ev
	kept.X, kept.Probs, kept.Said = slices.Clone(ev.X), slices.Clone(ev.Probs), Said{}
	c.samples = append(c.samples, kept)
	if len(c.samples) >= needed {
		return c.samples
	}
	r.candidates = append(r.candidates, c)
	for len(r.candidates) > maxCandidates || r.waiting() > maxWaiting {
		l.counters.CandidatesDropped++
		r.candidates = slices.Delete(r.candidates, 0, 1)
	}
	return nil
}

// waiting is the number of samples whose label is no class yet.
func (r *roster) waiting() (n int) {
	for _, c := range r.candidates {
		n += len(c.samples)
	}
	return n
}

// changeClasses carries out ClassAdd, ClassRemove and ClassRename. The minibatch
// that is filling is closed first: it was taught under the classes of before.
func (l *Learner) changeClasses(ev *Event, out *Outcome) {
	l.flush(out)
	l.publishClasses()
	var err error
	switch ev.Kind {
	case ClassAdd:
		if err = l.declare(ev.Label); err == nil {
			out.ClassAdded = ev.Label
		}
	case ClassRemove:
		if err = l.removeClass(ev.Label); err == nil {
			out.Change, out.Detail = NoticeClassRemoved, ev.Label
		}
	case ClassRename:
		if err = l.renameClass(ev.Label, ev.Name); err == nil {
			out.Change, out.Detail = NoticeClassRenamed, fmt.Sprintf("%s is now %s", ev.Label, ev.Name)
		}
	}
	if err != nil {
		out.Closed, out.Refused = false, err
	}
}

// declare adds a class before its first sample. A label that was waiting to be
// confirmed is confirmed by it.
func (l *Learner) declare(name string) error {
	if k, known := l.class[name]; known && l.names[k] == name {
		return fmt.Errorf("online: class %.40q is there already: %w", name, ErrClass)
	}
	if err := l.accept(name); err != nil {
		return err
	}
	delete(l.roster.gone, name)
	k := l.addClass(name)
	l.view.Aliases = l.aliases()
	at := slices.IndexFunc(l.roster.candidates, func(c candidate) bool { return c.name == name })
	if at >= 0 {
		samples := l.roster.candidates[at].samples
		l.roster.candidates = slices.Delete(l.roster.candidates, at, at+1)
		var out Outcome
		for i := range samples {
			l.teach(&samples[i], k, &out)
		}
		l.flush(&out)
		if out.Refused != nil {
			return out.Refused
		}
	}
	l.publishClasses()
	return nil
}

// renameClass gives a class another name. The old one goes on meaning the
// class, until it is added as a class of its own: senders need not change at the
// same moment.
func (l *Learner) renameClass(from, to string) error {
	k, known := l.class[from]
	switch other, taken := l.class[to]; {
	case !known:
		return fmt.Errorf("online: there is no class %.40q: %w", from, ErrClass)
	case to == "" || len(to) > MaxLabel:
		return fmt.Errorf("online: new name of %d bytes: want 1 to %d: %w", len(to), MaxLabel, ErrClass)
	case taken && other != k && l.names[other] == to:
		return fmt.Errorf("online: %.40q is the name of another class: %w", to, ErrClass)
	}
	if len(l.class) >= 2*maxClasses {
		return fmt.Errorf("online: %d names of classes are in use, at most %d: %w", len(l.class), 2*maxClasses, ErrClass)
	}
	l.names = slices.Clone(l.names) // snapshots may share it
	l.names[k] = to
	l.class[to] = k
	l.view.Names = nil
	l.shareNames()
	return nil
}

// removeClass forgets a class: its latent function, its samples in window and
// warm-up buffer, its counts, its row and column in the chain and in the
// confusion matrix. What its samples have told the other latent functions stays
// in their absorbed sites, which cannot be taken apart, and fades with them.
func (l *Learner) removeClass(name string) error {
	k, known := l.class[name]
	if !known {
		return fmt.Errorf("online: there is no class %.40q: %w", name, ErrClass)
	}
	latent := l.latent[k]
	if latent >= 0 && len(l.view.Latent) == 1 {
		return fmt.Errorf("online: %.40q is the only class that was learnt; reset forgets it: %w", name, ErrClass)
	}
	before, _ := l.AppendBinary(nil)

	to := make([]int, len(l.names))
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
	l.roster.follow(to)
	l.view.Epoch = l.roster.epoch
	for alias, i := range l.class {
		l.class[alias] = to[i]
		if i != k {
			continue
		}
		delete(l.class, alias)
		if slices.Contains(l.cfg.Classes.Names, alias) {
			l.roster.gone[alias] = true
		}
	}
	l.names = slices.Delete(slices.Clone(l.names), k, k+1)
	l.latent = slices.Delete(l.latent, k, k+1)
	for i, class := range l.view.Latent {
		l.view.Latent[i] = max(to[class], 0) // its own is dropped below
	}
	l.view.Names = nil
	l.view.Counts = slices.Delete(l.view.Counts, k, k+1)
	l.dropFromChain(k, to)
	l.dropFromRecent(k, len(to))
	l.dropFromRegression(k)
	l.shareNames()
	l.judge.drop(k)
	for i := len(l.bufY) - 1; i >= 0; i-- {
		if l.bufY[i] == k {
			l.dropBuffered(i)
		}
	}
	for i, class := range l.bufY {
		l.bufY[i] = to[class]
	}
	if latent >= 0 {
		l.dropLatent(latent)
		l.features()
		if err := l.refreshAll(); err != nil {
			return errors.Join(fmt.Errorf("online: without class %.40q: %w", name, err), l.become(before))
		}
	}
	return nil
}

// shareNames lets predictions know the names of all classes.
func (l *Learner) shareNames() {
	l.view.Names = l.names[:len(l.names):len(l.names)]
	l.view.Aliases = l.aliases()
}

// dropFromChain takes class k out of the transition counts.
func (l *Learner) dropFromChain(k int, to []int) {
	p := &l.view.Pool
	if p.Last >= 0 {
		p.Last = to[p.Last]
	}
	if p.Moves == nil {
		return
	}
	c := len(to)
	moves := make([]float64, 0, (c-1)*(c-1))
	for i := range c {
		if i != k {
			moves = append(append(moves, p.Moves[i*c:i*c+k]...), p.Moves[i*c+k+1:(i+1)*c]...)
		}
	}
	p.Moves = moves
}

func (l *Learner) dropBuffered(i int) {
	l.bufX = slices.Delete(l.bufX, i*l.d, (i+1)*l.d)
	l.bufY, l.bufW = slices.Delete(l.bufY, i, i+1), slices.Delete(l.bufW, i, i+1)
}

// dropLatent takes latent function at, and the window points of its class, out
// of the state.
func (l *Learner) dropLatent(at int) {
	for i := len(l.winY) - 1; i >= 0; i-- {
		if l.winY[i] == at {
			l.dropPoint(i)
		}
	}
	for i, y := range l.winY {
		if y > at {
			l.winY[i]--
		}
	}
	cut := func(s []float64, n int) []float64 { return slices.Delete(s, at*n, (at+1)*n) }
	l.own()
	for h := range l.bank {
		b, g := &l.bank[h], &l.view.Bank[h]
		b.A, b.b = cut(b.A, l.m*l.m), cut(b.b, l.m)
		b.s1, b.s2 = cut(b.s1, l.capacity), cut(b.s2, l.capacity)
		g.U, g.Mean = cut(g.U, l.m*l.m), cut(g.Mean, l.m)
	}
	l.view.Latent = slices.Delete(l.view.Latent, at, at+1)
	for k := range l.latent {
		l.latent[k] = -1
	}
	for i, class := range l.view.Latent {
		l.latent[class] = i
	}
	if len(l.bases) > 1 {
		one := len(l.params.Theta) / len(l.bases)
		l.params.Theta, l.opt.m, l.opt.v = cut(l.params.Theta, one), cut(l.opt.m, one), cut(l.opt.v, one)
		l.bases = slices.Delete(l.bases, at, at+1)
		l.view.Bases = l.bases
	}
	l.Rest()
}

// dropPoint takes a point out of the window, and its sites out of the product:
// exactly, because those of the window are kept one by one.
func (l *Learner) dropPoint(i int) {
	n := len(l.winY)
	for h := range l.bank {
		for _, sites := range [][]float64{l.bank[h].s1, l.bank[h].s2} {
			for at := i; at < len(sites); at += l.capacity {
				row := sites[at : at+n-i]
				copy(row, row[1:])
				row[len(row)-1] = 0
			}
		}
	}
	if i >= n-l.filtered {
		l.filtered--
	}
	l.winX = slices.Delete(l.winX, i*l.d, (i+1)*l.d)
	l.winY, l.winW = slices.Delete(l.winY, i, i+1), slices.Delete(l.winW, i, i+1)
}

// become puts an encoded state, which fits the configuration, in the place of
// this one.
func (l *Learner) become(data []byte) error {
	fresh, err := Restore(l.cfg, data)
	if err == nil {
		fresh.alive = l.alive
		*l = *fresh
	}
	return err
}

// replace carries out Reset and Replace. What was predicted under the classes of
// before is still understood, as far as they are there afterwards.
func (l *Learner) replace(ev *Event, out *Outcome) {
	var fresh *Learner
	var err error
	if ev.Kind == Reset {
		fresh, err = NewLearner(l.cfg)
	} else {
		fresh, err = Restore(l.cfg, ev.State)
	}
	if err != nil {
		out.Refused = err
		return
	}
	to := make([]int, len(l.names))
	for i, name := range l.names {
		to[i] = -1
		if k, known := fresh.class[name]; known {
			to[i] = k
		}
	}
	r := l.roster
	r.follow(to)
	fresh.roster.epoch, fresh.roster.past = r.epoch, r.past
	fresh.view.Epoch = r.epoch
	// Scores are by class: they fit a model whose classes are the first of these.
	if ev.Name == OnlyModel && slices.Equal(fresh.names, l.names[:min(len(fresh.names), len(l.names))]) {
		fresh.judge, fresh.conformal, fresh.watch = l.judge, l.conformal, l.watch
	}
	fresh.alive = l.alive
	*l = *fresh
	if out.Change = NoticeReset; ev.Kind == Replace {
		out.Change, out.Detail = NoticeRolledBack, fmt.Sprintf("to %d samples", l.view.N)
	}
}

// correct teaches that a sample has another label than it was taught. Where its
// site is still kept by itself, in the window or the warm-up buffer, it is taken
// out before the new label is taught, as if the wrong one had never been; older
// ones are part of a product that cannot be taken apart, and the new label is
// taught beside them. Horizons and pool are not weighed again, the order of the
// labels stays as it was told.
func (l *Learner) correct(ev *Event, out *Outcome) {
	if err := l.view.CheckInput(ev.X); err != nil {
		out.Refused = err
		return
	}
	is, known := l.class[ev.Label]
	if !known {
		if err := l.refusal(ev.Label); err != nil {
			out.Refused = err
			return
		}
	}
	l.flush(out)
	exact := l.withdraw(ev)
	again := *ev
	again.Kind = Observe
	samples := []Event{again}
	if !known {
		if samples = l.nominate(&again); len(samples) > 0 {
			is, out.ClassAdded = l.addClass(ev.Label), ev.Label
		}
	}
	for i := range samples {
		l.hold(samples[i].X, is, l.weightOf(&samples[i], is))
		for range l.cfg.Horizons {
			l.pendLL = append(l.pendLL, 0)
		}
	}
	if len(samples) > 0 {
		l.closeMinibatch(out, false)
	}
	if was, ok := l.class[ev.Name]; ok && len(samples) > 0 && ev.Probs != nil {
		if probs := l.roster.translate(ev.Probs, ev.Epoch); probs != nil {
			l.judge.correct(probs, was, is)
		}
	}
	if out.Change, out.Detail = NoticeCorrected, fmt.Sprintf("%s, not %s", ev.Label, ev.Name); exact {
		l.counters.CorrectionsExact++
	} else {
		l.counters.CorrectionsAdded++
		out.Detail += "; the wrong one is part of what was learnt long ago and fades with it"
	}
}

// withdraw takes a sample out of where it is kept by itself; false if it is not.
func (l *Learner) withdraw(ev *Event) (exact bool) {
	was, known := l.class[ev.Name]
	if !known {
		for i := range l.roster.candidates {
			c := &l.roster.candidates[i]
			at := slices.IndexFunc(c.samples, func(held Event) bool { return sameSample(held.X, ev.X) })
			if c.name == ev.Name && at >= 0 {
				c.samples = slices.Delete(c.samples, at, at+1)
				return true
			}
		}
		return false
	}
	if was < len(l.view.Counts) && l.view.Counts[was] > 0 {
		l.view.Counts[was]--
	}
	x := make([]float64, l.d)
	for j, v := range ev.X {
		x[j] = bounded(v)
	}
	for i, k := range l.bufY {
		if k == was && slices.Equal(l.bufX[i*l.d:(i+1)*l.d], x) {
			l.dropBuffered(i)
			exact = true
			break
		}
	}
	if !l.view.Built() || l.latent[was] < 0 {
		return exact
	}
	l.scale.To(x, x)
	for i := len(l.winY) - 1; i >= 0; i-- {
		if l.winY[i] != l.latent[was] || !slices.Equal(l.winX[i*l.d:(i+1)*l.d], x) {
			continue
		}
		before, _ := l.AppendBinary(nil)
		l.dropPoint(i)
		l.features()
		if l.refreshAll() != nil { // a product with less in it that does not factor: keep it whole
			return l.become(before) != nil
		}
		return true
	}
	return exact
}

// sameSample reports whether two samples have the same raw features.
func sameSample(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return bounded(a) == bounded(b) })
}

func (l *Learner) encodeRoster(e *encoder) {
	r := &l.roster
	aliases := l.aliases()
	if r.epoch == 0 && len(r.past)+len(r.gone)+len(r.candidates)+len(aliases) == 0 {
		return
	}
	e.uint(r.epoch)
	e.int(len(r.past))
	for _, p := range r.past {
		e.uint(p.epoch)
		e.int(len(p.now))
		for _, k := range p.now {
			e.int(k + 1)
		}
	}
	e.int(len(r.gone))
	for _, name := range slices.Sorted(maps.Keys(r.gone)) {
		e.string(name)
	}
	e.int(len(aliases))
	for _, name := range aliases {
		e.string(name)
		e.int(l.class[name])
	}
	e.int(len(r.candidates))
	for _, c := range r.candidates {
		e.string(c.name)
		e.int(len(c.samples))
		for i := range c.samples {
			s := &c.samples[i]
			for _, v := range s.X {
				e.float(bounded(v))
			}
			e.bool(s.Probs != nil)
			e.int(len(s.Probs))
			e.floats(s.Probs)
			e.float(s.Weight)
			e.int(s.Ahead)
			e.int(s.Last)
			e.uint(s.Epoch)
		}
	}
}

// aliases are the names that classes had before, in order.
func (l *Learner) aliases() (names []string) {
	for name, k := range l.class {
		if l.names[k] != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (l *Learner) decodeRoster(d *decoder) {
	r := &l.roster
	r.epoch = d.uint()
	l.view.Epoch = r.epoch
	r.past = make([]lineage, d.int(maxEpochs, "number of epochs"))
	for i := range r.past {
		p := &r.past[i]
		p.epoch = d.uint()
		p.now = make([]int, d.int(maxClasses, "number of classes"))
		for k := range p.now {
			p.now[k] = d.int(len(l.names), "class") - 1
		}
	}
	for range d.int(math.MaxInt32, "number of names") {
		if d.err != nil {
			return
		}
		r.gone[d.string()] = true
	}
	for range d.int(2*maxClasses, "number of names") {
		name := d.string()
		k := d.int(len(l.names)-1, "class")
		if _, twice := l.class[name]; twice || d.err != nil {
			d.fail("a name occurs twice")
			return
		}
		l.class[name] = k
	}
	l.view.Aliases = l.aliases()
	r.candidates = make([]candidate, d.int(maxCandidates, "number of candidates"))
	for i := range r.candidates {
		c := &r.candidates[i]
		c.name = d.string()
		c.samples = make([]Event, d.int(maxConfirm, "number of samples"))
		for j := range c.samples {
			s := &c.samples[j]
			s.Kind, s.Label = Observe, c.name
			s.X = d.floats(l.d, "sample")
			for i, v := range s.X {
				if v == model.Missing {
					s.X[i] = math.NaN()
				}
			}
			late := d.bool()
			if s.Probs = d.floats(d.int(maxClasses, "number of classes"), "prediction"); !late {
				s.Probs = nil
			}
			s.Weight = d.float()
			s.Ahead, s.Last, s.Epoch = d.int(math.MaxInt32, "distance"), d.int(maxClasses, "class"), d.uint()
		}
	}
}

func (c *Counters) corrections() []*uint64 {
	return []*uint64{&c.CorrectionsExact, &c.CorrectionsAdded, &c.CandidatesDropped}
}

func (l *Learner) encodeCorrections(e *encoder) {
	if l.counters.CorrectionsExact+l.counters.CorrectionsAdded+l.counters.CandidatesDropped == 0 {
		return
	}
	for _, v := range l.counters.corrections() {
		e.uint(*v)
	}
}

func (l *Learner) decodeCorrections(d *decoder) {
	for _, v := range l.counters.corrections() {
		*v = d.uint()
	}
}

package online

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"edge/model"
	"edge/online/conformal"
	"edge/online/drift"
	"edge/online/forest"
	"edge/online/mixture"
	"edge/online/score"
	"edge/online/sep"
	"edge/online/wire"
)

// Errors that a caller may branch on.
var (
	// ErrShape: a state was made under a configuration of another shape.
	ErrShape = errors.New("state has another shape than the configuration")
	// ErrState: bytes are not a learner's state, or are damaged.
	ErrState = wire.ErrState
	// ErrNewer: a state that only a newer program can read. It is an ErrState as well.
	ErrNewer = wire.ErrNewer
	// ErrConfig: a setting is outside its range.
	ErrConfig = model.ErrConfig
	// ErrClass: a label is not one of the declared classes, or one too many.
	ErrClass = errors.New("label is not accepted")
	// ErrWeight: a sample's weight is not a number from 0 to MaxWeight.
	ErrWeight = errors.New("weight is out of range")
	// ErrProbs: a published probability is negative or not finite.
	ErrProbs = errors.New("published probability is out of range")
	// ErrKind: an event has an unknown kind.
	ErrKind = errors.New("kind of event is not known")
)

// Counters count the work of a learner since it began.
type Counters struct {
	Steps           uint64 `json:"steps"`
	StepsRefused    uint64 `json:"steps_refused"`
	LabelsRefused   uint64 `json:"labels_refused"`
	CholeskyRetries uint64 `json:"cholesky_retries"`

	CorrectionsExact  uint64 `json:"corrections_exact"`  // the wrong label was removed from the model
	CorrectionsAdded  uint64 `json:"corrections_added"`  // the right label was learnt in addition to the wrong one
	CandidatesDropped uint64 `json:"candidates_dropped"` // labels that were dropped before they were confirmed

	Calibrations uint64 `json:"calibrations"` // times that features were calibrated
}

// Learner holds a model's whole state and learns. It is single-threaded.
//
// Its parts own their state and their encoding: the bank of posteriors (sep), the
// mixture of their answers (mixture), the class registry, the warm-up buffer, the
// minibatch that is filling, the scores, the threshold of the prediction sets and
// the drift monitor. They share the view, the posterior that predicts.
type Learner struct {
	cfg  Config
	view *model.Posterior

	classes    registry
	warmup     warmup
	batch      minibatch
	bank       *sep.Bank
	mix        *mixture.Mixture
	forest     *forest.Learner // nil: there is none
	beside     *beside
	judge      score.Judge
	sets       conformal.Threshold
	drift      drift.Monitor
	fleet      joined
	calibrator calibrator
	common     common

	counters Counters // without those of the bank
	host

	ws       model.Workspace
	probs    []float64
	expected expected
}

// host holds the functions of the loop that runs a learner. The zero value: nothing.
type host struct {
	progress func()    // called between the minibatches of a build, and while the learner waits for a workspace; may be nil
	pool     *sep.Pool // lends the memory of a step; nil: the learner has its own

	unread func(*model.Memory) bool // see sep.Bank.Reuse; may be nil
}

// attach gives l to a host.
func (l *Learner) attach(to host) {
	l.host = to
	l.bank.UsePool(to.pool, to.progress)
	l.bank.Reuse(to.unread)
}

// Reuse lets l use the memory of an earlier snapshot again once unread reports that no reader
// has it any more. nil: l leaves it alone. A Loop calls it by its Readers.
func (l *Learner) Reuse(unread func(*model.Memory) bool) {
	l.unread = unread
	l.bank.Reuse(unread)
}

// replaceBy replaces l by another learner, which has nothing of a host.
func (l *Learner) replaceBy(fresh *Learner) {
	to := l.host
	l.bank.GiveBack()
	*l = *fresh
	l.attach(to)
}

// NewLearner returns a learner that has learnt nothing. It validates and copies cfg; the error is
// ErrConfig.
func NewLearner(cfg Config) (*Learner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("online: %w", err)
	}
	cfg.Horizons = slices.Clone(cfg.Horizons)
	cfg.Classes.Names = slices.Clone(cfg.Classes.Names)
	cfg.Features = slices.Clone(cfg.Features)
	l := &Learner{cfg: cfg, view: &model.Posterior{}, classes: newRegistry(), warmup: warmup{d: len(cfg.Features)}, beside: newBeside()}
	l.bank = sep.New(cfg.bank(), l.view)
	l.mix = mixture.New(cfg.mixture(), l.view)
	l.startForest()
	l.sets, l.drift = conformal.NewThreshold(cfg.Conformal), drift.New(cfg.Drift)
	for _, name := range cfg.Classes.Names {
		l.classes.add(name)
	}
	l.publishClasses()
	return l, nil
}

// Config returns the configuration. Read only.
func (l *Learner) Config() Config { return l.cfg }

// Counters returns the counters since the learner began.
func (l *Learner) Counters() Counters {
	c := l.counters
	c.Steps, c.CholeskyRetries = l.bank.Counts.Steps, l.bank.Counts.CholeskyRetries
	return c
}

// Pending is the number of samples in the minibatch that is filling.
func (l *Learner) Pending() int { return l.batch.len() }

// publishClasses adds the classes that are new to the view, so that predictions
// have a probability for them.
func (l *Learner) publishClasses() {
	l.expected.drop()
	l.settle() // under the classes before
	l.mix.CountMoves()
	old, names := len(l.view.Names), l.classes.names
	l.view.Names = names[:len(names):len(names)]
	for len(l.view.Counts) < len(names) {
		l.view.Counts = append(l.view.Counts, 0)
	}
	l.mix.Grow(old)
	l.forest.Grow()
}

// ensureLatent gives class k a latent function at its prior, unless it has one.
// Declared classes get theirs with the first model; a class that appears later, or of
// which a fit had no sample, when its first sample is learnt.
func (l *Learner) ensureLatent(k int) {
	if l.classes.latent[k] < 0 {
		l.classes.latent[k] = l.bank.Grow(k)
		l.adopt(k, l.classes.latent[k])
	}
}

// Outcome is the result of an event.
type Outcome struct {
	Closed     bool     // the minibatch was closed, by count or by a Boundary
	Stepped    bool     // and learnt: Posterior is new
	Built      bool     // the model was (re)built from the warm-up buffer
	ClassAdded string   // a new class, or the first own label of one that a merge has brought
	Imported   []string // new classes that a merge brought
	Dropped    []string // classes that a merge had brought, and that left with the members or made room
	Calibrated string   // features were calibrated: which, and how
	Change     string   // for an event that is not a sample: the kind of its Notice; "" for none
	Detail     string   // and its detail
	Since      uint64   // for NoticeDrift, the labels since the change, by the detector's estimate
	Refused    error    // the step, or the event, was refused; the state is as before
}

// Add learns from one event. A labelled sample is judged first, by the
// prediction under the state before its minibatch (or by ev.Probs, if its label
// came late), then waits until its minibatch is full. Nothing of ev is kept.
//
// A sample whose label came late is judged by ev.Probs, and horizons, members and
// experts by ev.Parts. The label extends the order of the labels at once. A new label
// becomes a class when classes.confirm samples carry it; they are learnt
// then.
//
// Refused is ErrDimension, ErrNotFinite, ErrWeight, ErrProbs, ErrClass, ErrKind, ErrShape or
// ErrState for an event that cannot be learnt, ErrFactor or ErrNotFinite for a step that was
// rolled back.
func (l *Learner) Add(ev *Event) (out Outcome) {
	if ev.Kind != Observe {
		l.settle()
		l.expected.drop()
	}
	switch ev.Kind {
	case Observe:
		l.observe(ev, &out)
	case Boundary:
		l.flush(&out)
	case ClassAdd, ClassRemove, ClassRename:
		l.changeClasses(ev, &out)
	case Correct:
		l.correct(ev, &out)
	case Reset, Replace:
		l.replace(ev, &out)
	case Merge:
		l.mergeEvent(ev, &out)
	default:
		out.Refused = fmt.Errorf("online: event of kind %d: %w", ev.Kind, ErrKind)
	}
	if l.view.Fleet == nil { // no member is left that knows them
		out.Dropped = append(out.Dropped, l.dropImported(nil)...)
	}
	l.bank.GiveBack()
	return out
}

// observe handles a labelled sample.
func (l *Learner) observe(ev *Event, out *Outcome) {
	if out.Refused = l.checkSample(ev); out.Refused != nil {
		return
	}
	if k, known := l.classes.index[ev.Label]; known {
		for _, held := range l.classes.release(ev.Label) { // if the class came by a merge or another name meanwhile
			l.example(&held, k, out)
		}
		l.example(ev, k, out)
		return
	}
	if err := l.checkNewLabel(ev.Label); err != nil {
		out.Refused = err
		return
	}
	if samples := l.confirm(ev); len(samples) > 0 {
		l.displace(out)
		k := l.classes.add(ev.Label)
		out.ClassAdded = ev.Label
		for i := range samples {
			l.example(&samples[i], k, out)
		}
	}
}

// checkSample returns an error if the features, the weight or the published probabilities of
// a sample are not sound.
func (l *Learner) checkSample(ev *Event) error {
	if !(ev.Weight >= 0 && ev.Weight <= MaxWeight) {
		return fmt.Errorf("online: sample of weight %g: want 0 to %d: %w", ev.Weight, MaxWeight, ErrWeight)
	}
	for k, p := range ev.Probs {
		if !(p >= 0 && p <= math.MaxFloat64) {
			return fmt.Errorf("online: published probability %g of class %d: %w", p, k, ErrProbs)
		}
	}
	return l.view.CheckInput(ev.X)
}

// example judges a sample of class k, adds it to the minibatch and extends the order
// of the labels by it.
func (l *Learner) example(ev *Event, k int, out *Outcome) {
	l.noteOwnLabel(k, out)
	novelty, weighs, after := l.answer(ev, k)
	if ev.Probs == nil {
		l.assess(ev, l.probs, novelty, nil, k, out)
	} else if probs := l.classes.translate(ev.Probs, ev.Epoch); probs != nil {
		l.assess(ev, probs, novelty, &ev.Meta, k, out)
	}
	weight := l.weightOf(ev, k)
	l.batch.add(ev.X, k, weight, l.lateness(ev))
	weighs = weighs && l.classes.latent[k] >= 0 // a class without a latent function is no evidence about the horizons
	l.judgeHorizons(k, weight, weighs, after)
	if weighs {
		l.observeAnswer(k, weight, after)
	}
	if ev.Probs == nil && weighs {
		l.observeForests(k, weight, after)
	}
	l.observeMembers(ev, k, weight, after)
	if k >= len(l.view.Names) {
		l.publishClasses()
		l.followClasses()
	}
	if !ev.Known {
		l.mix.NextLabel(k)
	}
	if l.batch.len() >= l.cfg.Batch.MaxSize {
		l.closeMinibatch(out)
	}
}

// judgeHorizons adds the evidence of the horizons, the own ones and those of the fleet,
// for a sample of class k to the minibatch, whose answer is in ws; none if weighs is false.
func (l *Learner) judgeHorizons(k int, weight float64, weighs bool, ws *model.Workspace) {
	b, own := &l.batch, len(l.cfg.Horizons)
	for h := range own + len(l.fleet.own) {
		var ll float64
		if weighs {
			ll = weight * l.mix.HorizonEvidence(h, k, ws)
		}
		if h < own {
			b.ll = append(b.ll, ll)
		} else {
			b.joined = append(b.joined, ll)
		}
	}
}

// answer leaves the prediction of a sample of class k in a workspace, which it returns: the
// present one, of the label after the latest, without the order for a label that was known
// before its sample, or for a label that came late the one that was published. It returns
// the novelty, and whether the answers of horizons and experts can be judged: not if the
// published ones are not known, or had other classes.
func (l *Learner) answer(ev *Event, k int) (novelty float64, weighs bool, after *model.Workspace) {
	if ev.Probs == nil {
		if i, ok := l.expected.take(ev, k); ok && i < l.ws.Prepared() {
			probs, novelty, after := l.ws.Reply(i)
			l.probs = append(l.probs[:0], probs...)
			return novelty, true, after
		}
		ahead := 1
		if ev.Known {
			ahead = 0
		}
		l.probs, novelty, _ = l.view.PredictNextTo(l.probs, ev.X, ahead, &l.ws)
		return novelty, l.view.Built(), &l.ws
	}
	l.expected.drop() // its label changes the order
	if ev.Epoch == l.classes.epoch && l.view.Recall(ev.Parts, &l.ws) {
		return l.ws.Novelty(), true, &l.ws
	}
	_, novelty, _ = l.view.PredictTo(nil, ev.X, &l.ws)
	return novelty, false, &l.ws
}

// flush closes the minibatch that is filling, unless it is empty.
func (l *Learner) flush(out *Outcome) {
	if l.batch.len() > 0 {
		l.closeMinibatch(out)
	}
}

// closeMinibatch learns the samples that have been judged.
func (l *Learner) closeMinibatch(out *Outcome) {
	l.expected.drop()
	b := &l.batch
	n := b.len()
	out.Closed = true
	l.calibrate()
	l.warmup.add(b)
	l.forest.Among(l.memberForests()) // a step may add classes to the view meanwhile
	beside := l.expertsBeside()
	if beside {
		l.beside.start(l)
		defer l.beside.end() // also after a panic here
	} else {
		l.settle()
	}
	err := l.learnMinibatch(out)
	if beside { // even if the step is refused: the samples are sound
		l.beside.end()
	}
	if err != nil {
		l.counters.StepsRefused++
		out.Refused = err
	} else {
		out.Stepped = true
		if l.drift.TakeReseed() {
			out.Refused = l.reseed()
		}
	}
	l.publishClasses()
	l.mix.Learn(b.evidence())
	l.sets.Learn()
	l.learnExperts(beside, out.Built, err)
	for _, k := range b.y {
		l.view.Counts[k]++
	}
	l.view.N += uint64(n)
	b.clear()
	if !l.warmup.done && l.warmup.len() >= l.cfg.warmup() && l.view.Built() {
		l.endWarmup()
	}
	l.boundKept()
	l.dropContradictedForests()
	l.followClasses()
	l.recalibrate(out)
}

// learnMinibatch builds the model if that is due, and otherwise takes the
// minibatch through a step. Before the first build it estimates the feature scaling,
// whose mean stands for missing features.
func (l *Learner) learnMinibatch(out *Outcome) error {
	switch {
	case l.buildDue():
		out.Built = true
		err := l.build(l.commonStart())
		if !l.view.Built() {
			l.warmup.keepLatest(l.cfg.warmup())
		}
		return err
	case l.view.Built():
		return l.learn(l.batch.x, l.batch.y, l.batch.w, l.warmup.done)
	}
	l.bank.EstimateScale(l.warmup.x, l.warmup.len())
	return nil
}

// learn takes one minibatch of raw samples, their classes and weights through a
// step, or leaves the state as it was. Live samples were predicted before, by the
// model that now learns them: they weigh the horizons, and the scaling follows them
// if it tracks.
func (l *Learner) learn(x []float64, classes []int, weights []float64, live bool) error {
	for _, k := range classes {
		l.ensureLatent(k)
	}
	l.bank.Save()
	l.mix.Save()
	if err := l.step(x, classes, weights, live); err != nil {
		return l.undo(err)
	}
	return nil
}

// step takes the step of learn; an error leaves the state damaged.
func (l *Learner) step(x []float64, classes []int, weights []float64, live bool) (err error) {
	defer Recover(&err)
	if live {
		var evidence [2 * maxHorizons]float64
		own := len(l.cfg.Horizons)
		sumRows(evidence[:own], l.batch.ll)
		sumRows(evidence[own:own+len(l.fleet.own)], l.batch.joined)
		l.mix.WeighHorizons(evidence[:], l.batch.evidence())
	}
	l.bank.SetRateFactor(l.common.rate(l.view.N))
	return l.bank.Learn(sep.Minibatch{
		X: x, Classes: classes, Weights: weights, Latents: l.classes.latent, Live: live, Reach: l.drift.Horizon(),
	})
}

// undo restores the state of before a step that failed with err.
func (l *Learner) undo(err error) error {
	l.bank.Await() // the parts that learn beside the step read the scaling
	l.mix.Undo()
	return l.bank.Undo(err)
}

// rest releases the memory that only a step needs, half of the learner's; the
// next step allocates it again.
func (l *Learner) rest() {
	l.settle()
	l.bank.Rest()
	l.forest.Rest()
	l.expected, l.ws = expected{}, model.Workspace{}
}

// Posterior returns an immutable snapshot of the posterior. The next step works
// on copies of its large parts.
func (l *Learner) Posterior() *model.Posterior {
	l.bank.Share()
	if g := l.fleet.guest; g != nil {
		g.bank.Share()
	}
	l.forest.Share()
	l.mix.CountMoves()
	return l.view.Snapshot()
}

// Scores returns the prequential scores up to now. It is not inlined: it has nine callers.
//
//go:noinline
func (l *Learner) Scores() score.Scores { return l.judge.Scores(slices.Clone(l.classes.names)) }

// Coverage returns the results of the prediction sets up to now; they are in Scores
// too, which costs more.
func (l *Learner) Coverage() score.Coverage { return l.judge.Coverage() }

// Digest is the SHA-256 of AppendBinary's bytes, in hexadecimal.
func (l *Learner) Digest() string {
	buf, _ := l.AppendBinary(nil)
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:])
}

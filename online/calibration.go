package online

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"edge/model"
	"edge/online/sep"
	"edge/online/wire"
)

const (
	relearnStep = 16  // held samples that are learnt again in one step, at most
	lostShare   = 0.9 // of a feature's values that are out of range: it is lost
	firstTrial  = 16  // samples of the first trial of a calibration; each other one has twice as many
	lastTrial   = 256 // of the last one
	trialMargin = 20  // nats by which a calibration has to predict the samples better
	plainLead   = 5   // nats by which another one has to be better than none
	aliveShare  = 0.5 // of the log loss of class frequencies: no feature is missed where the process has less
)

// calibrator notices features that a sensor gives in another range than that in which the model
// has learnt them, permanently: after the sensor was replaced or adjusted. Their values are far
// from the mean, where the process knows nothing. The calibrator then looks for a gain and an
// offset of each such feature under which the process, as it is, predicts the latest labels.
// Values without information, such as those of a broken sensor, have none.
type calibrator struct {
	held  warmup  // samples since a feature is lost, as the sensor gave them; fewer than lastTrial between two minibatches
	ahead float64 // their evidence under the process, as they were judged, above that of class frequencies, in nats
	due   int     // samples of held at the next trial, at least
	moved []int   // features that these samples have calibrated; more samples refine that
}

// restart forgets the samples. The next trial needs due of them.
func (c *calibrator) restart(due int) {
	*c = calibrator{held: warmup{d: c.held.d}, due: due}
}

// calibrates reports whether features are calibrated: a scaling that follows the stream
// needs none, and without a process no prediction suffers.
func (l *Learner) calibrates() bool {
	return l.warmup.done && l.cfg.Track == 0 && l.view.Built()
}

// calibrate holds the samples of the minibatch that is closed, if a feature is lost, and
// brings them to the model's units.
func (l *Learner) calibrate() {
	if l.calibrates() {
		l.hold()
	}
	if l.view.Calibration != nil {
		l.view.Calibration.To(l.batch.x, l.batch.x)
	}
}

// hold adds the minibatch to the samples that are held, while a feature is lost and the
// process predicts little better than class frequencies.
func (l *Learner) hold() {
	c, b := &l.calibrator, &l.batch
	lost := len(l.lost(b.x, b.len())) > 0
	switch {
	case !lost && c.held.len() == 0:
		c.due = 0
		return
	case lost && len(c.moved) > 0: // others, or the same again
		c.restart(0)
	}
	c.held.d = len(l.cfg.Features)
	c.held.add(b)
	c.ahead += l.aheadOfFrequencies()
	if len(c.moved) == 0 && c.ahead > -aliveShare*l.frequencyEvidence() {
		c.restart(0)
	}
}

// lost returns the features of which nine of ten values in n samples, as the sensor gave
// them, are out of range: as far from the mean as the scaling's clip, or if the feature is
// calibrated, more probable without that. Normal densities stand for the feature's own. One
// that was constant in the warm-up has taught nothing.
func (l *Learner) lost(x []float64, n int) (which []int) {
	s, d, c := &l.view.Scale, len(l.cfg.Features), l.view.Calibration
	for j := range d {
		if s.Sd[j] == 1 {
			continue
		}
		far, known := 0, 0
		for i := range n {
			v := x[i*d+j]
			if v-v != 0 {
				continue
			}
			known++
			z, raw := (c.At(j, v)-s.Mu[j])/s.Sd[j], (v-s.Mu[j])/s.Sd[j]
			if math.Abs(z) >= s.Limit() || c.Moves(j) && raw*raw/2 < z*z/2-math.Log(c.Gain[j]) {
				far++
			}
		}
		if known > 0 && float64(far) >= lostShare*float64(known) {
			which = append(which, j)
		}
	}
	return which
}

// aheadOfFrequencies is the evidence of the minibatch under the horizons, as it was judged,
// above that under the class frequencies, in nats.
func (l *Learner) aheadOfFrequencies() (sum float64) {
	b, weights := &l.batch, l.mix.OwnWeights()
	frequencies := l.view.FrequenciesTo(nil)
	for i, k := range b.y {
		ll := b.ll[i*len(weights) : (i+1)*len(weights)]
		if k >= len(frequencies) || !slices.ContainsFunc(ll, func(v float64) bool { return v != 0 }) { // it was not judged
			continue
		}
		var p float64
		for h, weight := range weights {
			p += weight * math.Exp(ll[h]/b.w[i])
		}
		sum += b.w[i] * math.Log(max(p, minEvidence)/frequencies[k])
	}
	return sum
}

// recalibrate tries calibrations of the lost features with the samples that are held, if a
// trial is due, and takes the best one, if it predicts them better by trialMargin than both
// the process as it is and class frequencies. Later trials, of more samples, refine it.
func (l *Learner) recalibrate(out *Outcome) {
	c := &l.calibrator
	n, refine := c.held.len(), len(c.moved) > 0
	if n < max(c.due, firstTrial) || !l.calibrates() {
		return
	}
	which, bar := c.moved, l.evidenceUnder(l.view.Calibration)
	if !refine {
		if which = l.lost(c.held.x, n); len(which) == 0 {
			c.restart(0)
			return
		}
		bar = max(bar, c.entropy(), l.frequencyEvidence()) + trialMargin
	}
	best, found := (*model.Calibration)(nil), false
	for _, to := range l.candidates(which) {
		evidence := l.evidenceUnder(to)
		if to == nil {
			evidence += plainLead
		}
		if evidence > bar {
			best, bar, found = to, evidence, true
		}
	}
	if c.due = min(2*n, lastTrial); found {
		if err := l.setCalibration(best, refine); err != nil {
			out.Refused = err
			return
		}
		if c.moved = which; !refine {
			l.counters.Calibrations++
			out.Calibrated = l.describeCalibration(which)
		}
	}
	switch {
	case found && best == nil:
		c.restart(0)
	case n < lastTrial:
	case len(c.moved) > 0:
		c.restart(0)
	default:
		c.restart(lastTrial)
	}
}

// describeCalibration describes for people the calibration of features.
func (l *Learner) describeCalibration(which []int) string {
	var all []string
	for _, j := range which {
		if c := l.view.Calibration; c.Moves(j) {
			all = append(all, fmt.Sprintf("%s: gain %.4g, offset %.4g", l.cfg.Features[j], c.Gain[j], c.Offset[j]))
		} else {
			all = append(all, l.cfg.Features[j]+": as it was learnt")
		}
	}
	return strings.Join(all, "; ")
}

// setCalibration replaces the calibration. The held samples, which were learnt out of range, are then
// learnt again, unless they were in range before. An error leaves the learner as it was.
func (l *Learner) setCalibration(to *model.Calibration, inRange bool) error {
	if inRange {
		l.view.Calibration = to
		return nil
	}
	before, _ := l.AppendBinary(nil)
	l.view.Calibration = to
	if err := guarded(l.relearnHeld); err != nil {
		if again := l.become(before); again != nil {
			return again
		}
		l.calibrator.restart(lastTrial)
		return fmt.Errorf("online: calibrate features: %w", err)
	}
	return nil
}

// relearnHeld learns the held samples again under the present calibration.
func (l *Learner) relearnHeld() error {
	h := &l.calibrator.held
	x, n, size := slices.Clone(h.x), h.len(), min(relearnStep, l.cfg.Batch.MaxSize)
	if l.view.Calibration != nil {
		l.view.Calibration.To(x, x)
	}
	if err := l.bank.DropLatest(n); err != nil {
		return err
	}
	for i := 0; i < n; i += size {
		end := min(i+size, n)
		if err := l.learn(x[i*h.d:end*h.d], h.y[i:end], h.w[i:end], false); err != nil {
			return err
		}
	}
	l.mix.LearnRegression(x, h.y, h.w)
	l.forest.ForgetLatest(n)
	l.forest.Learn(x, h.y, h.w)
	return nil
}

// candidates returns calibrations of features: by mean and deviation of the held samples, by
// their mean alone, and none.
func (l *Learner) candidates(which []int) (all []*model.Calibration) {
	h, s := &l.calibrator.held, &l.view.Scale
	gained, shifted, none := l.view.Calibration.Clone(h.d), l.view.Calibration.Clone(h.d), l.view.Calibration.Clone(h.d)
	col := make([]float64, 0, h.len())
	for _, j := range which {
		none.Gain[j], none.Offset[j] = 1, 0
		col = col[:0]
		for i := range h.len() {
			if v := h.x[i*h.d+j]; v-v == 0 {
				col = append(col, v)
			}
		}
		if len(col) == 0 {
			continue
		}
		now := model.Scale{Mu: []float64{0}, Sd: []float64{1}, Clip: s.Clip}
		sep.RobustScale(&now, col, len(col), 1)
		if slices.Min(col) < slices.Max(col) {
			gained.Gain[j] = s.Sd[j] / now.Sd[0]
		}
		gained.Offset[j] = s.Mu[j] - float64(gained.Gain[j]*now.Mu[0])
		shifted.Offset[j] = s.Mu[j] - float64(shifted.Gain[j]*now.Mu[0])
	}
	for _, to := range []*model.Calibration{gained, shifted, none} {
		if to = to.OrNone(); to.Valid() && !to.Equal(l.view.Calibration) {
			all = append(all, to)
		}
	}
	return all
}

// frequencyEvidence is the evidence of the held samples under the class frequencies, in nats.
func (l *Learner) frequencyEvidence() (sum float64) {
	h, frequencies := &l.calibrator.held, l.view.FrequenciesTo(nil)
	for i, k := range h.y {
		if k < len(frequencies) { // or it is new with the minibatch
			sum += h.w[i] * math.Log(frequencies[k])
		}
	}
	return sum
}

// entropy is the evidence of the held samples under their own class frequencies, in nats: what
// an answer that is the same for all of them reaches at most. A block of one class has 0.
func (c *calibrator) entropy() (sum float64) {
	mass, total := map[int]float64{}, 0.
	for i, k := range c.held.y {
		mass[k] += c.held.w[i]
		total += c.held.w[i]
	}
	for i, k := range c.held.y {
		sum += c.held.w[i] * math.Log(mass[k]/total)
	}
	return sum
}

// evidenceUnder is the evidence of the held samples under the horizons with a calibration, in
// nats; −Inf for one under which they cannot be predicted.
func (l *Learner) evidenceUnder(c *model.Calibration) float64 {
	h := &l.calibrator.held
	trial := *l.view
	trial.Pool, trial.Fleet, trial.Calibration = model.Pool{}, nil, c
	trial.Bank = trial.Bank[:len(l.cfg.Horizons)]
	trial.Weights = l.mix.OwnWeights()
	var ws model.Workspace
	sum, err := l.addEvidence(0, &trial, h, 0, h.len(), &ws)
	if err != nil {
		return math.Inf(-1)
	}
	return sum
}

// encodeCalibration appends the calibration and the samples that are held; nothing where
// no feature was ever lost.
func (l *Learner) encodeCalibration(e *wire.Encoder) {
	c, k := &l.calibrator, l.view.Calibration
	if k == nil && l.counters.Calibrations == 0 && c.due == 0 && c.held.len() == 0 {
		return
	}
	e.Uint(l.counters.Calibrations)
	e.Bool(k != nil)
	if k != nil {
		e.Floats(k.Gain)
		e.Floats(k.Offset)
	}
	e.Int(c.due)
	e.Float(c.ahead)
	e.Int(len(c.moved))
	e.Ints(c.moved)
	e.Int(c.held.len())
	e.Floats(c.held.x)
	e.Ints(c.held.y)
	e.Floats(c.held.w)
}

// decodeCalibration reads the values that encodeCalibration wrote.
func (l *Learner) decodeCalibration(d *wire.Decoder) {
	c, features := &l.calibrator, len(l.cfg.Features)
	l.counters.Calibrations = d.Uint()
	if d.Bool() {
		k := &model.Calibration{Gain: d.Floats(features, "gain"), Offset: d.Floats(features, "offset")}
		if d.Err() == nil && !k.Valid() {
			d.Fail("a gain is not positive, or a gain or offset is not finite")
		}
		l.view.Calibration = k
	}
	c.due, c.ahead = d.Int(lastTrial, "held samples"), d.Number("held samples")
	c.moved = d.Ints(d.Int(features, "moved features"), features, "moved feature")
	n := d.Int(lastTrial+maxBatch, "held samples") // a failed calibration returns to that many
	c.held = warmup{d: features, x: d.Floats(n*features, "held samples"), y: d.Ints(n, len(l.view.Names), "class"), w: d.Floats(n, "weights")}
	for _, v := range c.held.w {
		if !(v > 0 && v <= MaxWeight) {
			d.Fail("a weight is out of range")
		}
	}
}

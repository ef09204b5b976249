package train

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"edge/online"
	"edge/online/wire"
)

// stateMagic and stateVersion open every encoded trainer.
const (
	stateMagic   = "edgetrn\x00"
	stateVersion = 1
)

// fingerprint distinguishes sets and configurations. Its text never changes: a
// state of an earlier program must be recognised.
func (t *Trainer) fingerprint() []byte {
	c, how, h := &t.cfg, t.how, sha256.New()
	if how.Damping = t.damping; how.Sites == Merged {
		how.Sites = explicitName
	}
	batch := c.Batch
	batch.MaxWait = 250 * time.Millisecond // of the programs before: offline training waits for nothing
	fmt.Fprintf(h, "%s {Inducing:%v Kernel:%v Horizons:%v Window:%v Batch:%+v Classes:%+v Warmup:%v Sweeps:%v Damping:%v LearningRate:%v Gradient:%v LabelNoise:%+v ",
		c.Shape(), c.Inducing, c.Kernel, c.Horizons, c.Window, batch, c.Classes, c.Warmup, c.Sweeps, c.Damping, c.LearningRate, c.Gradient, c.LabelNoise)
	fmt.Fprintf(h, "Track:%v Temporal:%v ClassWeights:%+v Abstain:%+v Conformal:{Coverage:%v} Drift:%+v Clip:%v Seed:%v Passes:%v Features:%v} %+v %q %d\n",
		c.Track, c.Temporal, c.ClassWeights, c.Abstain, c.Conformal.Coverage, c.Drift, c.Clip, c.Seed, c.Passes, c.Features, how, t.names, t.n)
	var word [8]byte
	for i := range t.n {
		binary.LittleEndian.PutUint64(word[:], uint64(t.set.Class(i)))
		h.Write(word[:])
	}
	row := t.work.batch.raw
	for i := 0; i < t.n; i += max(1, t.n/1000) {
		t.set.Row(i, row)
		for _, v := range row {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(v))
			h.Write(word[:])
		}
	}
	return h.Sum(nil)
}

// AppendBinary appends the whole state, from which Restore carries on with the
// same configuration and set. The error is always nil.
func (t *Trainer) AppendBinary(dst []byte) ([]byte, error) {
	e := &wire.Encoder{Buf: append(dst, stateMagic...)}
	e.Uint(stateVersion)
	e.String(string(t.fingerprint()))
	e.Int(t.pass)
	e.Int(t.next)
	e.Float(t.sum)
	e.Int(len(t.curve))
	e.Floats(t.curve)
	for _, v := range [...]uint64{t.counts.Steps, 0, 0, t.counts.CholeskyRetries} {
		e.Uint(v)
	}
	e.Floats(t.scale.Mu)
	e.Floats(t.scale.Sd)
	for _, x := range t.parts() {
		e.Floats(x)
	}
	e.Uint(t.adam.Steps)
	return e.Buf, nil
}

// parts are the numbers of a trained state.
func (t *trained) parts() [][]float64 {
	parts := [][]float64{t.params.Theta, t.adam.M, t.adam.V, t.A, t.b, t.s1, t.s2, t.p1, t.p2}
	if t.sign != nil {
		parts = append(parts, t.sign.rate, t.sign.sign)
	}
	return parts
}

// Restore returns the trainer whose AppendBinary gave data: it carries on
// exactly. ErrShape of online if configuration or set are others, ErrState if data
// is not a trainer.
func Restore(cfg online.Config, how Config, names []string, set Samples, data []byte) (*Trainer, error) {
	t, err := allocated(cfg, how, names, set)
	if err != nil {
		return nil, err
	}
	if len(data) < len(stateMagic) || string(data[:len(stateMagic)]) != stateMagic {
		return nil, fmt.Errorf("online: training state does not begin with its mark: %w", online.ErrState)
	}
	d := wire.NewDecoder(data[len(stateMagic):], "online: training state: ", online.ErrState)
	if v := d.Uint(); d.Err() == nil && v != stateVersion {
		return nil, fmt.Errorf("online: training state of version %d, this program reads version %d: %w", v, stateVersion, online.ErrState)
	}
	if print := d.String(sha256.Size); d.Err() == nil && print != string(t.fingerprint()) {
		return nil, fmt.Errorf("online: training began with other data, configuration or options: %w", online.ErrShape)
	}
	t.pass, t.next = d.Int(how.Passes, "pass"), d.Int(t.n-1, "sample")
	t.sum = d.Float()
	t.curve = d.Floats(d.Int(how.Passes, "pass"), "log evidence")
	t.counts.Steps = d.Uint()
	d.Uint()
	d.Uint()
	t.counts.CholeskyRetries = d.Uint()
	d.Fill(t.scale.Mu, "scale")
	d.Fill(t.scale.Sd, "scale")
	for _, x := range t.parts() {
		d.Fill(x, "numbers")
	}
	t.adam.Steps = d.Uint()
	if err := d.End(); err != nil {
		return nil, err
	}
	if t.next > 0 {
		t.shuffle()
	}
	if err := t.setBases(); err != nil {
		return nil, fmt.Errorf("online: training state: %w: %w", online.ErrState, err)
	}
	return t, nil
}

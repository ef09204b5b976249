package online

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"edge/model"
	"edge/online/score"
	"edge/online/wire"
)

// oldState is an element of testdata/states_v1.json, which testdata/make_states.go
// made.
type oldState struct {
	Name     string
	Kernel   Kernel
	Temporal Temporal
	State    []byte
	Then     []struct {
		X     []float64
		Label string
	}
	Scores   score.Scores
	X, Probs [][]float64
}

func oldStates(t testing.TB) (all []oldState) {
	t.Helper()
	data, err := os.ReadFile("testdata/states_v1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *oldState) config() Config {
	cfg := DefaultConfig()
	cfg.Features, cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = []string{"f", "g"}, 4, 6, 5
	cfg.Classes.Names = []string{"a"}
	cfg.Kernel, cfg.Temporal = s.Kernel, s.Temporal
	return cfg
}

// States of version 1 are read, and carry on to the results of version 1. One of the warm-up is only read and used: the pool
// begins anew at the end of the warm-up since. The order of the labels, which counts
// otherwise since, and the sites of pairs, which more than two classes have since, do
// little to the predictions.
func TestRestoreVersion1(t *testing.T) {
	for _, old := range oldStates(t) {
		t.Run(old.Name, func(t *testing.T) {
			l, err := Restore(old.config(), old.State)
			if err != nil {
				t.Fatal(err)
			}
			tol, same := 1e-9, old.Temporal == TemporalOff && len(l.classes.names) == 2 // other processors round differently
			if !same {
				tol = 0.03
			}
			warm := l.WarmedUp()
			for _, ev := range old.Then {
				if out := l.Add(&Event{Kind: Observe, X: ev.X, Label: ev.Label}); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			checkSound(t, l)
			if warm != l.WarmedUp() {
				return
			}
			got, want := l.Scores(), old.Scores
			if got.N != want.N || !slices.Equal(got.Classes, want.Classes) || same && !slices.EqualFunc(got.Matrix, want.Matrix, slices.Equal) {
				t.Errorf("scores of %d samples, classes %v, confusion %v, want %d, %v, %v", got.N, got.Classes, got.Matrix, want.N, want.Classes, want.Matrix)
			}
			for name, v := range map[string][2]float64{
				"error": {got.Error, want.Error}, "nll": {got.NLL, want.NLL}, "brier": {got.Brier, want.Brier}, "ece": {got.ECE, want.ECE},
				"macro-f1": {got.MacroF1, want.MacroF1},
			} {
				if same && !(math.Abs(v[0]-v[1]) <= tol) {
					t.Errorf("%s %v, want %v", name, v[0], v[1])
				}
			}
			if got.Window.N != uint64(len(old.Then)) { // that of version 1 had too few numbers to carry on
				t.Errorf("the window holds %d samples, want the %d since", got.Window.N, len(old.Then))
			}
			ws := model.NewWorkspace()
			for i, x := range old.X {
				probs, _, err := l.Posterior().PredictTo(nil, x, ws)
				if err != nil {
					t.Fatal(err)
				}
				for k, p := range probs {
					if !(math.Abs(p-old.Probs[i][k]) <= tol) {
						t.Errorf("P(%s | %v) = %v, want %v", got.Classes[k], x, p, old.Probs[i][k])
					}
				}
			}
		})
	}
}

// A section that this program does not know would stand still if it were kept
// and be lost if it were skipped: it is refused, by name.
func TestRestoreRefusesSections(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	feed(l, rand.New(rand.NewPCG(1, 1)), 30)
	var core, scores wire.Encoder
	core.Buf = append(core.Buf, stateMagic...)
	core.Uint(stateVersion)
	l.encodeCore(&core)
	l.judge.Encode(&scores)
	section := func(e *wire.Encoder, name string, content []byte) {
		e.String(name)
		e.Block(content)
	}
	for name, c := range map[string]struct {
		write func(e *wire.Encoder)
		text  string // of the error; "" if the state is fine
	}{
		"none":      {func(e *wire.Encoder) { e.String("") }, ""},
		"known":     {func(e *wire.Encoder) { section(e, "scores", scores.Buf); e.String("") }, ""},
		"unknown":   {func(e *wire.Encoder) { section(e, "dreams", []byte{1}); e.String("") }, `section "dreams" is unknown`},
		"twice":     {func(e *wire.Encoder) { section(e, "scores", scores.Buf); section(e, "scores", scores.Buf) }, `section "scores" is unknown or out of order`},
		"too long":  {func(e *wire.Encoder) { section(e, "scores", append(slices.Clone(scores.Buf), 0)); e.String("") }, "section scores: 1 bytes too many"},
		"too short": {func(e *wire.Encoder) { section(e, "scores", scores.Buf[:len(scores.Buf)-1]); e.String("") }, "section scores"},
		"truncated": {func(e *wire.Encoder) { e.String("scores"); e.Int(math.MaxInt32) }, "section"},
		"no end":    {func(e *wire.Encoder) { section(e, "scores", scores.Buf) }, "truncated"},
		"after":     {func(e *wire.Encoder) { e.String(""); e.Int(1) }, "1 bytes too many"},
	} {
		e := &wire.Encoder{Buf: slices.Clone(core.Buf)}
		c.write(e)
		_, err := Restore(l.cfg, e.Buf)
		if c.text == "" && err != nil || c.text != "" && (!errors.Is(err, ErrState) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%s: error %v, want one that contains %q", name, err, c.text)
		}
		if newer := name == "unknown" || name == "twice"; errors.Is(err, ErrNewer) != newer {
			t.Errorf("%s: error %v, of a newer program: want %v", name, err, newer)
		}
	}
}

func TestStateSizeAddsUp(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	for _, n := range []int{0, 30} {
		feed(l, rand.New(rand.NewPCG(1, 1)), n)
		state, _ := l.AppendBinary(nil)
		frame, parts := len(stateMagic)+2, 0 // version, and the empty name that ends the sections
		for i, s := range l.StateSize() {
			if parts += s.Bytes; i > 0 {
				frame += len(s.Name) + 1 + len(binary.AppendUvarint(nil, uint64(s.Bytes)))
			}
		}
		if len(state) != frame+parts {
			t.Errorf("after %d samples: %d bytes, want %d and frames of %d: %+v", n, len(state), parts, frame, l.StateSize())
		}
	}
}

func FuzzRestore(f *testing.F) {
	cfg := testConfig(2, "a")
	cfg.Inducing, cfg.Window = 3, 4
	for _, n := range []int{0, 7, 30, 60} {
		l := newTestLearner(f, cfg)
		feed(l, rand.New(rand.NewPCG(1, 1)), n)
		state, _ := l.AppendBinary(nil)
		f.Add(state)
	}
	ranks := newTestLearner(f, scalingConfig())
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		ranks.Add(curved(rng, false))
	}
	state, _ := ranks.AppendBinary(nil)
	f.Add(state)
	old := oldStates(f)
	for _, s := range old {
		f.Add(s.State)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, cfg := range []Config{cfg, ranks.cfg, old[0].config()} {
			l, err := Restore(cfg, state)
			if err != nil {
				if !errors.Is(err, ErrState) && !errors.Is(err, ErrShape) {
					t.Errorf("refused with %v, which is neither ErrState nor ErrShape", err)
				}
				continue
			}
			feed(l, rand.New(rand.NewPCG(2, 2)), 12) // an accepted state can be used
			l.Posterior()
			l.Scores()
			l.Add(&Event{Kind: ClassRemove, Label: l.Posterior().Classes()[0]})
			l.Scores()
		}
	})
}

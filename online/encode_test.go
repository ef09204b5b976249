package online

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"edge/model"
)

// oldState is an element of testdata/states_v1.json; testdata/make_states.go
// says how it was made.
type oldState struct {
	Name     string
	Kernel   Kernel
	Temporal Temporal
	State    []byte
	Then     []struct {
		X     []float64
		Label string
	}
	Scores   Scores
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

// What version 1 wrote is read, and carries on to where version 1 came, if the
// label noise is learnt no faster than it was then.
func TestRestoreVersion1(t *testing.T) {
	const tol = 1e-9 // other processors round otherwise
	for _, old := range oldStates(t) {
		t.Run(old.Name, func(t *testing.T) {
			l, err := Restore(old.config(), old.State)
			if err != nil {
				t.Fatal(err)
			}
			l.noiseRate = 1
			for _, ev := range old.Then {
				if out := l.Add(&Event{Kind: Observe, X: ev.X, Label: ev.Label}); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			got, want := l.Scores(), old.Scores
			if got.N != want.N || !slices.Equal(got.Classes, want.Classes) || !slices.EqualFunc(got.Matrix, want.Matrix, slices.Equal) {
				t.Errorf("scores of %d samples, classes %v, confusion %v, want %d, %v, %v", got.N, got.Classes, got.Matrix, want.N, want.Classes, want.Matrix)
			}
			for name, v := range map[string][2]float64{
				"error": {got.Error, want.Error}, "nll": {got.NLL, want.NLL}, "brier": {got.Brier, want.Brier}, "ece": {got.ECE, want.ECE},
				"macro-f1": {got.MacroF1, want.MacroF1},
			} {
				if !(math.Abs(v[0]-v[1]) <= tol) {
					t.Errorf("%s %v, want %v", name, v[0], v[1])
				}
			}
			if got.Window.N != uint64(len(old.Then)) { // that of version 1 knew too little to carry on
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
			checkSound(t, l)
		})
	}
}

// A section that this program does not know would stand still if it were kept
// and be lost if it were skipped: it is refused, by name.
func TestRestoreRefusesSections(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	feed(l, rand.New(rand.NewPCG(1, 1)), 30)
	var core, scores encoder
	core.buf = append(core.buf, stateMagic...)
	core.uint(stateVersion)
	l.encodeCore(&core)
	l.judge.encode(&scores)
	section := func(e *encoder, name string, content []byte) {
		e.string(name)
		e.bytes(content)
	}
	for name, c := range map[string]struct {
		write func(e *encoder)
		says  string // "" if the state is fine
	}{
		"none":      {func(e *encoder) { e.string("") }, ""},
		"known":     {func(e *encoder) { section(e, "scores", scores.buf); e.string("") }, ""},
		"unknown":   {func(e *encoder) { section(e, "dreams", []byte{1}); e.string("") }, `section "dreams" is unknown`},
		"twice":     {func(e *encoder) { section(e, "scores", scores.buf); section(e, "scores", scores.buf) }, `section "scores" is unknown or out of order`},
		"too long":  {func(e *encoder) { section(e, "scores", append(slices.Clone(scores.buf), 0)); e.string("") }, "section scores: 1 bytes too many"},
		"too short": {func(e *encoder) { section(e, "scores", scores.buf[:len(scores.buf)-1]); e.string("") }, "section scores"},
		"truncated": {func(e *encoder) { e.string("scores"); e.int(math.MaxInt32) }, "section"},
		"no end":    {func(e *encoder) { section(e, "scores", scores.buf) }, "truncated"},
		"after":     {func(e *encoder) { e.string(""); e.int(1) }, "1 bytes too many"},
	} {
		e := &encoder{buf: slices.Clone(core.buf)}
		c.write(e)
		_, err := Restore(l.cfg, e.buf)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrState) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
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
				frame += len(s.Name) + 1 + len((&encoder{}).length(s.Bytes))
			}
		}
		if len(state) != frame+parts {
			t.Errorf("after %d samples: %d bytes, want %d and frames of %d: %+v", n, len(state), parts, frame, l.StateSize())
		}
	}
}

// length returns n as it is written before bytes.
func (e *encoder) length(n int) []byte {
	e.int(n)
	return e.buf
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
	old := oldStates(f)
	for _, s := range old {
		f.Add(s.State)
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		for _, cfg := range []Config{cfg, old[0].config()} {
			l, err := Restore(cfg, state)
			if err != nil {
				if !errors.Is(err, ErrState) && !errors.Is(err, ErrShape) {
					t.Errorf("refused with %v, which is neither ErrState nor ErrShape", err)
				}
				continue
			}
			feed(l, rand.New(rand.NewPCG(2, 2)), 12) // whatever was accepted can be used
			l.Posterior()
		}
	})
}

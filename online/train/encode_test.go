package train

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"edge/online"
)

// The fingerprint of a configuration and a set stays the same, so that a training
// that an earlier program began can be resumed. The digest is that of the first one.
func TestFingerprintStays(t *testing.T) {
	set := &cloud{d: 2}
	for i := range 24 {
		set.x = append(set.x, float64(i%7), float64(i%5)-2)
		set.y = append(set.y, i%3)
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing = []string{"a", "b c"}, 5
	cfg.Classes.Names = []string{"x"}
	cfg.Horizons = []online.Horizon{online.Horizon(math.Inf(1)), 2.5e6}
	how := Default()
	how.Prior, how.Damping = 0.5, 1
	tr, err := New(cfg, how, []string{"x", "y", "z"}, set)
	if err != nil {
		t.Fatal(err)
	}
	const want = "9fc6e8785a643eafe22670dfbd5a2f5fa4d01d9c61f4b77c201f6eff039d6a29"
	if got := hex.EncodeToString(tr.fingerprint()); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

// A training that is interrupted at any step and restored ends in the same bytes.
func TestTrainerResume(t *testing.T) {
	set := newCloud(50, 3, 3, 8)
	minibatch := Default()
	minibatch.Batch, minibatch.Passes = 16, 3
	sign := fullBatch(12)
	sign.Optimizer, sign.Sites = SignRule, Merged
	explicit := minibatch
	explicit.Sites = Merged
	pairs, joint := minibatch, sign
	pairs.Sites, joint.Sites = Pairs, Rep
	for name, how := range map[string]Config{
		"minibatches, Adam": minibatch, "minibatches, explicit sites": explicit, "full batch, sign rule, explicit sites": sign,
		"minibatches, pairs": pairs, "full batch, sign rule, joint sites": joint,
	} {
		for _, kernel := range []online.Kernel{online.Shared, online.PerClass} {
			t.Run(name+", "+string(kernel), func(t *testing.T) {
				cfg := trainConfig(3, 6, kernel)
				cfg.LabelNoise.Start = 0.02
				whole := newTestTrainer(t, cfg, how, 3, set)
				run(t, whole, 1000)
				want, _ := whole.AppendBinary(nil)
				for _, cut := range []int{0, 1, 5, 11} {
					part := newTestTrainer(t, cfg, how, 3, set)
					run(t, part, cut)
					saved, _ := part.AppendBinary(nil)
					again, err := Restore(cfg, how, names(3), set, saved)
					if err != nil {
						t.Fatal(err)
					}
					run(t, again, 1000)
					if got, _ := again.AppendBinary(nil); !bytes.Equal(got, want) {
						t.Errorf("restored after %d steps: another state in the end", cut)
					}
				}
			})
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	set := newCloud(40, 2, 2, 8)
	cfg, how := trainConfig(2, 4, online.Shared), Default()
	tr := newTestTrainer(t, cfg, how, 2, set)
	run(t, tr, 1)
	data, _ := tr.AppendBinary(nil)
	other := newCloud(40, 2, 2, 9)
	faster := how
	faster.Rate = 0.02
	for _, c := range []struct {
		name string
		how  Config
		set  Samples
		data []byte
		want error
	}{
		{"other data", how, other, data, online.ErrShape},
		{"other rate", faster, set, data, online.ErrShape},
		{"truncated", how, set, data[:len(data)-3], online.ErrState},
		{"longer", how, set, append(slices.Clone(data), 0), online.ErrState},
		{"a learner's state", how, set, []byte(stateMagic + "\x01"), online.ErrState},
		{"empty", how, set, nil, online.ErrState},
	} {
		if _, err := Restore(cfg, c.how, names(2), c.set, c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzRestore(f *testing.F) {
	set := newCloud(40, 2, 2, 8)
	cfg, how := trainConfig(2, 4, online.Shared), Default()
	tr, err := New(cfg, how, names(2), set)
	if err != nil {
		f.Fatal(err)
	}
	for range 2 {
		state, _ := tr.AppendBinary(nil)
		f.Add(state)
		if _, err := tr.Step(); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		tr, err := Restore(cfg, how, names(2), set, state)
		if err != nil {
			if !errors.Is(err, online.ErrState) && !errors.Is(err, online.ErrShape) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		if !tr.Done() { // an accepted state can be used
			_, _ = tr.Step()
		}
	})
}

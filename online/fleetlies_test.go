package online

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/fleet"
	"edge/online/natural"
	"edge/online/wire"
	"edge/test/fleettest"
)

// liesConfig is small, and has all that a contribution may lie about.
func liesConfig() Config {
	cfg := fleetConfig()
	cfg.Experts.Forest = DefaultConfig().Experts.Forest
	cfg.Warmup, cfg.Inducing = 60, 5
	return cfg
}

// receivers merge the set as a newcomer, a newcomer with labels, an experienced node, one
// that shares a basis, those of devices that differ or that answer for unseen classes, and a
// follower. A panic ends the test, and no contribution stops a merge.
func receivers(t testing.TB) func(t *testing.T, set *fleet.Set) {
	var states [][]byte
	var configs []Config
	for _, of := range []struct {
		labels int
		fleet  Fleet
	}{
		{0, Fleet{}}, {20, Fleet{}}, {80, Fleet{}}, {81, Fleet{Shared: true}}, {0, Fleet{Unseen: MixUnseen}},
		{20, Fleet{Units: fleet.Standard}}, {80, Fleet{Units: fleet.Standard, Unseen: MixUnseen}},
	} {
		cfg := liesConfig()
		cfg.Fleet.Shared, cfg.Fleet.Units, cfg.Fleet.Unseen = of.fleet.Shared, of.fleet.Units, of.fleet.Unseen
		configs = append(configs, cfg)
		states = append(states, stateOf(taught(t, cfg, 5, of.labels, "c0", "c1", "c2")))
	}
	return func(t *testing.T, set *fleet.Set) {
		x := []float64{0.1, 0.2}
		for i, state := range states {
			l, err := Restore(configs[i], state)
			if err != nil {
				t.Fatal(err)
			}
			sum, err := l.Merge("own", set)
			if err != nil {
				t.Errorf("receiver %d: %v", i, err)
				continue
			}
			ev := MergeEvent(sum)
			out := l.Add(&ev)
			if p := (*Panic)(nil); errors.As(out.Refused, &p) {
				t.Fatalf("receiver %d: %v\n%s", i, p, p.Stack)
			}
			if out.Refused != nil {
				t.Errorf("receiver %d: the merge is refused: %v", i, out.Refused)
			}
			teach(l, 6, 17, "c0", "c1", "c2", "c3")
			sums(t, l.Posterior(), x)
			if l, err = Restore(configs[i], stateOf(l)); err != nil {
				t.Fatalf("receiver %d: its state cannot be read: %v", i, err)
			}
			sums(t, l.Posterior(), x)
		}
		if post, _, err := Follow(liesConfig(), "own", set); err == nil {
			sums(t, post, x)
		}
	}
}

// sums checks that the probabilities of a prediction are those of one event.
func sums(t *testing.T, post *model.Posterior, x []float64) {
	t.Helper()
	var ws model.Workspace
	probs, _, err := post.PredictTo(nil, x, &ws)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, v := range probs {
		sum += v
	}
	if len(probs) > 0 && !(math.Abs(sum-1) < 1e-9) {
		t.Fatalf("probabilities %v", probs)
	}
}

// scaled returns a change of the first feature's scaling, to quantiles from −rank to rank, or none
// for 0, and of an inducing input; with a class that nobody else has.
func scaled(mu, sd, rank, input float64) func(*fleet.Header, *fleet.Basis) *natural.Exponents {
	return func(h *fleet.Header, b *fleet.Basis) *natural.Exponents {
		*b = basisOf(5, 2, rank > 0)
		b.Scale.Mu[0], b.Scale.Sd[0], b.Params.Z()[0] = mu, sd, input
		for i := range len(b.Scale.Ranks) / 2 {
			b.Scale.Ranks[i] = rank * float64(min(i/10, 2)-1)
		}
		h.Classes, h.Counts = append(slices.Clone(h.Classes[1:]), "odd"), slices.Repeat([]uint64{50}, len(h.Classes))
		return nil
	}
}

// told returns a contribution that says of itself what change does, with sites of its own
// sizes, as its author would encode it. It is nil if Decode refuses it.
func told(t *testing.T, c *fleet.Contribution, change func(*fleet.Header, *fleet.Basis) *natural.Exponents) *fleet.Contribution {
	h, b := c.Header, c.Basis
	x := change(&h, &b)
	lie := fleet.New(h, b, fleet.Float32)
	m := b.Params.M
	a, linear := make([]float64, m*m), make([]float64, m)
	for at := range h.Horizons {
		for k := range h.Classes {
			for i := range m {
				a[i*m+i], linear[i] = 3, 1
			}
			if err := lie.Put(at, k, a, linear); err != nil {
				t.Fatal(err)
			}
			clear(a)
		}
	}
	lie.SetExponents(x)
	data, err := lie.AppendBinary(nil)
	if err != nil {
		return nil
	}
	lie, err = fleet.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return lie
}

// basisOf returns one of m inducing points in d dimensions.
func basisOf(m, d int, ranked bool) fleet.Basis {
	b := fleet.Basis{Params: model.NewParams(m, d), Scale: model.Scale{Mu: make([]float64, d), Sd: slices.Repeat([]float64{1}, d)}}
	for i := range b.Params.Z() {
		b.Params.Z()[i] = float64(i%7) / 3
	}
	if ranked {
		b.Scale.Ranks = make([]float64, d*model.RankPoints)
	}
	return b
}

// factors returns exponents of some blends, each of n experts.
func factors(of natural.Experts, blends, n int) *natural.Exponents {
	x := &natural.Exponents{Experts: of}
	for range blends {
		x.Factors = append(x.Factors, natural.New(n))
	}
	return x
}

// A contribution with the right features that lies about a number of things is refused, or
// merged, and harms no member: alone, where it is the fleet, with the most labels, and
// among others.
func TestLiesInContributions(t *testing.T) {
	cfg, merge := liesConfig(), receivers(t)
	set := fleetOf(t, cfg, 3, "c0", "c1", "c2")
	good := set.Members()[0]
	experts := natural.Experts{Own: len(cfg.Horizons), Fleet: len(cfg.Horizons), Forest: true}
	many := make([]string, model.MaxClasses)
	for i := range many {
		many[i] = string(rune('A'+i%26)) + string(rune('a'+i/26))
	}
	lies := map[string]func(*fleet.Header, *fleet.Basis) *natural.Exponents{
		"fewer features":   func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(5, 1, false); return nil },
		"more features":    func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(5, 3, false); return nil },
		"more, with ranks": func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(5, 7, true); return nil },
		"ranks":            func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(5, 2, true); return nil },
		"one point":        func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(1, 2, false); return nil },
		"more points":      func(_ *fleet.Header, b *fleet.Basis) *natural.Exponents { *b = basisOf(40, 2, false); return nil },
		"one horizon": func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Horizons, h.Weights = h.Horizons[:1], h.Weights[:1]
			return nil
		},
		"other horizons": func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Horizons = []float64{7, 6, 5}[:len(h.Horizons)]
			return nil
		},
		"horizon twice": func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Horizons = slices.Repeat(h.Horizons[:1], len(h.Horizons))
			return nil
		},
		"horizons reversed": func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Horizons = slices.Clone(h.Horizons)
			slices.Reverse(h.Horizons)
			return factors(experts, 4, 3)
		},
		"other classes": func(h *fleet.Header, _ *fleet.Basis) *natural.Exponents {
			h.Classes = []string{"p", "q", "r"}
			return nil
		},
		"all classes": func(h *fleet.Header, b *fleet.Basis) *natural.Exponents {
			*b = basisOf(2, 2, false)
			h.Classes, h.Counts = many, make([]uint64, len(many))
			return nil
		},
		"a common basis": func(h *fleet.Header, b *fleet.Basis) *natural.Exponents {
			*b = basisOf(5, 3, false)
			h.BasisEpoch = fleet.Birth{Number: 1, Author: "a", Tag: 1}.ID()
			return nil
		},
		"no blends":                       func(*fleet.Header, *fleet.Basis) *natural.Exponents { return factors(experts, 0, 0) },
		"blends of none":                  func(*fleet.Header, *fleet.Basis) *natural.Exponents { return factors(experts, 4, 0) },
		"blends of many":                  func(*fleet.Header, *fleet.Basis) *natural.Exponents { return factors(experts, 4, 60) },
		"a mean that no feature has":      scaled(1e300, 1, 0, 0),
		"a deviation that no feature has": scaled(0, 1e300, 0, 0),
		"a wide feature":                  scaled(1e100, 1e100, 0, 1e6),
		"narrow, with ranks":              scaled(0, 5e-324, 1, 1e6),
		"narrow, with wide ranks":         scaled(-1e100, 1e-300, 3e38, -1e6),
		"no experts":                      func(*fleet.Header, *fleet.Basis) *natural.Exponents { return factors(natural.Experts{}, 4, 5) },
	}
	for name, change := range lies {
		t.Run(name, func(t *testing.T) {
			lie := told(t, good, func(h *fleet.Header, b *fleet.Basis) *natural.Exponents {
				h.Member, h.N = "liar", 100_000
				return change(h, b)
			})
			if lie == nil {
				return
			}
			alone, among := fleet.NewSet(0), set.Clone()
			alone.Put(lie)
			among.Put(lie)
			merge(t, alone)
			merge(t, among)
			if name == "fewer features" || name == "more features" || name == "more, with ranks" {
				m, err := taught(t, cfg, 1, 0).Merge("own", alone)
				if err != nil || m.Taken() != 0 || m.Members[0].Refused != fleet.OtherInputs {
					t.Errorf("taken %d, %v, error %v", m.Taken(), m.Members, err)
				}
			}
		})
	}
}

// A common basis of other features is not adopted.
func TestBasisOfOtherFeatures(t *testing.T) {
	cfg := liesConfig()
	set := fleetOf(t, cfg, 3, "c0", "c1", "c2")
	good := set.Members()[0]
	set.Offer(&fleet.Common{Birth: fleet.Birth{Number: 1, Author: "a", Tag: 1}, Features: good.Features, Classes: good.Classes, Counts: good.Counts, Basis: basisOf(cfg.Inducing, 3, false)})
	receivers(t)(t, set)
}

// unpacked returns an encoded contribution in the form of earlier programs.
func unpacked(f testing.TB, data []byte) []byte {
	d := wire.NewDecoder(data[4:len(data)-4], "", ErrState)
	_, size := d.Int(math.MaxInt32, ""), d.Int(4, "")
	all, err := io.ReadAll(flate.NewReader(bytes.NewReader(d.Bytes(d.Len(), ""))))
	if err != nil {
		f.Fatal(err)
	}
	plain := make([]byte, len(all))
	for first := range size {
		for i := first; i < len(plain); i += size {
			plain[i], all = all[0], all[1:]
		}
	}
	return plain
}

// sealed repairs the checksum.
func sealed(data []byte) []byte {
	return wire.AppendChecksum(slices.Clone(data[:len(data)-wire.ChecksumBytes]), 0)
}

// A contribution of which some bytes have been changed, with a valid checksum, harms no
// member.
func TestChangedContributions(t *testing.T) {
	merge, rng, taken := receivers(t), rand.New(rand.NewPCG(3, 3)), 0
	set := fleetOf(t, liesConfig(), 2, "c0", "c1", "c2")
	plain := unpacked(t, fleettest.Encode(t, set.Members()[0]))
	for range 40 {
		changed := slices.Clone(plain)
		for range 1 + rng.IntN(3) {
			changed[4+rng.IntN(len(changed)-4)] ^= byte(1 << rng.IntN(8))
		}
		taken += mergeChanged(t, changed, set, merge)
	}
	if taken < 4 {
		t.Errorf("only %d of the changed contributions can be read", taken)
	}
}

// mergeChanged merges a contribution alone and among others, if it can be read.
func mergeChanged(t *testing.T, data []byte, set *fleet.Set, merge func(*testing.T, *fleet.Set)) int {
	c, err := fleet.Decode(sealed(data))
	if err != nil {
		return 0
	}
	alone, among := fleet.NewSet(0), set.Clone()
	alone.Put(c)
	among.Remove(c.Member)
	among.Put(c)
	merge(t, alone)
	merge(t, among)
	return 1
}

func FuzzMerge(f *testing.F) {
	set := fleetOf(f, liesConfig(), 2, "c0", "c1", "c2")
	merge := receivers(f)
	f.Add(unpacked(f, fleettest.Encode(f, set.Members()[0])))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 8 {
			mergeChanged(t, data, set, merge)
		}
	})
}

// A panic of a merge is its error: the loop goes on with the state that it had.
func TestPanicInAMerge(t *testing.T) {
	l := taught(t, liesConfig(), 5, 80, "c0", "c1", "c2")
	before := l.Digest()
	c := *fleetOf(t, liesConfig(), 1, "c0", "c1").Members()[0]
	c.Params.Theta = nil // which no decoded contribution has
	set := fleet.NewSet(0)
	set.Put(&c)
	lp := NewLoop(l, LoopOptions{Model: "m"})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- lp.Run(ctx) }()
	_, err := lp.Merge(ctx, "own", set)
	if p := (*Panic)(nil); !errors.As(err, &p) || len(p.Stack) == 0 {
		t.Errorf("the merge gave %v", err)
	}
	_, state, err := lp.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Restore(liesConfig(), state); err != nil || again.Digest() != before {
		t.Errorf("another state after the panic, error %v", err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

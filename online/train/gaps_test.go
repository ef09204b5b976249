package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/online"
)

// Samples that lack features are trained on: the sites use the known features, and
// kernel and inducing points stay finite, for every scaling, form of sites and start.
func TestTrainerTakesGaps(t *testing.T) {
	const n, d, c = 400, 4, 3
	set, whole := newCloud(n, d, c, 5), newCloud(n, d, c, 5)
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		if i%2 == 0 {
			set.x[i*d+rng.IntN(d)] = math.NaN()
		}
	}
	for name, change := range map[string]func(*online.Config, *Config){
		"tied":      func(*online.Config, *Config) {},
		"explicit":  func(_ *online.Config, how *Config) { how.Sites, how.Scaling = Merged, Plain },
		"common":    func(_ *online.Config, how *Config) { how.Scaling, how.Start = Common, Subset },
		"per class": func(cfg *online.Config, how *Config) { cfg.Kernel, how.Start = online.PerClass, PerClassKMeans },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, how := trainConfig(d, 12, online.Shared), Default()
			cfg.LabelNoise.Start, how.Passes, how.Batch = 0.01, 20, 50
			change(&cfg, &how)
			tr := newTestTrainer(t, cfg, how, c, set)
			start := append([]float64(nil), tr.params.Theta...)
			run(t, tr, 1000)
			moved := false
			for i, v := range tr.params.Theta {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("parameter %d is %v", i, v)
				}
				moved = moved || v != start[i]
			}
			if !moved {
				t.Error("the complete samples do not move the kernel")
			}
			s, err := tr.Score(whole)
			if err != nil {
				t.Fatal(err)
			}
			full := newTestTrainer(t, cfg, how, c, whole)
			run(t, full, 1000)
			best, err := full.Score(whole)
			if err != nil {
				t.Fatal(err)
			}
			if math.IsNaN(s.NLL) || s.Error > best.Error+0.1 {
				t.Errorf("error %.3f, log loss %.3f; trained on complete samples %.3f, %.3f", s.Error, s.NLL, best.Error, best.NLL)
			}
		})
	}
}

package sep

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

func TestCavityGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			V, Mean, S1, S2 float64
			VCav            float64 `json:"v_cav"`
			MeanCav         float64 `json:"mean_cav"`
		}
	}
	golden.Reference(t, "cavity.json", &ref)
	for _, r := range ref.Rows {
		a, v, _ := Cavity(r.Mean, r.V, r.S1, r.S2)
		golden.Close(t, "cavity", []float64{a}, []float64{r.MeanCav}, 1e-12)
		golden.Close(t, "cavity variance", []float64{v}, []float64{r.VCav}, 1e-12)
	}
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
}

func TestSiteGolden(t *testing.T) {
	var ref struct {
		Rows []struct {
			Mean, V, Q []float64
			Y          int
			Eps        float64
			LogZ       float64 `json:"log_z"`
			R          float64
			G, H, Gb   []float64
			C1, C2     []float64
		}
	}
	golden.Reference(t, "merged_site.json", &ref)
	for i, r := range ref.Rows {
		c := len(r.Mean)
		var s Site
		s.Resize(c)
		copy(s.A, r.Mean)
		copy(s.V, r.V)
		for k := range c {
			s.T[k] = r.Q[k] + r.V[k]
		}
		s.Update(r.Y, 0, 1) // first for Z, from which the reference takes r
		s.Update(r.Y, r.Eps, math.Exp(s.LogZ()))
		logZ := s.LogZ()
		if r.Eps > 0 {
			logZ = math.Log((1-r.Eps)*math.Exp(s.LogZ()) + r.Eps/float64(c))
		}
		t.Logf("row %d: C=%d eps=%g", i, c, r.Eps)
		golden.Close(t, "log Z", []float64{logZ}, []float64{r.LogZ}, 1e-8)
		golden.Close(t, "r", []float64{s.R}, []float64{r.R}, 1e-8)
		golden.Close(t, "∂log Z/∂a", s.G, r.G, 1e-8)
		golden.Close(t, "−∂²log Z/∂a²", s.H, r.H, 1e-8)
		golden.Close(t, "∂log Z/∂t", s.D, r.Gb, 1e-8)
		golden.Close(t, "C1", s.S1, r.C1, 1e-8)
		golden.Close(t, "C2", s.S2, r.C2, 1e-8)
	}
	if len(ref.Rows) == 0 {
		t.Error("no rows")
	}
}

type stepReference struct {
	Live  bool
	Input struct {
		M, D, C, Window, Sweeps int
		Damp, Eps               float64
		Horizon                 *float64
		Z                       [][]float64
		LogEll                  []float64 `json:"log_ell"`
		LogAmp                  float64   `json:"log_amp"`
		LogNoise                float64   `json:"log_noise"`
		A                       [][][]float64
		B                       [][]float64
		WinX                    [][]float64 `json:"win_X"`
		WinY                    []int       `json:"win_y"`
		S1                      [][]float64 `json:"win_s1"`
		S2                      [][]float64 `json:"win_s2"`
		X                       [][]float64 `json:"X"`
		Y                       []int       `json:"y"`
	}
	Output struct {
		A         [][][]float64
		B         [][]float64
		WinX      [][]float64   `json:"win_X"`
		WinY      []int         `json:"win_y"`
		S1        [][]float64   `json:"win_s1"`
		S2        [][]float64   `json:"win_s2"`
		P1        [][]float64   `json:"win_p1"`
		P2        [][]float64   `json:"win_p2"`
		V         [][][]float64 `json:"V"`
		Mean      [][]float64   `json:"m"`
		LogZ      []float64     `json:"log_z_new"`
		R         []float64     `json:"r_new"`
		Objective float64
	}
	Gradient struct {
		Z        [][]float64
		LogEll   []float64 `json:"log_ell"`
		LogAmp   float64   `json:"log_amp"`
		LogNoise float64   `json:"log_noise"`
	}
	Hyper struct {
		LR       float64
		Z        [][]float64
		LogEll   []float64     `json:"log_ell"`
		LogAmp   float64       `json:"log_amp"`
		LogNoise float64       `json:"log_noise"`
		T        [][]float64   `json:"T"`
		A        [][][]float64 `json:"A"`
		B        [][]float64   `json:"b"`
		V        [][][]float64 `json:"V"`
		Mean     [][]float64   `json:"m"`
	}
}

// loadStep returns a bank with a step reference's input.
func loadStep(t *testing.T, ref *stepReference) (b *Bank, n int) {
	in := &ref.Input
	length := math.Inf(1)
	if in.Horizon != nil {
		length = *in.Horizon
	}
	b = New(Config{
		Features: in.D, Inducing: in.M, Horizons: []float64{length}, Window: in.Window, Batch: len(in.Y), Sweeps: in.Sweeps, Damping: in.Damp,
		LearningRate: 0.02, NoiseStart: in.Eps, NoiseMax: 0.2, Clip: model.DefaultClip,
	}, &model.Posterior{Weights: []float64{1}})
	b.live, b.reach = ref.Live, math.Inf(1)
	b.allocate()
	copy(b.params.Z(), golden.Flat(in.Z))
	copy(b.params.LogEll(), in.LogEll)
	*b.params.LogAmp(), *b.params.LogNoise(), *b.params.LogitEps() = in.LogAmp, in.LogNoise, model.Logit(in.Eps)
	if _, err := b.bases[0].Set(&b.params); err != nil {
		t.Fatal(err)
	}
	for k := range in.C {
		b.Grow(k)
	}
	z := &b.sites[0]
	for k := range in.C {
		b.SetAbsorbed(0, k, golden.Flat(in.A[k]), in.B[k])
		for i := range in.S1 {
			z.s1[k*b.capacity+i], z.s2[k*b.capacity+i] = in.S1[i][k], in.S2[i][k]
		}
	}
	ones := slices.Repeat([]float64{1}, max(len(in.WinY), len(in.Y)))
	b.winX, b.winY, b.winW = append(b.winX, golden.Flat(in.WinX)...), append(b.winY, in.WinY...), append(b.winW, ones[:len(in.WinY)]...)
	b.sharePairs() // the reference has merged sites and shares them out likewise
	if err := b.Refresh(); err != nil {
		t.Fatal(err)
	}
	copy(b.work.batch.x, golden.Flat(in.X))
	copy(b.work.batch.latents, in.Y)
	copy(b.work.batch.weights, ones)
	return b, len(in.Y)
}

// comparePosterior compares V = UᵀU and the means of the first horizon.
func comparePosterior(t *testing.T, what string, b *Bank, v [][][]float64, mean [][]float64) {
	t.Helper()
	g, m := &b.view.Bank[0], b.cfg.Inducing
	for k := range v {
		got := make([]float64, m*m)
		for i := range m {
			for j := range m {
				for r := max(i, j); r < m; r++ {
					got[i*m+j] += g.U[k*m*m+r*m+i] * g.U[k*m*m+r*m+j]
				}
			}
		}
		golden.Close(t, what+" V", got, golden.Flat(v[k]), 1e-9)
	}
	golden.Close(t, what+" m", g.Mean, golden.Flat(mean), 1e-9)
}

func compareAbsorbed(t *testing.T, what string, b *Bank, a [][][]float64, absorbed [][]float64) {
	t.Helper()
	for k := range a {
		got := make([]float64, b.cfg.Inducing*b.cfg.Inducing)
		b.precision(0, k).load(got)
		mirror(got, got, b.cfg.Inducing)
		golden.Close(t, what+" A", got, golden.Flat(a[k]), 1e-9)
	}
	golden.Close(t, what+" b", b.sites[0].b, golden.Flat(absorbed), 1e-9)
}

func TestStepGolden(t *testing.T) {
	for _, name := range []string{"step_pairs_from_prior.json", "step_pairs_from_state.json", "step_pairs_live.json"} {
		t.Run(name, func(t *testing.T) {
			var ref stepReference
			data, err := os.ReadFile(filepath.Join("testdata", name)) // computed by step_pairs.py there
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &ref); err != nil {
				t.Fatal(err)
			}
			b, n := loadStep(t, &ref)
			b.work.grad.trace = true
			if err := b.sweeps(n, n); err != nil {
				t.Fatal(err)
			}
			out := &ref.Output
			compareAbsorbed(t, "after the sweeps", b, out.A, out.B)
			golden.Close(t, "window", b.winX, golden.Flat(out.WinX), 0)
			if !slices.Equal(b.winY, out.WinY) {
				t.Errorf("window labels %v, want %v", b.winY, out.WinY)
			}
			for k := range ref.Input.C {
				for _, s := range []struct {
					what string
					got  []float64
					want [][]float64
				}{
					{"s1", b.sites[0].s1, out.S1}, {"s2", b.sites[0].s2, out.S2}, {"p1", b.sites[0].p1, out.P1}, {"p2", b.sites[0].p2, out.P2},
				} {
					var want []float64
					for i := range s.want {
						want = append(want, s.want[i][k])
					}
					golden.Close(t, s.what, s.got[k*b.capacity:][:len(want)], want, 1e-9)
				}
			}
			golden.Close(t, "r", b.work.grad.resp[:n], out.R, 1e-9)
			golden.Close(t, "objective", []float64{b.work.grad.objective}, []float64{out.Objective}, 1e-9)

			b.gradient(n)
			want := append(golden.Flat(ref.Gradient.Z), ref.Gradient.LogEll...)
			want = append(want, ref.Gradient.LogAmp, ref.Gradient.LogNoise, 0)
			golden.Close(t, "gradient", b.work.grad.theta, want, 1e-8)
			if err := b.Refresh(); err != nil {
				t.Fatal(err)
			}
			comparePosterior(t, "after the sweeps", b, out.V, out.Mean)

			if err := b.move(ref.Hyper.LR); err != nil {
				t.Fatal(err)
			}
			golden.Close(t, "T", b.work.project.t, golden.Flat(ref.Hyper.T), 1e-9)
			if err := b.Refresh(); err != nil {
				t.Fatal(err)
			}
			want = append(golden.Flat(ref.Hyper.Z), ref.Hyper.LogEll...)
			want = append(want, ref.Hyper.LogAmp, ref.Hyper.LogNoise)
			golden.Close(t, "parameters", b.params.Theta[:len(want)], want, 1e-9)
			compareAbsorbed(t, "re-based", b, ref.Hyper.A, ref.Hyper.B)
			comparePosterior(t, "re-based", b, ref.Hyper.V, ref.Hyper.Mean)
		})
	}
}

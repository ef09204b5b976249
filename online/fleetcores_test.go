package online

import (
	"runtime"
	"slices"
	"testing"
)

// A member of a fleet whose others know a class more learns on one core and on four: states
// and posteriors are equal. The race detector finds work that is not apart.
func TestCoresInAFleet(t *testing.T) {
	cfg := fleetConfig()
	cfg.Inducing = 50
	set := fleetOf(t, cfg, 2, "c0", "c1", "c2", "c3")
	all := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(all)
	var learners [2]*Learner
	for i, cores := range []int{1, 4} {
		runtime.GOMAXPROCS(cores)
		l := taught(t, cfg, 1, 250, "c0", "c1", "c2")
		merged(t, l, set)
		teach(l, 2, 100, "c0", "c1", "c2")
		if len(l.fleet.foreign) != 1 || l.bank.Cores() != cores {
			t.Fatalf("%d foreign classes, %d cores", len(l.fleet.foreign), l.bank.Cores())
		}
		learners[i] = l
	}
	one, four := learners[0], learners[1]
	if a, b := one.Digest(), four.Digest(); a != b {
		t.Errorf("digest %s on one core, %s on four", a, b)
	}
	for h := range one.view.Bank {
		if a, b := &one.view.Bank[h], &four.view.Bank[h]; !slices.Equal(a.Mean, b.Mean) || !slices.Equal(a.U, b.U) {
			t.Errorf("posterior %d differs", h)
		}
	}
	for h := range one.view.Fleet.Foreign {
		if a, b := &one.view.Fleet.Foreign[h], &four.view.Fleet.Foreign[h]; !slices.Equal(a.Mean, b.Mean) {
			t.Errorf("the foreign class differs under horizon %d", h)
		}
	}
}

// The same with forests, when a step gives the class that only the others know a latent function,
// and publishes their forests again.
func TestForestsOnCoresInAFleet(t *testing.T) {
	cfg := forestFleetConfig()
	cfg.Inducing = 50
	all := []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	var digests []string
	for _, cores := range []int{1, 4, 4, 4} {
		runtime.GOMAXPROCS(cores)
		l := taught(t, cfg, 1, 250, all[:3]...)
		merged(t, l, set)
		teach(l, 2, 60, all...)
		if l.bank.Cores() != cores || l.view.Pool.Stack.Tuned == nil || len(l.view.Latent) != 4 {
			t.Fatalf("%d cores, %d classes", l.bank.Cores(), len(l.view.Latent))
		}
		digests = append(digests, l.Digest())
	}
	if slices.ContainsFunc(digests, func(d string) bool { return d != digests[0] }) {
		t.Errorf("digests on one core and on four: %v", digests)
	}
}

// Sums that do not factor are dropped: their class has the own posterior then, and all other
// sums stay.
func TestSumsThatDoNotFactor(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2"}
	l := taught(t, cfg, 1, 250, all...)
	merged(t, l, fleetOf(t, cfg, 2, all...))
	const f, class = 1, 2
	m := cfg.Inducing
	a, _ := l.bank.Joined(f, class)
	for i := range m {
		a[i*(i+1)/2+i] = -1e6
	}
	if err := l.bank.Refresh(); err != nil {
		t.Fatal(err)
	}
	if got := l.bank.Counts.JoinedDropped; got != 1 {
		t.Fatalf("%d sums were dropped", got)
	}
	for h, own := range l.fleet.own {
		for k := range l.view.Latent {
			joined, alone := l.view.Bank[len(cfg.Horizons)+h].Mean[k*m:(k+1)*m], l.view.Bank[own].Mean[k*m:(k+1)*m]
			if same, want := slices.Equal(joined, alone), h == f && k == class; same != want {
				t.Errorf("horizon %d, class %d: the mean is the own one: %v, want %v", h, k, same, want)
			}
		}
	}
}

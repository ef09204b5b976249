package online_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"edge/online"
)

// reading draws the readings of a machine that is worn in one of three cases.
func reading(rng *rand.Rand) (x []float64, label string) {
	x, label = []float64{rng.NormFloat64(), 20 + rng.NormFloat64()}, "ok"
	if rng.IntN(3) == 0 {
		x[0], label = x[0]+6, "worn"
	}
	return x, label
}

// A learner is made of a configuration, learns from events, and predicts.
func ExampleNewLearner() {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"vibration", "temperature"}
	l, err := online.NewLearner(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		x, label := reading(rng)
		if out := l.Add(&online.Event{Kind: online.Observe, X: x, Label: label}); out.Refused != nil {
			fmt.Println(out.Refused)
		}
	}
	p, err := l.Predict([]float64{6, 20})
	fmt.Println(p.Class, p.Set, err)
	s := l.Scores()
	beats, _ := s.Beats()
	fmt.Println(s.N, "samples judged; better than both baselines:", beats)
	// Output:
	// worn [worn] <nil>
	// 500 samples judged; better than both baselines: true
}

// An encoded state restores the same learner.
func ExampleRestore() {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"vibration", "temperature"}
	l, _ := online.NewLearner(cfg)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		x, label := reading(rng)
		l.Add(&online.Event{Kind: online.Observe, X: x, Label: label})
	}
	state, _ := l.AppendBinary(nil)
	again, err := online.Restore(cfg, state)
	fmt.Println(err, again.Digest() == l.Digest())

	cfg.Inducing = 10
	_, err = online.Restore(cfg, state)
	fmt.Println(err)
	// Output:
	// <nil> true
	// online: state was made with features=vibration,temperature inducing=50 horizons=inf,500,100 window=100, configuration has features=vibration,temperature inducing=10 horizons=inf,500,100 window=100: state has another shape than the configuration
}

// A loop owns a learner; any goroutine may read its posterior and its status.
func ExampleNewLoop() {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"vibration", "temperature"}
	l, _ := online.NewLearner(cfg)
	loop := online.NewLoop(l, online.LoopOptions{Model: "pump", Queue: 4})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- loop.Run(ctx) }()

	rng := rand.New(rand.NewPCG(1, 1))
	var records []online.Record
	for seq := range uint64(200) {
		x, label := reading(rng)
		records = append(records, online.Record{Model: "pump", Seq: seq + 1, Event: online.Event{Kind: online.Observe, X: x, Label: label}})
	}
	fmt.Println(loop.Learn(ctx, records), loop.Idle(ctx))
	fmt.Println(loop.Status().Seq, loop.Posterior().Classes())
	stop()
	fmt.Println(<-done)
	// Output:
	// <nil> <nil>
	// 200 [ok worn]
	// <nil>
}

//go:build ignore

// Command make_state wrote v1.state to v6.state.gz, state files of the
// format versions 1 to 6, each with the program of that version:
//
//	go run testdata/make_state.go testdata/v4.state
//
// v5.state and v6.state were written without Close: their redo logs have the latest commits.
//
// Do not regenerate the files: later versions must read them. The samples are those
// of sample and pendingSample in truth_test.go.
package main

import (
	"fmt"
	"log"
	"os"

	"edge/online"
	"edge/persist"
)

const shape = "features=a,b,c inducing=8 horizons=inf window=0"

func main() {
	path := os.Args[1]
	store, err := persist.Open(path, persist.Options{})
	check(err)
	_, err = store.Load("bearing", shape)
	check(err)
	_, err = store.Load("empty", "another shape")
	check(err)
	for n := uint64(1); n <= 12; n++ {
		check(store.Commit(&online.Commit{Records: []online.Record{sample(n)}}))
		if n%3 == 0 && n < 12 {
			check(store.Checkpoint("bearing", n, fmt.Appendf(nil, "state after record %d", n)))
		}
	}
	for n := uint64(1); n <= 4; n++ {
		check(store.Commit(&online.Commit{Wait: []online.Pending{
			{Model: "bearing", Key: hash(n) + 1, X: []float64{float64(n), 2, 3}, Probs: []float64{0.5, 0.5}}}}))
	}
	check(store.Commit(&online.Commit{Forget: []online.Pending{{Model: "bearing", Key: hash(4) + 1}}}))
	check(store.Close())
}

func sample(n uint64) online.Record {
	x := []float64{float64(n), -float64(n) / 3, 1e-300}
	r := online.Record{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: hash(n), X: x, Label: fmt.Sprintf("class %d", n%5)}}
	switch n % 7 {
	case 3:
		r.Probs = []float64{0.25, 0.75}
	case 4:
		r.Probs = []float64{}
	case 5:
		r.Event = online.Event{Kind: online.Boundary}
	case 6:
		r.Key = 0
	}
	return r
}

func hash(n uint64) uint64 {
	n ^= n >> 30
	n *= 0xbf58476d1ce4e5b9
	n ^= n >> 27
	n *= 0x94d049bb133111eb
	return n ^ n>>31
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

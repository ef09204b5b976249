package mixture

import "math"

// Batch describes the evidence of a minibatch. Samples that were predicted without each
// other's labels have much the same errors: those of a minibatch, and where labels come late
// those of all minibatches between a sample and its label.
type Batch struct {
	N     int     // samples
	Alike float64 // samples of which the errors are alike, at least N
}

// Together is a minibatch of n samples whose labels came before the next sample was predicted.
func Together(n int) Batch { return Batch{N: n, Alike: float64(n)} }

// part is the part of the samples with like errors that is in the minibatch.
func (b Batch) part() float64 { return float64(b.N) / b.Alike }

// root is the weight of a sample where those with like errors count as their root.
func (b Batch) root() float64 { return 1 / math.Sqrt(b.Alike) }

// once is the weight of a sample where all minibatches with like errors count as one of them.
func (b Batch) once() float64 { return b.part() / math.Sqrt(float64(b.N)) }

// most is the weight of a sample where at most that many with like errors count.
func (b Batch) most(samples float64) float64 { return min(1, samples/b.Alike) }

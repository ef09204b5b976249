package model

// Posterior is one frozen state of the classifier: immutable, safe for any
// number of readers.
type Posterior struct{}

// Workspace is scratch memory for predictions, one per goroutine.
type Workspace struct{}

// NewWorkspace returns an empty workspace; it grows to what predictions need.
func NewWorkspace() *Workspace { return &Workspace{} }

// Classes are the names of the classes, in the order of the probabilities. It
// only ever grows at its end. Read only.
func (p *Posterior) Classes() []string { panic("being written") }

// Dim is D, the number of features.
func (p *Posterior) Dim() int { panic("being written") }

// Version counts the samples that the posterior has learnt.
func (p *Posterior) Version() uint64 { panic("being written") }

// PredictTo stores P(class | x) for every class in dst and returns dst and the
// novelty of x: the fraction of the prior variance that is left at x, 0 to 1.
//
//	dst  grown to len(Classes()); sums to 1; empty while no class is known
//	x    D raw features
//	ws   scratch, one per goroutine
//
// On ErrDimension or ErrNotFinite dst is returned as it was.
func (p *Posterior) PredictTo(dst, x []float64, ws *Workspace) (probs []float64, novelty float64, err error) {
	panic("being written")
}

package compare

import (
	"context"
	"fmt"

	"edge/lab"
	"edge/lab/binary"
	"edge/lab/ep"
	"edge/lab/fullep"
	"edge/lab/gfitc"
	"edge/lab/offline"
	"edge/lab/rep"
	"edge/lab/studentt"
	"edge/lab/tied"
	"edge/lab/vi"
)

// Method is a method of the laboratory by its name. A new one is a lab.Method in a package
// below lab and a line in Methods.
type Method struct {
	Name, About string
	Classes     int // it needs this number of classes; 0: any
	Rows        int // rows that it learns at most; 0: any number
	fit         lab.Method
}

// With is the method with other settings, for which Config has a name.
func (m *Method) With(fit lab.Method) *Method {
	other := *m
	other.fit = fit
	return &other
}

// Minibatches of the stochastic methods.
const (
	batch = 100  // rows
	rate  = 0.01 // of Adam
)

// Largest numbers of rows of the methods without inducing points, whose cost is N³.
const fullRows = 500

// NewMethod is a method for any rows and classes, for experiments of their own.
func NewMethod(name, about string, fit lab.Method) Method {
	return Method{Name: name, About: about, fit: fit}
}

// Methods are all methods, in the order of the tables.
func Methods() []Method {
	return append([]Method{
		{"edge", "edge's own training, a site for each observation and class (edge train --sites merged --batch 0)", 0, 0, offline.Train},
		{"edge-ensemble", "three of them, one with a kernel for all classes, combined by folds of the rows learnt", 0, 0, offline.TrainEnsemble},
		{"sep", "stochastic EP with the sites of the learner: all pairs of an observation in one", 0, 0, tied.Train(tied.Merged)},
		{"sep-pairs", "stochastic EP as published: a factor for each pair, tied sites", 0, 0, tied.Train(tied.Total)},
		{"sep-touched", "sep-pairs, each class counting the factors that touch it", 0, 0, tied.Train(tied.Touched)},
		{"sep-robust", "stochastic EP with robust factors", 0, 0, tied.Train(tied.Robust)},
		{"ep", "EP with a site for each pair, one sweep between steps of the parameters", 0, 0, ep.Inner},
		{"ep-exact", "ep along the exact gradient", 0, 0, ep.InnerExact},
		{"ep-outer", "EP to convergence between steps of the parameters", 0, 0, ep.Outer},
		{"ep-merged", "EP with the sites of the learner, kept one by one", 0, 0, rep.TrainMerged},
		{"rep", "EP on the robust likelihood, exact probability", 0, 0, rep.Train},
		{"gfitc", "EP on the marginal prior (generalised FITC), L-BFGS", 0, 0, gfitc.Train},
		{"sep-stochastic", "sep-pairs, Adam on minibatches", 0, 0, tied.Stochastic(tied.Total, batch, rate)},
		{"ep-stochastic", "ep, Adam on minibatches", 0, 0, ep.Stochastic(batch, rate)},
		{"vi", "variational inference, L-BFGS", 0, 0, vi.Batch},
		{"vi-stochastic", "variational inference, Adam on minibatches", 0, 0, vi.Stochastic(batch, rate)},
		{"vi-natural", "variational inference, natural gradients", 0, 0, vi.Natural},
		{"full-ep", "EP without inducing points", 0, fullRows, fullep.Train},
		{"laplace", "Laplace with one latent function, probit", 2, 0, binary.TrainLaplace(binary.Probit)},
		{"ep-binary", "EP with one latent function, probit", 2, 0, binary.TrainEP(binary.Probit)},
		{"vi-binary", "variational inference with one latent function, probit", 2, 0, binary.TrainVI(binary.Probit)},
		{"laplace-logistic", "laplace, logistic", 2, 0, binary.TrainLaplace(binary.Logistic)},
		{"ep-logistic", "ep-binary, logistic", 2, 0, binary.TrainEP(binary.Logistic)},
		{"vi-logistic", "vi-binary, logistic", 2, 0, binary.TrainVI(binary.Logistic)},
	}, studentT()...)
}

// studentT are the Student-t processes. Two classes have the logistic link, more that of
// pairs.
func studentT() []Method {
	full, sparse := studentt.Options{Full: true}, studentt.Options{}
	published := func(o studentt.Objective) studentt.Approximation { return studentt.Published(studentt.Nu, o) }
	return []Method{
		{"tp", "Student-t process, non-centred bound, L-BFGS", 0, 0, studentt.NonCentred(studentt.Nu).Train(sparse)},
		{"tp-full", "tp with the rows as inducing points", 0, fullRows, studentt.NonCentred(studentt.Nu).Train(full)},
		{"tp-grid", "Student-t process, a Gaussian bound for each of 9 amplitudes", 0, 0, studentt.TrainGrid(studentt.Nu, sparse)},
		{"tp-tied", "Student-t process, the published family of posteriors with a sound bound", 0, 0, studentt.Tied(studentt.Nu, false).Train(sparse)},
		{"tp-tied-free", "tp-tied with free degrees of freedom", 0, 0, studentt.Tied(studentt.Nu, true).Train(sparse)},
		{"tp-ep", "Student-t process, EP for each of 9 amplitudes", 0, 0, studentt.TrainEP(studentt.Nu)},
		{"vtp1", "published objective by Jensen's inequality, the rows as inducing points", 2, fullRows, published(studentt.VTP1).Train(full)},
		{"vtp2", "published t-divergence, constants corrected, the rows as inducing points", 2, fullRows, published(studentt.VTP2).Train(full)},
		{"vtp2-printed", "vtp2 as printed", 2, fullRows, published(studentt.VTP2Printed).Train(full)},
		{"svtp1", "sparse vtp1", 2, 0, published(studentt.VTP1).Train(sparse)},
		{"svtp2", "published sparse t-divergence, constants corrected", 2, 0, published(studentt.SVTP2).Train(sparse)},
		{"svtp2-printed", "svtp2 as printed", 2, 0, published(studentt.SVTP2Printed).Train(sparse)},
	}
}

// Defaults are the names of the methods that are compared if none are named.
func Defaults() []string {
	return []string{"sep", "sep-pairs", "ep", "ep-outer", "rep", "gfitc", "vi", "vi-natural"}
}

// Named returns the methods of these names.
func Named(names []string) ([]Method, error) {
	var out []Method
	for _, name := range names {
		found := false
		for _, m := range Methods() {
			if m.Name == name {
				out, found = append(out, m), true
			}
		}
		if !found {
			return nil, fmt.Errorf("compare: there is no method %q", name)
		}
	}
	return out, nil
}

// Unfit returns why a method cannot learn that many rows of so many classes, or "".
func (m *Method) Unfit(rows, classes int) string {
	switch {
	case m.Classes > 0 && classes != m.Classes:
		return fmt.Sprintf("it separates %d classes, not %d", m.Classes, classes)
	case m.Rows > 0 && rows > m.Rows:
		return fmt.Sprintf("it learns %d rows at most, not %d", m.Rows, rows)
	}
	return ""
}

// Fit fits the method.
func (m *Method) Fit(ctx context.Context, p *lab.Problem) (lab.Classifier, error) {
	c, err := m.fit(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return c, nil
}

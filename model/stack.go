package model

import (
	"math"
	"slices"
)

// Stack is a second opinion beside a Pool's members, for samples that come a
// known number of labels after the last one: experts, multiplied with exponents
// that are learnt,
//
//	p(y=k) ∝ Π_j e_jk^Exponents_j
//
// Expert j is a horizon of the bank (e_jk = p_jk), the chain of labels (c_k/π_k),
// how often a class came among the latest labels (r_k/π_k), for each of
// RecentMemories, or a Regression on the features. What the members have for all
// horizons together and in fixed steps, this has for each expert and in between:
// horizons that are too bold, classes that come in waves, trends. Where the chain
// expects nothing, the members alone answer.
//
// Source: Genest & Zidek (1986) for the pool, Wolpert (1992), "Stacked
// generalization", for learning it; it is a logistic regression on log
// probabilities.
type Stack struct {
	Exponents []float64 // of the bank's horizons, the chain, the recent labels, the regression; nil: the members alone answer
	Weight    float64   // of its answer, 0 to 1; the members have the rest
	Recent    []float64 // len(RecentMemories)×C: labels of each class, which fade; nil: there is no chain
	Linear    Regression
}

// RecentMemories are the times, in labels, by which Stack.Recent fades.
var RecentMemories = [...]float64{50, 150, 500}

const (
	recentPrior  = 2    // labels that are spread as the frequencies are
	floorExpert  = 1e-6 // of an expert's probability before its logarithm
	floorChained = -8   // of the chain's logarithm
)

// Clone returns a deep copy.
func (s *Stack) Clone() Stack {
	c := Stack{Exponents: slices.Clone(s.Exponents), Weight: s.Weight, Recent: slices.Clone(s.Recent), Linear: s.Linear}
	c.Linear.W = slices.Clone(s.Linear.W)
	return c
}

// second is what the stack said in the last prediction.
type second struct {
	experts []float64 // len(Exponents)×C  log e_jk
	answer  []float64 // C; empty: nothing
	members []float64 // C  what the members said
}

// stack mixes the stack's answer into dst, what the members say, after a
// prediction whose horizons and chain are still in ws.
func (p *Posterior) stack(dst []float64, ws *Workspace) {
	s, b, out := &p.Pool.Stack, &ws.belief, &ws.second
	out.answer = out.answer[:0]
	if s.Exponents == nil || !b.chained {
		return
	}
	c, horizons, latents := len(dst), len(p.Bank), len(p.Latent)
	out.experts, out.answer, out.members = grow(out.experts, len(s.Exponents)*c), grow(out.answer, c), grow(out.members, c)
	copy(out.members, dst)
	for h := range horizons {
		row := out.experts[h*c : (h+1)*c]
		for k := range row { // a class that was declared a moment ago has no latent function yet
			row[k] = math.Log(floorExpert)
		}
		for i, k := range p.Latent {
			row[k] = math.Log(max(ws.perHorizon[h*latents+i], floorExpert))
		}
	}
	rest := out.experts[horizons*c:]
	for k := range c {
		rest[k] = max(b.ratio[k], floorChained)
	}
	for j := range RecentMemories {
		row, n := s.Recent[j*c:(j+1)*c], 0.0
		for _, v := range row {
			n += v
		}
		for k, v := range row {
			rest[(j+1)*c+k] = math.Log((v + recentPrior*b.pi[k]) / ((n + recentPrior) * b.pi[k]))
		}
	}
	linear := rest[(len(RecentMemories)+1)*c:]
	if clear(linear); len(s.Linear.W) > 0 {
		d := s.Linear.D
		s.Linear.LogsTo(linear, ws.x[ws.row*d:(ws.row+1)*d])
		for k, v := range linear {
			linear[k] = max(v, math.Log(floorExpert))
		}
	}
	clear(out.answer)
	for j, exponent := range s.Exponents {
		for k, v := range out.experts[j*c : (j+1)*c] {
			out.answer[k] += exponent * v
		}
	}
	softmax(out.answer)
	for k, v := range out.answer {
		dst[k] += s.Weight * (v - dst[k])
	}
}

// softmax replaces logarithms by probabilities that sum to 1.
func softmax(x []float64) {
	top, sum := slices.Max(x), 0.0
	for k, v := range x {
		x[k] = math.Exp(v - top)
		sum += x[k]
	}
	for k := range x {
		x[k] /= sum
	}
}

// SecondOpinion returns what the stack and the members said in the last
// prediction, C each, and the experts' logarithms, len(Exponents)×C; empty if the
// stack said nothing. Valid until the next call.
func (ws *Workspace) SecondOpinion() (stack, members, experts []float64) {
	if len(ws.second.answer) == 0 {
		return nil, nil, nil
	}
	return ws.second.answer, ws.second.members, ws.second.experts
}

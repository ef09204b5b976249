package model

import (
	"math"
	"slices"
)

// Stack is mixed with the answer of a Pool's members: a product of experts with
// learnt exponents,
//
//	p(y=k) ∝ Π_j e_jk^Exponents_j
//
// Expert j is a horizon of the bank (e_jk = p_jk), a Regression on the features, a
// Forest where there is one, the chain of labels (c_k/π_k), or how often a class came
// among the latest labels (r_k/π_k), for each of RecentMemories. The members have fixed
// exponents for all horizons together; the stack has a learnt one for each expert, for
// horizons that are too bold, for trends, and for classes that come in waves.
//
// Source: Genest & Zidek (1986) for the pool, Wolpert (1992), "Stacked
// generalization", for learning it; it is a logistic regression on log
// probabilities.
type Stack struct {
	Ordered Blend // of all experts: where the chain has a forecast
	Plain   Blend // of the horizons, the regression and the forest: where the order of the labels is unknown
	Linear  Regression
	Forest  *Forest        // nil: it is not among the experts
	Members *MemberForests // answer together with Forest, if there is one, or with a guest; nil: there are none
	Tuned   *Forest        // takes the place of Forest in the mean with Members; nil: Forest itself does
}

// asksForests reports whether a forest needs the raw features.
func (s *Stack) asksForests() bool { return s.Forest != nil || s.Members != nil }

// Blend holds the exponents of the first experts and the weight of their product.
type Blend struct {
	Exponents []float64 // of the bank's horizons, the regression, the forest, the chain, the recent labels; nil: the members alone answer
	Weight    float64   // of the answer, 0 to 1; the members have the rest
}

// RecentMemories are the times, in labels, by which Order.Recent fades.
var RecentMemories = [...]float64{50, 150, 500}

const (
	recentPrior  = 2    // labels that are spread as the frequencies are
	floorExpert  = 1e-6 // of an expert's probability before its logarithm
	floorChained = -8   // of the chain's logarithm
)

// clone returns a copy that shares the forests alone.
func (s *Stack) clone() Stack {
	c := Stack{Ordered: s.Ordered, Plain: s.Plain, Linear: s.Linear, Forest: s.Forest, Members: s.Members, Tuned: s.Tuned}
	c.Ordered.Exponents, c.Plain.Exponents = slices.Clone(s.Ordered.Exponents), slices.Clone(s.Plain.Exponents)
	c.Linear.W, c.Linear.V = slices.Clone(s.Linear.W), slices.Clone(s.Linear.V)
	return c
}

// blends holds the output of the stack in the last prediction.
type blends struct {
	experts  []float64 // log e_jk, C for each expert of the blend
	output   BlendOutput
	plain    BlendOutput
	noisy    noisy
	informed []float64 // C  the answer without the weight of the class frequencies
	leaves   []uint8   // trees  of the own forest, if it has tuned weights
	forests  []float64 // see MemberForests.mix
	alone    []float64 // see ForestAnswers
}

// BlendOutput holds the answers of a blend and of the members in a prediction.
type BlendOutput struct {
	Experts []float64 // len(Exponents)×C  log e_jk
	Answer  []float64 // C  of the blend; empty: the blend was not used
	Members []float64 // C  of the members
}

// stack mixes the stack's answer into dst, the answer of the members, after a
// prediction whose inputs, horizons and chain are still in ws.
func (p *Posterior) stack(dst []float64, ws *Workspace) {
	blend := p.blend(ws)
	ws.blends.output.Answer = ws.blends.output.Answer[:0]
	if blend.Exponents == nil {
		return
	}
	ws.blends.experts = grow(ws.blends.experts, len(blend.Exponents)*len(dst))
	p.expertsTo(ws.blends.experts, ws)
	p.mix(dst, ws)
}

// blend returns the blend for a sample whose place in the order is that of ws.
func (p *Posterior) blend(ws *Workspace) *Blend {
	if ws.forecast.chained {
		return &p.Pool.Stack.Ordered
	}
	return &p.Pool.Stack.Plain
}

// mix mixes the blend of the experts in ws into dst.
func (p *Posterior) mix(dst []float64, ws *Workspace) {
	out, blend := &ws.blends, p.blend(ws)
	out.output.Members = append(out.output.Members[:0], dst...)
	out.output.weigh(blend, out.experts)
	for k, v := range out.output.Answer {
		dst[k] += blend.Weight * (v - dst[k])
	}
}

// expertsTo stores log e_jk of the first experts in dst, as many as it has room for.
func (p *Posterior) expertsTo(dst []float64, ws *Workspace) {
	s, f, c := &p.Pool.Stack, &ws.forecast, len(p.Names)
	features, rest := dst[:p.featureExperts()*c], dst[p.featureExperts()*c:]
	if ws.predicted.n > 0 {
		copy(features, ws.predicted.experts[ws.answer.row*len(features):])
	} else {
		p.featureExpertsTo(features, ws.perHorizon, ws.answer.row, ws)
	}
	if s.Forest != nil {
		ws.blends.forests = s.Members.mix(features[len(features)-c:], s.Tuned, ws.blends.leaves, ws.rawInput(ws.answer.row, p.Dim()), ws.blends.forests)
	}
	if len(rest) == 0 {
		return
	}
	for k := range c {
		rest[k] = max(f.ratio[k], floorChained)
	}
	for j := range RecentMemories {
		row, n := f.recent[j*c:(j+1)*c], 0.0
		for _, v := range row {
			n += v
		}
		for k, v := range row {
			rest[(j+1)*c+k] = math.Log((v + recentPrior*f.pi[k]) / ((n + recentPrior) * f.pi[k]))
		}
	}
}

// featureExperts is the number of experts that use the features: the horizons, the
// regression and, if there is one, the forest.
func (p *Posterior) featureExperts() int {
	if p.Pool.Stack.Forest == nil {
		return len(p.Bank) + 1
	}
	return len(p.Bank) + 2
}

// featureExpertsTo stores log e_jk of these for input i in dst. perHorizon are the
// answers of the horizons, H×C over the latent functions.
func (p *Posterior) featureExpertsTo(dst, perHorizon []float64, i int, ws *Workspace) {
	s, c, horizons, latents := &p.Pool.Stack, len(p.Names), len(p.Bank), len(p.Latent)
	for h := range horizons {
		row := dst[h*c : (h+1)*c]
		for k := range row { // a class that was just declared has no latent function yet
			row[k] = math.Log(floorExpert)
		}
		for at, k := range p.Latent {
			row[k] = math.Log(max(perHorizon[h*latents+at], floorExpert))
		}
	}
	linear, forest := dst[horizons*c:(horizons+1)*c], dst[(horizons+1)*c:]
	if clear(linear); len(s.Linear.W) > 0 {
		d := s.Linear.D
		s.Linear.LogsTo(linear, ws.known[i*d:(i+1)*d])
		floor(linear)
	}
	if s.Forest != nil {
		raw := ws.rawInput(i, p.Dim())
		if s.Tuned == nil {
			s.Forest.LogsTo(forest, raw)
		} else { // its answer needs the leaves again
			trees := len(s.Forest.Used)
			ws.blends.leaves = slices.Grow(ws.blends.leaves[:0], trees)[:trees]
			s.Forest.LeavesTo(ws.blends.leaves, raw)
			s.Forest.LeafLogsTo(forest, ws.blends.leaves)
		}
		floor(forest)
	}
}

// floor bounds an expert's logarithms.
func floor(logs []float64) {
	for k, v := range logs {
		logs[k] = max(v, math.Log(floorExpert))
	}
}

// weigh computes the blend's answer from the first experts.
func (o *BlendOutput) weigh(blend *Blend, experts []float64) {
	c := len(o.Members)
	o.Experts = experts[:len(blend.Exponents)*c]
	o.Answer = grow(o.Answer, c)
	AnswerTo(o.Answer, blend.Exponents, o.Experts)
}

// AnswerTo stores the product of F experts in dst, C probabilities: exponents are F, and
// experts the F×C logarithms of the probabilities of each.
func AnswerTo(dst, exponents, experts []float64) {
	c := len(dst)
	clear(dst)
	for j, exponent := range exponents {
		for k, v := range experts[j*c : (j+1)*c] {
			dst[k] += float64(exponent * v)
		}
	}
	softmax(dst)
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

// logSoftmax replaces logits by logarithms of probabilities that sum to 1.
func logSoftmax(x []float64) {
	top, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	top += math.Log(sum)
	for k := range x {
		x[k] -= top
	}
}

// Ordered returns the output of Stack.Ordered in the last prediction; its Answer is
// empty if the order of the labels was unknown. Valid until the next call.
func (ws *Workspace) Ordered() BlendOutput {
	if len(ws.blends.output.Answer) == 0 || !ws.forecast.chained {
		return BlendOutput{}
	}
	return ws.blends.output
}

// Plain returns the output of Stack.Plain in the last prediction, of p, as if the
// order of the labels had been unknown. Valid until the next call.
func (ws *Workspace) Plain(p *Posterior) BlendOutput {
	out := &ws.blends
	if len(out.output.Answer) == 0 {
		return BlendOutput{}
	}
	if !ws.forecast.chained {
		return out.output
	}
	c := len(p.Names)
	out.plain.Members = grow(out.plain.Members, c)
	clear(out.plain.Members)
	for m, member := range Members {
		answer := ws.forecast.members[member.unordered()*c:][:c]
		for k, v := range answer {
			out.plain.Members[k] += p.Pool.Weights[m] * v
		}
	}
	out.plain.weigh(&p.Pool.Stack.Plain, out.experts)
	return out.plain
}

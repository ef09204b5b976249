package model

import (
	"math"
	"slices"
)

// MemberForest is the forest of a member of a fleet. It is not changed once a posterior
// has it.
type MemberForest struct {
	*Forest
	Weight float64 // of its answer, above 0
	Index  []int   // of its classes in Posterior.Names; −1: a class that does not count
}

// MemberForests are the forests of a fleet's members. Their mean with the own forest, by
// the weighted geometric mean of the answers, and the own forest are mixed likewise:
//
//	log q_k = Σ_m w_m·log p_mk + const,     log p_k = Share·log q_k + (1 − Share)·log p_own,k + const
//
// In the mean the own forest may be tuned: its leaves have the weights that the own labels have
// taught the mean. A member gives no answer about classes that it does not know. Among the others,
// K, it divides the probability that the own forest gives to them,
//
//	p_mk ← p_mk/Σ_{l∈K} p_ml · Σ_{l∈K} p_own,l for k ∈ K,     p_own,k otherwise
//
// Source: Liu & Yao (1999), "Ensemble learning via negative correlation", for members of an
// ensemble that learn by its error.
type MemberForests struct {
	Own   float64 // weight of the own forest in the mean
	All   []MemberForest
	Share float64 // of the mean in the answer, 0 to 1
}

// mix mixes the members' answers into logs, the logarithms of the own forest's answer. It
// returns ws: C logarithms of the mean's answer, C of the own forest's, C of that in the mean,
// C of scratch, and those of answersTo; without members none.
//
//	tuned   the own forest in the mean; nil: it is as in logs
//	leaves  of the own forest's trees, for tuned
//	x       D features, as RawTo stored them
func (f *MemberForests) mix(logs []float64, tuned *Forest, leaves []uint8, x []float32, ws []float64) []float64 {
	if f == nil {
		return ws[:0]
	}
	c := len(logs)
	ws = grow(ws, 4*c+f.answers())
	mean, own, inMean := ws[:c], ws[c:2*c], ws[2*c:3*c]
	copy(own, logs)
	copy(inMean, logs)
	if tuned != nil {
		tuned.LeafLogsTo(inMean, leaves)
	}
	f.answersTo(ws[4*c:], x)
	f.meanTo(mean, inMean, ws[3*c:4*c], ws[4*c:])
	floor(mean)
	for k, v := range own {
		logs[k] = v + float64(f.Share*(mean[k]-v))
	}
	logSoftmax(logs)
	floor(logs)
	return ws
}

// MeanTo replaces logs, the logarithms of the answer that the own forest has in the mean, by
// those of the mean. It returns ws, its scratch.
//
//	answers  of the members to x, see Workspace.MemberAnswers; nil: they are asked
//	x        D features, as RawTo stored them
func (f *MemberForests) MeanTo(logs, answers []float64, x []float32, ws []float64) []float64 {
	c := len(logs)
	if ws = grow(ws, 2*c+f.answers()); answers == nil {
		answers = ws[2*c:]
		f.answersTo(answers, x)
	}
	copy(ws, logs)
	f.meanTo(logs, ws[:c], ws[c:2*c], answers)
	return ws
}

// MemberAnswers returns the D features of the input of the last prediction, of p, as RawTo stored
// them, and the answers of p's members' forests, as MemberForests.MeanTo takes them; none
// without members. Valid until the next call.
func (ws *Workspace) MemberAnswers(p *Posterior) (x []float32, answers []float64) {
	c, f := len(p.Names), p.Pool.Stack.Members
	if f == nil || len(ws.blends.output.Answer) == 0 || len(ws.blends.forests) != 4*c+f.answers() {
		return nil, nil
	}
	return ws.rawInput(ws.answer.row, p.Dim()), ws.blends.forests[4*c:]
}

// meanTo stores the logarithms of the mean's answer.
//
//	own      C  logarithms of the own forest's answer
//	scratch  C
//	answers  of the members, as answersTo stores them
func (f *MemberForests) meanTo(mean, own, scratch, answers []float64) {
	for k, v := range own {
		mean[k] = float64(f.Own * v)
	}
	total := f.Own
	for i := range f.All {
		m := &f.All[i]
		total += m.Weight
		answer := answers[:m.Classes]
		answers = answers[m.Classes:]
		if m.knowsAll(len(mean)) { // the offset is the same for all classes
			for at, k := range m.Index {
				if k >= 0 {
					mean[k] += float64(m.Weight * answer[at])
				}
			}
			continue
		}
		offset := m.offset(answer, own)
		copy(scratch, own)
		for at, k := range m.Index {
			if k >= 0 {
				scratch[k] = answer[at] + offset
			}
		}
		for k, v := range scratch {
			mean[k] += float64(m.Weight * v)
		}
	}
	for k := range mean {
		mean[k] /= total
	}
	logSoftmax(mean)
}

// knowsAll reports whether the member knows all of c classes.
func (m *MemberForest) knowsAll(c int) bool {
	for _, k := range m.Index {
		if k >= 0 {
			c--
		}
	}
	return c == 0
}

// Knowing is the number of forests in the mean that know class k, the own one included.
func (f *MemberForests) Knowing(k int) int {
	n := 1
	for i := range f.All {
		if slices.Contains(f.All[i].Index, k) {
			n++
		}
	}
	return n
}

// answers is the number of logarithms that answersTo stores.
func (f *MemberForests) answers() (n int) {
	for i := range f.All {
		n += f.All[i].Classes
	}
	return n
}

// answersTo stores the logarithms of each member's answer over its classes in dst, without their
// common constant, which counts nowhere. They have no floor: those of tuned forests may be far
// apart, and it is their mean that answers.
//
//	x  D features, as RawTo stored them
func (f *MemberForests) answersTo(dst []float64, x []float32) {
	for i := range f.All {
		m := &f.All[i]
		m.logitsTo(dst[:m.Classes], x)
		dst = dst[m.Classes:]
	}
}

// offset is the logarithm of the own probability of the classes that the member knows,
// to its own probability of them.
func (m *MemberForest) offset(answer, own []float64) float64 {
	of, to := math.Inf(-1), math.Inf(-1) // the largest of each
	for i, k := range m.Index {
		if k >= 0 {
			of, to = max(of, own[k]), max(to, answer[i])
		}
	}
	var sumOf, sumTo float64
	for i, k := range m.Index {
		if k >= 0 {
			sumOf += math.Exp(own[k] - of)
			sumTo += math.Exp(answer[i] - to)
		}
	}
	return of - to + math.Log(sumOf/sumTo)
}

// ForestAnswers returns two answers to the input of the last prediction, of p, each the
// probabilities of C classes: that of the blend with the members' forests alone, and that with the
// own forest alone; nil without members. Valid until the next call.
func (ws *Workspace) ForestAnswers(p *Posterior) (members, own []float64) {
	out, c := &ws.blends.output, len(p.Names)
	if len(ws.blends.forests) < 2*c || len(out.Answer) == 0 {
		return nil, nil
	}
	at := len(p.Bank) + 1
	exponent, mixed := p.blend(ws).Exponents[at], out.Experts[at*c:(at+1)*c]
	ws.blends.alone = grow(ws.blends.alone, 2*c)
	for i, logs := range [...][]float64{ws.blends.forests[:c], ws.blends.forests[c : 2*c]} {
		answer := ws.blends.alone[i*c : (i+1)*c]
		for k, p := range out.Answer {
			answer[k] = math.Log(max(p, floorProb)) + float64(exponent*(logs[k]-mixed[k]))
		}
		softmax(answer)
	}
	return ws.blends.alone[:c], ws.blends.alone[c:]
}

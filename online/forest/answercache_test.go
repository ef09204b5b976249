package forest

import (
	"math"
	"slices"
	"testing"

	"edge/model"
)

// Answers of members' forests are found by the features of their sample, once and in order,
// and never for other features or other forests.
func TestAnswerCache(t *testing.T) {
	nan := float32(math.NaN())
	one, two := member(21), member(22)
	all := func(forests ...*model.Forest) *model.MemberForests {
		m := &model.MemberForests{Own: 1}
		for _, f := range forests {
			m.All = append(m.All, model.MemberForest{Forest: f, Weight: 1})
		}
		return m
	}
	begin := func() answerCache {
		return answerCache{of: []*model.Forest{one, two}, rows: []float32{1, 2, 1, nan, 1, 2}, answers: []float64{10, 11, 20, 21, 30, 31}, n: 3}
	}
	for name, c := range map[string]struct {
		members *model.MemberForests
		rows    [][]float32
		want    [][]float64
	}{
		"in order":              {all(one, two), [][]float32{{1, 2}, {1, nan}, {1, 2}, {1, 2}}, [][]float64{{10, 11}, {20, 21}, {30, 31}, nil}},
		"one is not learnt":     {all(one, two), [][]float32{{1, nan}, {1, 2}}, [][]float64{{20, 21}, {30, 31}}},
		"one was not judged":    {all(one, two), [][]float32{{7, 7}, {1, 2}}, [][]float64{nil, {10, 11}}},
		"one forest is new":     {all(one, member(21)), [][]float32{{1, 2}}, [][]float64{nil}},
		"one member has left":   {all(one), [][]float32{{1, 2}}, [][]float64{nil}},
		"the members have left": {nil, [][]float32{{1, 2}}, [][]float64{nil}},
		"the order has changed": {all(two, one), [][]float32{{1, 2}}, [][]float64{nil}},
		"zero has another sign": {all(one, two), [][]float32{{float32(math.Copysign(0, -1)), 2}}, [][]float64{nil}},
		"no member answers":     {all(), [][]float32{{1, 2}}, [][]float64{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin()
			for i, row := range c.rows {
				if got := h.find(row, c.members); !slices.Equal(got, c.want[i]) {
					t.Errorf("sample %d, %v: %v, want %v", i, row, got, c.want[i])
				}
			}
			h.forget()
			if got := h.find([]float32{1, 2}, all(one, two)); got != nil {
				t.Errorf("after Learn: %v", got)
			}
		})
	}
}

// A step by answers that were kept is that of one that asks the forests again.
func TestTuneByKeptAnswers(t *testing.T) {
	s := Sizes{Trees: 4, Leaves: 8, Stored: 60}
	a, b := tunedLearner(s), tunedLearner(s)
	raw, leaves := make([]float32, 5), make([]uint8, 4)
	model.RawTo(raw, []float64{0.3, -0.7, math.NaN(), 1, 7})
	a.forest.LeavesTo(leaves, raw)
	var answers []float64
	for _, m := range a.members.All {
		logs := make([]float64, m.Classes)
		m.LogsTo(logs, raw)
		answers = append(answers, logs...)
	}
	asked := make([]float64, 3)
	copy(asked, []float64{-1, -2, -0.7})
	by := slices.Clone(asked)
	a.members.MeanTo(asked, nil, raw, nil)
	a.members.MeanTo(by, answers, raw, nil)
	for k, v := range by {
		if math.Abs(v-asked[k]) > 1e-12 { // LogsTo has a constant beside them
			t.Errorf("class %d: the mean is %v by the answers, %v by the forests", k, v, asked[k])
		}
	}
	a.tune(raw, leaves, 1, 1)
	b.tuneBy(answers, raw, leaves, 1, 1)
	for i, v := range a.tuned.forest.Weights {
		if w := b.tuned.forest.Weights[i]; math.Abs(float64(v-w)) > 1e-6 {
			t.Fatalf("weight %d: %v by the answers, %v by the forests", i, w, v)
		}
	}
}

package web

import (
	"context"
	"slices"
	"time"

	"edge/internal/report"
	"edge/internal/timing"
	"edge/online/score"
)

const traceInterval = time.Second // between two looks at the scores

// traceAll adds to the course of each model's scores whenever a status is new, until ctx
// ends.
func (m *Monitor) traceAll(ctx context.Context) {
	for {
		for _, served := range m.deployment().Models {
			m.trace(served.Name, &served.Loop.Status().Scores)
		}
		if timing.Sleep(ctx, traceInterval) != nil {
			return
		}
		select {
		case <-m.scored:
		case <-ctx.Done():
			return
		}
	}
}

// trace adds a point to the course of a model's scores if they have changed. A reset and a
// rollback remove the points after the state that they restore.
func (m *Monitor) trace(model string, s *score.Scores) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[model]
	r.course = slices.DeleteFunc(r.course, func(p report.CoursePoint) bool { return p.N > s.N })
	if len(r.course) == 0 {
		r.skip = 1
	}
	if s.N == 0 || len(r.course) > 0 && r.course[len(r.course)-1].N == s.N {
		return
	}
	if r.skipped++; r.skipped < r.skip {
		return
	}
	r.skipped = 0
	r.course = append(r.course, report.CoursePoint{
		N: s.N, Error: s.Error, LogLoss: s.NLL, WindowError: s.Window.Error, WindowLogLoss: s.Window.NLL, Time: time.Now().Round(time.Millisecond),
	})
	if len(r.course) < report.CoursePoints {
		return
	}
	for i := range report.CoursePoints / 2 {
		r.course[i] = r.course[2*i+1]
	}
	r.course, r.skip = r.course[:report.CoursePoints/2], 2*r.skip
}

package eval

import "edge/internal/dataset"

// swappedRows makes an abrupt drift: after every period rows the features swap
// their columns, and after as many rows they return to their own.
type swappedRows struct {
	rows   dataset.Rows
	period int       // 0: never
	x      []float64 // scratch
	n      int       // rows so far
}

func (s *swappedRows) Next(row *dataset.Row) error {
	if err := s.rows.Next(row); err != nil || s.period == 0 {
		return err
	}
	s.x = append(s.x[:0], row.X...)
	shift := s.n / s.period % 2 * (len(s.x) + 1) / 2
	s.n++
	for i := range row.X {
		row.X[i] = s.x[(i+shift)%len(s.x)]
	}
	return nil
}

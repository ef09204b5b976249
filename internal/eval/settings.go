package eval

import (
	"strings"

	"edge/internal/config"
	"edge/internal/report"
	"edge/online"
	"edge/stream/field"
)

// settings lists the keys of a model's configuration for a report.
func settings(cfg online.Config) (all []report.Setting) {
	c, m := config.Default(), config.DefaultModel()
	m.Learner = cfg
	c.Models = map[string]config.Model{"m": m}
	flat := c.Settings()
	for _, key := range field.Names(flat) {
		if name, ok := strings.CutPrefix(key, "models.m."); ok {
			all = append(all, report.Setting{Key: name, Value: flat[key]})
		}
	}
	return all
}

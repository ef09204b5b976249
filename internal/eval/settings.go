package eval

import (
	"maps"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/internal/report"
	"edge/online"
)

// settings lists the keys of a model's configuration for a report.
func settings(cfg online.Config) (all []report.Setting) {
	c, m := config.Default(), config.DefaultModel()
	m.Learner = cfg
	c.Models = map[string]config.Model{"m": m}
	flat := c.Settings()
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		if name, ok := strings.CutPrefix(key, "models.m."); ok {
			all = append(all, report.Setting{Key: name, Value: flat[key]})
		}
	}
	return all
}

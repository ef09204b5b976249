package feature

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"edge/stream/field"
)

// feature is a row of the table: a name, its group, the parts of the window that must be
// there, and the value.
type feature struct {
	name, group string
	needs       part
	value       func(w *window) float64
}

// table has all features, in the order in which a group lists them.
var table = []feature{
	{"mean", "default", 0, func(w *window) float64 { return w.mean }},
	{"log_sd", "default", deviations, func(w *window) float64 { return math.Log10(w.sd + w.floor) }},
	{"min", "default", 0, func(w *window) float64 { return w.low }},
	{"max", "default", 0, func(w *window) float64 { return w.high }},
	{"slope", "default", deviations, (*window).slope},
	{"acf1", "default", products, func(w *window) float64 { return w.perVariance(w.product[0]) }},
	{"acf2", "default", products, func(w *window) float64 { return w.perVariance(w.product[1]) }},
	{"acf4", "default", products, func(w *window) float64 { return w.perVariance(w.product[2]) }},
	{"acf8", "default", products, func(w *window) float64 { return w.perVariance(w.product[3]) }},

	{"skew", "shape", powers, (*window).skew},
	{"log_kurtosis", "shape", powers, (*window).logKurtosis},
	{"crest", "shape", deviations, (*window).crest},

	{"sd", "level", deviations, func(w *window) float64 { return w.sd }},
	{"rms", "level", 0, (*window).rms},
	{"range", "level", 0, func(w *window) float64 { return w.high - w.low }},
	{"last", "level", 0, func(w *window) float64 { return w.a[len(w.a)-1] }},
	{"median", "level", ordered, func(w *window) float64 { return w.quantile(50) }},
	{"q10", "level", ordered, func(w *window) float64 { return w.quantile(10) }},
	{"q25", "level", ordered, func(w *window) float64 { return w.quantile(25) }},
	{"q75", "level", ordered, func(w *window) float64 { return w.quantile(75) }},
	{"q90", "level", ordered, func(w *window) float64 { return w.quantile(90) }},

	{"mcr", "time", deviations, (*window).crossings},
	{"mobility", "time", deviations | differences, (*window).mobility},
	{"mad1", "time", differences, (*window).meanStep},

	{"peak", "spectrum", spectra, func(w *window) float64 { return w.spectrum.peak() }},
	{"centroid", "spectrum", spectra, func(w *window) float64 { return w.spectrum.centroid() }},
	{"entropy", "spectrum", spectra, func(w *window) float64 { return w.spectrum.entropy() }},

	{"band1", "bands", spectra, func(w *window) float64 { return w.spectrum.band(64, 32) }},
	{"band2", "bands", spectra, func(w *window) float64 { return w.spectrum.band(32, 16) }},
	{"band3", "bands", spectra, func(w *window) float64 { return w.spectrum.band(16, 8) }},
	{"band4", "bands", spectra, func(w *window) float64 { return w.spectrum.band(8, 4) }},
	{"band5", "bands", spectra, func(w *window) float64 { return w.spectrum.band(4, 2) }},
}

// unknown is the error of a name that is neither a feature nor a group.
func unknown(name string) error {
	var names, groups []string
	for _, f := range table {
		names = append(names, f.name)
		if !slices.Contains(groups, f.group) {
			groups = append(groups, f.group)
		}
	}
	hint := ""
	if near := field.Nearest(name, slices.Concat(groups, names)); near != "" {
		hint = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Errorf("unknown feature %q: %sthe groups are %s; the features are %s",
		name, hint, strings.Join(groups, ", "), strings.Join(names, ", "))
}

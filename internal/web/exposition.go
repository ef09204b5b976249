package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// metric is a metric family.
type metric struct {
	name, help string
	kind       string   // counter, gauge or histogram
	labels     []string // their names
	read       reader
}

// expositionType is the type of a page of metrics in the text format of Prometheus. The
// client library would add thirty packages and 2 MB.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// values are the values of one family.
type values struct {
	*metric
	lines []byte
}

// add adds a value, with the values of its labels. It is not inlined, which would take more
// room at each of its many places.
//
//go:noinline
func (v *values) add(value float64, labels ...string) { v.line("", value, labels, "") }

// addHistogram adds the buckets, sum and count of h.
func (v *values) addHistogram(h *histogram, labels ...string) {
	var n uint64
	for i, bound := range append(slices.Clone(h.bounds), math.Inf(1)) {
		n += h.counts[i]
		v.line("_bucket", float64(n), labels, metricValue(bound))
	}
	v.line("_sum", h.sum, labels, "")
	v.line("_count", float64(n), labels, "")
}

// line adds a line; le is the upper bound of a bucket, or "".
func (v *values) line(suffix string, value float64, labels []string, le string) {
	if len(labels) != len(v.labels) {
		panic(fmt.Sprintf("%s has the labels %v, not %v", v.name, v.labels, labels))
	}
	var pairs []string
	for i, label := range labels {
		pairs = append(pairs, v.labels[i]+`="`+escapeLabel.Replace(label)+`"`)
	}
	if le != "" {
		pairs = append(pairs, `le="`+le+`"`)
	}
	set := ""
	if len(pairs) > 0 {
		set = "{" + strings.Join(pairs, ",") + "}"
	}
	v.lines = fmt.Appendf(v.lines, "%s%s%s %s\n", v.name, suffix, set, metricValue(value))
}

// appendTo appends the family, after its help; nothing without a value.
func (v *values) appendTo(page []byte) []byte {
	if len(v.lines) == 0 {
		return page
	}
	return fmt.Appendf(page, "# HELP %s %s\n# TYPE %s %s\n%s", v.name, escapeHelp.Replace(v.help), v.name, v.kind, v.lines)
}

// metricValue writes a value in the format of Prometheus, with +Inf, -Inf and NaN.
func metricValue(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// histogram counts observations in buckets. The caller locks it.
type histogram struct {
	bounds []float64 // upper bounds, rising; a last bucket without bound follows
	counts []uint64
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(h.bounds, v) // a bucket includes its upper bound
	h.counts[i]++
	h.sum += v
}

// clone returns a copy of h.
func (h *histogram) clone() *histogram {
	return &histogram{bounds: h.bounds, counts: slices.Clone(h.counts), sum: h.sum}
}

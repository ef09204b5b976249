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

// exposition is a page of metrics in the text format of Prometheus, version 0.0.4.
// The client library would add thirty packages and 2 MB.
type exposition struct {
	families []*metric
	lines    map[*metric][]byte
}

const expositionType = "text/plain; version=0.0.4; charset=utf-8"

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// send adds a value of m, with the values of its labels.
func (e *exposition) send(m *metric, value float64, labels ...string) {
	e.line(m, "", value, labels, "")
}

// sendHistogram adds the buckets, sum and count of h.
func (e *exposition) sendHistogram(m *metric, h *histogram, labels ...string) {
	var n uint64
	for i, bound := range append(slices.Clone(h.bounds), math.Inf(1)) {
		n += h.counts[i]
		e.line(m, "_bucket", float64(n), labels, metricValue(bound))
	}
	e.line(m, "_sum", h.sum, labels, "")
	e.line(m, "_count", float64(n), labels, "")
}

// line adds a line; le is the upper bound of a bucket, or "".
func (e *exposition) line(m *metric, suffix string, value float64, labels []string, le string) {
	if len(labels) != len(m.labels) {
		panic(fmt.Sprintf("%s has the labels %v, not %v", m.name, m.labels, labels))
	}
	var pairs []string
	for i, v := range labels {
		pairs = append(pairs, m.labels[i]+`="`+escapeLabel.Replace(v)+`"`)
	}
	if le != "" {
		pairs = append(pairs, `le="`+le+`"`)
	}
	set := ""
	if len(pairs) > 0 {
		set = "{" + strings.Join(pairs, ",") + "}"
	}
	e.lines[m] = fmt.Appendf(e.lines[m], "%s%s%s %s\n", m.name, suffix, set, metricValue(value))
}

// text returns the families that have a value, each after its help.
func (e *exposition) text() (page []byte) {
	for _, m := range e.families {
		if lines := e.lines[m]; len(lines) > 0 {
			page = fmt.Appendf(page, "# HELP %s %s\n# TYPE %s %s\n%s", m.name, escapeHelp.Replace(m.help), m.name, m.kind, lines)
		}
	}
	return page
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

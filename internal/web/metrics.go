package web

import (
	"strconv"
	"time"
	"unicode/utf8"

	"edge/model"
	"edge/online"
	"edge/online/score"
	"edge/persist"
	"edge/stream"
	"edge/stream/membership"
)

// collector reads the metrics of a daemon on request.
type collector struct {
	monitor  *Monitor
	families []*metric
}

// newCollector returns the collector of a daemon. Its families are published in
// the order of the tables that it joins.
func newCollector(m *Monitor) *collector {
	c := &collector{monitor: m}
	for _, table := range [][]metric{
		nodeMetrics(), learningMetrics(), scoreMetrics(), fleetMetrics(), storeMetrics(), monitorMetrics(), runtimeMetrics(), processMetrics(),
	} {
		for i := range table {
			c.families = append(c.families, &table[i])
		}
	}
	return c
}

// scrape is the state of a daemon that one answer to /metrics reports.
type scrape struct {
	monitor  *Monitor
	node     stream.Stats
	models   []modelScrape
	store    *persist.Stats // nil while it is unknown
	observed observations
	now      time.Time
}

// modelScrape is the state of one model in a scrape.
type modelScrape struct {
	*Model
	stats     stream.ModelStats
	status    *online.Status
	posterior *model.Posterior
	fleet     *membership.View // nil: it is in none
}

// collect reads the state of the daemon once, and returns the page of every family from that state.
func (c *collector) collect() (page []byte) {
	d := c.monitor.deployment()
	s := &scrape{monitor: c.monitor, node: d.Node.Stats(), observed: c.monitor.observations(), now: time.Now()}
	for _, m := range d.Models {
		one := modelScrape{Model: m, stats: s.node.Models[m.Name], status: m.Loop.Status(), posterior: m.Loop.Snapshot()}
		if v, ok := d.Node.Fleet(m.Name); ok {
			one.fleet = &v
		}
		s.models = append(s.models, one)
	}
	if st := c.monitor.storeFigures(); st != nil && st.err == nil {
		s.store = &st.Stats
	}
	for _, m := range c.families {
		v := values{metric: m}
		m.read(s, &v)
		page = v.appendTo(page)
	}
	return page
}

// reader reads the values of one family from a scrape.
type reader func(s *scrape, to *values)

// Kinds of metrics.
const (
	kindCounter   = "counter"
	kindGauge     = "gauge"
	kindHistogram = "histogram"
)

// labelled names the labels of a family.
func labelled(names ...string) []string { return names }

var byModel, byStream = labelled("model"), labelled("stream")

// The functions below that return a reader are not inlined: what they return would be in the
// program once for each family: 23 KB of code and 18 KB of tables on arm64.

// single reads a family of one value without labels.
//
//go:noinline
func single(value func(s *scrape) float64) reader {
	return func(s *scrape, to *values) { to.add(value(s)) }
}

// eachModel reads a family of one value for each model.
//
//go:noinline
func eachModel(value func(m *modelScrape) float64) reader {
	return func(s *scrape, to *values) {
		for i := range s.models {
			to.add(value(&s.models[i]), s.models[i].Name)
		}
	}
}

// eachModelTo reads a family of any number of values for each model.
//
//go:noinline
func eachModelTo(read func(m *modelScrape, to *values)) reader {
	return func(s *scrape, to *values) {
		for i := range s.models {
			read(&s.models[i], to)
		}
	}
}

// eachScore reads a score of each model that has judged a sample.
//
//go:noinline
func eachScore(read func(sc *score.Scores) float64) reader {
	return eachScoreTo(func(sc *score.Scores, model string, to *values) { to.add(read(sc), model) })
}

// eachScoreTo reads any number of scores of each model that has judged a sample.
//
//go:noinline
func eachScoreTo(read func(sc *score.Scores, model string, to *values)) reader {
	return eachModelTo(func(m *modelScrape, to *values) {
		if sc := &m.status.Scores; sc.N > 0 {
			read(sc, m.Name, to)
		}
	})
}

// ofStore reads a figure of the state file, once it is known.
//
//go:noinline
func ofStore(figure func(st *persist.Stats) int64) reader {
	return func(s *scrape, to *values) {
		if s.store != nil {
			to.add(float64(figure(s.store)))
		}
	}
}

// oneIf returns 1 for true and 0 for false, as metrics write conditions.
func oneIf(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// metricLabel returns a class as the value of a metric's label, which must be valid
// UTF-8.
func metricLabel(class string) string {
	if utf8.ValidString(class) {
		return class
	}
	return strconv.QuoteToASCII(class)
}

// stamp returns t in seconds since 1970, the unit of times in Prometheus.
func stamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

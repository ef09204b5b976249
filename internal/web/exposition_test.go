package web

import (
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The text is that of the reference library, byte for byte.
func TestExposition(t *testing.T) {
	const help = "A \\ backslash\nand \"quotes\"."
	bounds := []float64{0.001, 0.5, 2}
	gauge := &metric{"g", help, "gauge", []string{"a", "b"}, nil}
	counter := &metric{"n_total", "Many.", "counter", nil, nil}
	times := &metric{"t_seconds", "Times.", "histogram", []string{"of"}, nil}
	unused := &metric{"unused", "Nothing.", "gauge", nil, nil}
	gauges, counters, histograms := values{metric: gauge}, values{metric: counter}, values{metric: times}

	registry := prometheus.NewRegistry()
	wantGauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: gauge.name, Help: help}, gauge.labels)
	wantCounter := prometheus.NewCounter(prometheus.CounterOpts{Name: counter.name, Help: counter.help})
	wantTimes := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: times.name, Help: times.help, Buckets: bounds}, times.labels)
	registry.MustRegister(wantGauge, wantCounter, wantTimes)

	for _, c := range []struct {
		value float64
		a, b  string
	}{
		{-1.5e-9, "", `"`}, {math.Inf(1), "line\nbreak", `back\slash`}, {math.Inf(-1), "x", "größer"}, {math.NaN(), "y", ","}, {1 << 40, "z", "{}="},
	} {
		gauges.add(c.value, c.a, c.b)
		wantGauge.WithLabelValues(c.a, c.b).Set(c.value)
	}
	counters.add(12345678)
	wantCounter.Add(12345678)
	h := newHistogram(bounds)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v := range append(bounds, 0, 3, math.Inf(1)) { // buckets include their bounds
		h.observe(v)
		wantTimes.WithLabelValues("w").Observe(v)
	}
	histograms.addHistogram(h, "w")
	h = newHistogram(bounds)
	for range 1000 {
		v := math.Exp(4*rng.NormFloat64() - 2)
		h.observe(v)
		wantTimes.WithLabelValues("x").Observe(v)
	}
	histograms.addHistogram(h, "x")

	var page []byte
	for _, v := range []values{gauges, counters, histograms, {metric: unused}} {
		page = v.appendTo(page)
	}
	got := string(page)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for i, want := range strings.Split(answer.Body.String(), "\n") {
		if line := strings.Split(got+strings.Repeat("\n", i), "\n")[i]; line != want && !strings.HasPrefix(want, "g{") {
			t.Errorf("line %d is %q, want %q", i+1, line, want)
		} else if strings.HasPrefix(want, "g{") && !strings.Contains(got, "\n"+want+"\n") { // in any order
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if have, want := strings.Count(got, "\n"), strings.Count(answer.Body.String(), "\n"); have != want {
		t.Errorf("%d lines, want %d:\n%s", have, want, got)
	}
}

// A value with the wrong labels is an error of the program.
func TestExpositionLabels(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a missing label is accepted")
		}
	}()
	(&values{metric: &metric{"m", "", "gauge", []string{"a"}, nil}}).add(1)
}

package web

import (
	"fmt"
	"math"
	"testing"
	"time"

	"edge/stream"
)

// predictionOf returns a prediction of one class, or without a class.
func predictionOf(class string) *stream.Prediction {
	if class == "" {
		return &stream.Prediction{Class: -1}
	}
	return &stream.Prediction{Classes: []string{class}, Probs: []float64{0.75}}
}

// A device that reports changes only keeps its class until the next report.
func TestTimelines(t *testing.T) {
	begin := time.Now()
	var p timelines
	add := func(device, class string, after time.Duration) {
		p.add(device, class, predictionOf(class), begin.Add(after))
	}
	add("washer", "idle", 0)
	add("washer", "washing", 600*time.Second)
	add("dryer", "idle", 610*time.Second)
	v := p.view(begin.Add(900 * time.Second))
	if len(v.Devices) != 2 || v.Devices[0].Device != "dryer" || v.Others != 0 {
		t.Fatalf("the devices are %+v, want the most recent first", v)
	}
	washer := v.Devices[1]
	if washer.Class != "washing" || washer.Confidence != 0.75 || washer.Since.Sub(v.From).Round(time.Second) != 600*time.Second {
		t.Errorf("the washer is %+v", washer)
	}
	if len(washer.Timeline) != 2 || washer.Timeline[0].Shares["idle"] != 1 || washer.Timeline[1].Shares["washing"] != 1 {
		t.Fatalf("its timeline is %+v, want idle, washing", washer.Timeline)
	}
	if off := washer.Timeline[1].Time.Sub(washer.Since).Abs(); off > p.width {
		t.Errorf("its second band begins %v off", off)
	}

	// Two days later only the last class before the timeline is left.
	v = p.view(begin.Add(48 * time.Hour))
	if got := v.Devices[1].Timeline; len(got) != 1 || got[0].Shares["washing"] != 1 || !got[0].Time.Equal(v.From) {
		t.Errorf("after two days of silence the timeline is %+v from %v", got, v.From)
	}

	// Where classes follow each other quickly, a band has the share of each.
	for i := range 1000 {
		add("dryer", fmt.Sprintf("c%d", i%2), 49*time.Hour)
	}
	v = p.view(begin.Add(49 * time.Hour))
	if got := v.Devices[0].Timeline; got[len(got)-1].Shares["c0"] != 0.5 || got[len(got)-1].Shares["c1"] != 0.5 {
		t.Errorf("the last band is %+v, want half and half", got[len(got)-1])
	}
}

// The kept and shown devices, classes and bands are bounded. The shares of a band are
// of all its samples.
func TestTimelinesIsBounded(t *testing.T) {
	begin := time.Now()
	var p timelines
	at := begin
	for i := range 20_000 {
		at = at.Add(time.Duration(i%7) * 10 * time.Second) // nine days
		class := fmt.Sprintf("c%d", i*7%600)
		p.add(fmt.Sprintf("d%d", i*7919%300), class, predictionOf(class), at)
	}
	v := p.view(at)
	if len(v.Devices) != shownDevices || len(p.devices) != keptDevices || v.Others != keptDevices-shownDevices || !v.AtLeast {
		t.Errorf("%d devices are shown of %d, others: %d, at least: %v", len(v.Devices), len(p.devices), v.Others, v.AtLeast)
	}
	if len(p.names) != maxNames+1 {
		t.Errorf("%d classes are distinguished, want %d", len(p.names)-1, maxNames)
	}
	if p.width > longestBand {
		t.Errorf("a band is %v long", p.width)
	}
	for _, d := range p.devices {
		if len(d.bands) > maxBands+1 {
			t.Fatalf("%s has %d bands", d.name, len(d.bands))
		}
	}
	for _, d := range v.Devices {
		for i, b := range d.Timeline {
			sum := 0.
			for _, share := range b.Shares {
				sum += share
			}
			if math.Abs(sum-1) > 0.01 || b.Time.Before(v.From) || i > 0 && !b.Time.After(d.Timeline[i-1].Time) {
				t.Fatalf("%s: band %d is %+v after %+v", d.Device, i, b, d.Timeline[max(i-1, 0)])
			}
		}
	}
}

// Before the first class is known the band has no class.
func TestTimelinesWithoutClass(t *testing.T) {
	var p timelines
	now := time.Now()
	if v := p.view(now); v.Devices == nil || len(v.Devices) != 0 {
		t.Errorf("before the first sample: %+v", v)
	}
	p.add("", "", predictionOf(""), now)
	v := p.view(now.Add(time.Minute))
	if d := v.Devices[0]; d.Class != "" || d.Confidence != 0 || len(d.Timeline) != 1 || d.Timeline[0].Shares[""] != 1 {
		t.Errorf("without a class: %+v", d)
	}
}

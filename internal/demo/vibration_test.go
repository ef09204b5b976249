package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"edge/internal/report"
)

// The states of the simulated machine differ as they do in machines: imbalance shakes more,
// impacts of a worn
// bearing make the course rough. A seed gives the same messages.
func TestVibration(t *testing.T) {
	d, of := &Config{Seed: 3}, &sensors{labels: 0.5}
	s, again := newSensor(d, of), newSensor(d, of)
	sd, rough := map[string][]float64{}, map[string][]float64{}
	labels := map[string]int{}
	for i := range 3000 {
		m := s.burst(float64(i) * messageRows / vibrationRate)
		if other := again.burst(float64(i) * messageRows / vibrationRate); !reflect.DeepEqual(m, other) {
			t.Fatalf("message %d is %+v, and %+v with the same seed", i, m, other)
		}
		if len(m.X) != messageRows || len(m.Y) != messageRows || len(m.Z) != messageRows || math.Abs(stat.Mean(m.Z, nil)-1) > 1 {
			t.Fatalf("message %d is %+v", i, m)
		}
		labels[m.Label]++
		spread, steps := stat.PopStdDev(m.Y, nil), slices.Clone(m.Y[1:])
		floats.Sub(steps, m.Y[:messageRows-1])
		sd[s.machine.state] = append(sd[s.machine.state], spread)
		rough[s.machine.state] = append(rough[s.machine.state], stat.PopStdDev(steps, nil)/spread)
	}
	mean := func(of map[string][]float64, state string) float64 {
		return floats.Sum(of[state]) / float64(len(of[state]))
	}
	if off, ok, unbalanced := mean(sd, "off"), mean(sd, "ok"), mean(sd, "unbalanced"); !(off < 0.03 && ok > 5*off && unbalanced > 1.5*ok) {
		t.Errorf("the standard deviation is %.3f off, %.3f ok, %.3f unbalanced", off, ok, unbalanced)
	}
	if unbalanced, worn := mean(rough, "unbalanced"), mean(rough, "worn"); worn < 1.5*unbalanced {
		t.Errorf("the mean step over the standard deviation is %.2f unbalanced, %.2f worn", unbalanced, worn)
	}
	if without := labels[""]; len(labels) != len(states)+1 || without < 600 || without > 2200 {
		t.Errorf("labels %v, want each state, and none for half of the messages", labels)
	}
}

// A rate at which the next message is due in centuries waits as well.
func TestPaceOfSlowRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := newSensor(&Config{Rate: 1e-9}, &sensors{})
		if err := s.pace(ctx, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first message leaves at once: %v", err)
		}
	})
}

// The default configuration makes one sample of two messages.
func TestVibrationStream(t *testing.T) {
	d := Config{Signals: true, Seed: 1}
	s, err := d.openSensors(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.config(site{sensors: s, broker: "mqtt://127.0.0.1:1", folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	in := c.Streams["vibration"]
	if names := in.FeatureNames(); len(names) != 30 || names[0] != "x.mean" || !in.Takes("sensors/vibration") || windowRows != 2*messageRows {
		t.Errorf("the stream has features %v", names)
	}
}

// The windows of all messages are learnt, and the summary has their scores.
func TestDemoOfSignals(t *testing.T) {
	var out, errOut bytes.Buffer
	d := Config{Signals: true, Seed: 1, messages: 200}
	if err := d.Run(t.Context(), &out, &errOut); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	if want := "6400 rows: 100 windows of 64 rows, of which "; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "(0 late, 0 gaps, ") {
		t.Errorf("it does not end with %q:\n%s", want, &out)
	}
	out.Reset()
	d.AsJSON, d.messages = true, 800
	if err := d.Run(t.Context(), &out, &errOut); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	var r report.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	if r.Dataset != "vibration" || r.Samples < 200 || r.Error > 0.3 || len(r.Classes) != len(states) {
		t.Errorf("the summary is %s", &out)
	}
}

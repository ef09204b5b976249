package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"edge/configs"
	"edge/internal/dataset"
	"edge/stream/codec"
	"edge/stream/field"
)

// The program prints edge.yaml.
func TestSample(t *testing.T) {
	path := filepath.Join("..", "..", "configs", "edge.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	comparePacked(t, path, text, configs.Sample)
}

// sample returns the sample.
func sample(t testing.TB) []byte {
	t.Helper()
	text, err := configs.Sample()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The sample is equal to the defaults, apart from keys without a default.
func TestSampleHoldsTheDefaults(t *testing.T) {
	got, err := Parse("edge.yaml", sample(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	s := codec.DefaultStream()
	s.Topics, s.TopicTemplate = []string{"factory/+/vibration"}, "factory/{device}/vibration"
	s.Features, s.Fields, s.Columns, s.LabelMap = []string{"rms", "kurtosis", "peak_hz"}, map[string]string{}, []string{}, map[string]string{}
	s.Raw.Values, s.Stage.Signals, s.Stage.Hold.On = map[string]codec.Value{}, []string{}, field.Words{}
	s.Entries.Where = map[string]field.Words{}
	s.Stage.Calendar, s.Stage.Window.Of = []string{}, []string{}
	want.Streams["vibration"] = s
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate = []string{"factory/+/vibration/label"}, "factory/{device}/vibration/label"
	l.Map, l.Ignore = map[string]string{}, field.Words{}
	want.Labels = []codec.Labels{l}
	m := DefaultModel()
	m.Streams, m.Features, m.Learner.Classes.Names = []string{"vibration"}, []string{}, []string{}
	want.Models["bearing"] = m
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("configs/edge.yaml (-default +sample):\n%s", diff)
	}
}

// Every key of the schema is in the sample, and has a description.
func TestSampleHasEveryKey(t *testing.T) {
	where, err := strictYAML("edge.yaml", sample(t), new(Config))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := configSchema(t)
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	var visit func(path string, s *jsonschema.Schema, described bool)
	visit = func(path string, s *jsonschema.Schema, described bool) {
		described = described || s.Description != ""
		if s.Properties != nil {
			for p := s.Properties.Oldest(); p != nil; p = p.Next() {
				inner := joinKey(path, p.Key)
				keys++
				if _, ok := where[inner]; !ok {
					t.Errorf("the sample has no key %s", inner)
				}
				visit(inner, p.Value, described)
			}
			return
		}
		switch {
		case path == "streams" || path == "models":
			names := map[string]string{"streams": "vibration", "models": "bearing"}
			visit(joinKey(path, names[path]), s.AdditionalProperties, described)
		case path == "labels":
			visit("labels[0]", s.Items, described)
		case !described:
			t.Errorf("%s has no comment, and nothing around it", path)
		}
	}
	visit("", schema, false)
	if keys < 60 {
		t.Errorf("the schema has %d keys only; was it read rightly?", keys)
	}
}

// The comment of inputs, which are empty in the sample, has every key of an input; that of
// values every key of a rule.
func TestSampleDescribesInputsAndValues(t *testing.T) {
	schema, err := configSchema(t)
	if err != nil {
		t.Fatal(err)
	}
	streams, _ := schema.Properties.Get("streams")
	for _, key := range []string{"inputs", "values"} {
		of, _ := streams.AdditionalProperties.Properties.Get(key)
		keys := of.AdditionalProperties.Properties
		if keys.Len() < 6 {
			t.Fatalf("%s: %d keys", key, keys.Len())
		}
		for p := keys.Oldest(); p != nil; p = p.Next() {
			if !regexp.MustCompile(`\b` + p.Key + `\b`).MatchString(of.Description) {
				t.Errorf("the sample's comment of %s lacks %s:\n%s", key, p.Key, of.Description)
			}
		}
	}
}

func TestSampleForDataFiles(t *testing.T) {
	text, err := SampleFor([]string{tableFile(t, "Room 1.csv", 20), tableFile(t, "gas.csv.gz", 20)}, new(dataset.Options), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("sample.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cfg, err := c.Learner("room-1")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x", "y"}; !reflect.DeepEqual(cfg.Features, want) {
		t.Errorf("features %q, want %q", cfg.Features, want)
	}
	if want := []string{"class0", "class1", "class2"}; !reflect.DeepEqual(cfg.Classes.Names, want) {
		t.Errorf("classes %q, want %q", cfg.Classes.Names, want)
	}
	if want := []string{"sensors/Room 1"}; !reflect.DeepEqual(c.Streams["room-1"].Topics, want) {
		t.Errorf("topics %q, want %q", c.Streams["room-1"].Topics, want)
	}
}

// tableFile writes a data file of n rows: two features and the class of the
// waveform problem.
func tableFile(t testing.TB, name string, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("x,y,label\n")
	w := dataset.NewWaveform(1)
	var row dataset.Row
	for range n {
		w.Next(&row)
		fmt.Fprintf(&b, "%v,%v,class%s\n", row.X[6], row.X[14], row.Label)
	}
	path := filepath.Join(t.TempDir(), name)
	data := []byte(b.String())
	if strings.HasSuffix(name, ".gz") {
		data = gzipped(t, data)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file in which labels alone are missing has no missing features.
func TestSampleForMissingLabels(t *testing.T) {
	for rows, want := range map[string]bool{"1,2,x\n3,4,\n": false, "1,2,x\n3,,y\n": true} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte("a,b,label\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := SampleFor([]string{path}, new(dataset.Options), nil, io.Discard)
		if err != nil || strings.Contains(string(text), "on_missing") != want {
			t.Errorf("%q: %v, want on_missing: %v\n%s", rows, err, want, text)
		}
	}
}

// TestSampleForNames checks files whose names YAML reads as another type of value.
func TestSampleForNames(t *testing.T) {
	for _, name := range []string{"007", "on", "null", "1e3", "true"} {
		path := filepath.Join(t.TempDir(), name+".csv")
		if err := os.WriteFile(path, []byte("a,label\n1,x\n2,y\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := SampleFor([]string{path}, new(dataset.Options), nil, io.Discard)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := Parse("sample.yaml", text, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The command in the sample has the flags that chose the columns, without which replay refuses the file.
func TestSampleNamesTheFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "room.csv")
	if err := os.WriteFile(path, []byte("when,x,state,y\nnoon,1,a,2\nnight,3,b,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var data dataset.Options
	data.Label, data.Ignore = "state", []string{"when", "y"}
	text, err := SampleFor([]string{path}, &data, nil, io.Discard)
	if want := "# Learns what this publishes: edge replay FILE --label state --ignore \"when,y\"\n"; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%v: %s", err, text)
	}
}

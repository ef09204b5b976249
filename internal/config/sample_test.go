package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"edge/configs"
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

package codec

import (
	"testing"
	"time"

	"edge/stream/signal"
)

// The meaning of a stream's features changes with what makes them, and not with how often
// or within which bounds they are made.
func TestMeaning(t *testing.T) {
	base := func() Stream {
		s := DefaultStream()
		s.Topics, s.Stage.Signals = []string{"a"}, []string{"x", "y"}
		s.Stage.Window.Length = signal.Span{Rows: 128}
		s.Raw.Values = map[string]Value{"x": {Unit: "W", Scale: 1}}
		return s
	}
	plain := DefaultStream()
	plain.Features = []string{"x"}
	if m := plain.Meaning(); m != "" {
		t.Errorf("a stream without signals has the meaning %q", m)
	}
	const want = "794f42de787e8fe7" // as it was first written: states depend on it
	if got := base().Meaning(); got != want {
		t.Errorf("meaning %s, want %s: every state of a stream with signals would need a reset", got, want)
	}
	for name, c := range map[string]struct {
		change func(*Stream)
		same   bool
	}{
		"topics":      {func(s *Stream) { s.Topics = []string{"b"} }, true},
		"hop":         {func(s *Stream) { s.Stage.Window.Hop = signal.Span{Rows: 7} }, true},
		"devices":     {func(s *Stream) { s.Stage.Window.Devices = 7 }, true},
		"label":       {func(s *Stream) { s.Stage.Window.Label = signal.LabelLast }, true},
		"zone":        {func(s *Stream) { s.Stage.TimeZone = "UTC" }, true}, // without a calendar
		"length":      {func(s *Stream) { s.Stage.Window.Length = signal.Span{Rows: 256} }, false},
		"time":        {func(s *Stream) { s.Stage.Window.Length = signal.Span{Time: 128} }, false},
		"signals":     {func(s *Stream) { s.Stage.Signals = []string{"y", "x"} }, false},
		"scale":       {func(s *Stream) { s.Raw.Values["x"] = Value{Unit: "W", Scale: 2} }, false},
		"map":         {func(s *Stream) { s.Raw.Values["y"] = Value{Map: map[string]float64{"on": 1}, Scale: 1} }, false},
		"one_hot":     {func(s *Stream) { s.Raw.Values["y"] = Value{OneHot: []string{"on"}, Scale: 1} }, false},
		"derive":      {func(s *Stream) { s.Stage.Derive = signal.Formulas{{Name: "p", Text: "x+y"}} }, false},
		"hold":        {func(s *Stream) { s.Stage.Hold.Every = time.Second }, false},
		"calendar":    {func(s *Stream) { s.Stage.Calendar = []string{"hour"} }, false},
		"features":    {func(s *Stream) { s.Stage.Window.Features.All = []string{"mean"} }, false},
		"features of": {func(s *Stream) { s.Stage.Window.Features.Of = map[string][]string{"x": {"mean"}} }, false},
		"floor":       {func(s *Stream) { s.Stage.Window.Floor = 1 }, false},
		"resample":    {func(s *Stream) { s.Stage.Window.Resample = 1 }, false},
	} {
		s := base()
		if c.change(&s); (s.Meaning() == want) != c.same {
			t.Errorf("%s: meaning %s, the same: want %v", name, s.Meaning(), c.same)
		}
	}
}

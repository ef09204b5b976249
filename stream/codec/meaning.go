package codec

import (
	"fmt"
	"hash/fnv"
	"strings"

	"edge/stream/field"
)

// Meaning identifies how the stream makes its features of signals, in 16 hexadecimal
// digits: signals, rules for their values, hold, derived signals, calendar, and what of
// the window makes its features. Streams of one Meaning have features that mean the same.
// "" for a stream without signals. It does not depend on how often samples are made, nor
// on bounds.
func (s Stream) Meaning() string {
	stage := s.StageConfig()
	if !stage.Set() {
		return ""
	}
	h := fnv.New64a()
	// Keys that are added later are written only where they are set, so that the meaning
	// of older configurations stays.
	part := func(key string, value any) { fmt.Fprintf(h, "%s %v\n", key, value) }
	part("signals", strings.Join(stage.Signals, ","))
	for _, from := range s.Sources() {
		for _, name := range field.Names(from.Raw.Values) {
			part("values."+name, from.Raw.Values[name].meaning())
		}
	}
	if stage.Hold.Set() {
		part("hold", stage.Hold.Every)
	}
	for _, f := range stage.Derive {
		part("derive."+f.Name, f.Text)
	}
	if len(stage.Calendar) > 0 {
		part("calendar", strings.Join(stage.Calendar, ",")+" "+stage.TimeZone)
	}
	if w := stage.Window; w.Length.Set() {
		part("window", fmt.Sprint(w.Length, " ", w.Resample, " ", w.Floor, " ", strings.Join(w.Of, ","), " ", strings.Join(w.Features.All, ",")))
		for _, name := range field.Names(w.Features.Of) {
			part("features."+name, strings.Join(w.Features.Of[name], ","))
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// meaning describes the numbers that the rule makes of values.
func (v Value) meaning() string {
	var words []string
	for _, word := range field.Names(v.Map) {
		words = append(words, fmt.Sprintf("%q=%v", word, v.Map[word]))
	}
	return fmt.Sprintf("%s %s %q %q %v %v", strings.Join(words, ","), v.Other, v.OneHot, v.Unit, v.Scale, v.Offset)
}

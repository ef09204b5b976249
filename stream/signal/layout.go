package signal

import (
	"fmt"
	"slices"
	"time"

	"edge/stream/field"
	"edge/stream/signal/feature"
	"edge/stream/signal/formula"
)

// maxCorrelated is the largest number of windowed signals that have correlations.
const maxCorrelated = 6

// layout is the order of a stage's numbers: from the V values of a row (signals,
// derived signals, calendar) to the D features of a sample.
type layout struct {
	signals  []string         // S
	values   []string         // V: signals, derived ones, calendar
	formulas *formula.Program // from signals to the other values; nil: none

	windowed   []int                // indices in values of the signals that have windows; nil: no window
	extractors []*feature.Extractor // of each of them
	pairs      [][2]int             // positions in windowed whose correlations are features
	held       []int                // indices in values that give their last value

	made []string // names of all that the stage can make: features, correlations, last values
	pick []int    // indices in made of the D features of a sample; nil: all of them
}

// Features returns the names of the features of the stage's samples: those of chosen, or
// all but the signals that are only used in derived ones.
func (c *Config) Features(chosen []string) ([]string, error) {
	l, err := newLayout(c, chosen)
	if err != nil {
		return nil, err
	}
	return l.features(), nil
}

func (l *layout) features() []string {
	if l.pick == nil {
		return l.made
	}
	names := make([]string, len(l.pick))
	for i, at := range l.pick {
		names[i] = l.made[at]
	}
	return names
}

// Zone returns the zone of the stream's times.
func (c *Config) Zone() (*time.Location, error) {
	if c.TimeZone == "" {
		return time.Local, nil
	}
	return zoneOf(c.TimeZone, time.LoadLocation)
}

func zoneOf(name string, load func(string) (*time.Location, error)) (*time.Location, error) {
	const one = "Europe/Berlin"
	zone, err := load(name)
	if err == nil {
		return zone, nil
	}
	want := "the name of a zone, such as " + one
	if _, err := load(one); err != nil {
		want = "a database of time zones on this system: install tzdata (OpenWrt: zoneinfo-core and that of the continent), or mount /usr/share/zoneinfo in the container"
	}
	return nil, field.Check(false, "time_zone", name, want)
}

func newLayout(c *Config, chosen []string) (*layout, error) {
	zone, err := c.Zone()
	if err != nil {
		return nil, err
	}
	l := &layout{signals: c.Signals, values: slices.Clone(c.Signals)}
	used := func(string) bool { return false }
	if len(c.Derive)+len(c.Calendar) > 0 {
		if l.formulas, err = formula.Compile(c.Derive, c.Signals, c.Calendar, zone); err != nil {
			return nil, err
		}
		l.values = append(l.values, l.formulas.Names()...)
		used = l.formulas.Uses
	}
	if c.Window.Length.Set() {
		if err := l.window(c, used); err != nil {
			return nil, err
		}
	}
	var unused []int // positions in made of features that are left out unless they are chosen
	for i, name := range l.values {
		if slices.Contains(l.windowed, i) {
			continue
		}
		if l.windowed != nil && i < len(l.signals)+len(c.Derive) && used(name) {
			unused = append(unused, len(l.made))
		}
		l.held = append(l.held, i)
		l.made = append(l.made, name)
	}
	return l, l.choose(chosen, unused)
}

// window sets the windowed signals and their features.
func (l *layout) window(c *Config, used func(string) bool) error {
	own := l.values[:len(l.signals)+len(c.Derive)] // without the calendar
	of := c.Window.Of
	if len(of) == 0 {
		for _, name := range own {
			if !used(name) {
				of = append(of, name)
			}
		}
	}
	for name := range c.Window.Features.Of {
		if !slices.Contains(of, name) {
			return field.Check(false, "window.features", name, "a signal that has windows")
		}
	}
	for _, name := range of {
		i := slices.Index(own, name)
		if i < 0 || slices.Contains(l.windowed, i) {
			return field.Check(false, "window.of", name, "names of signals or derived ones, each once")
		}
		l.windowed = append(l.windowed, i)
		names := c.Window.Features.All
		if one, ok := c.Window.Features.Of[name]; ok {
			names = one
		} else if names == nil {
			names = []string{"default"}
		}
		e, err := feature.New(names, c.Window.Floor)
		if err != nil {
			return fmt.Errorf("window.features: %w", err)
		}
		if l.extractors = append(l.extractors, e); len(l.extractors) > 1 {
			e.Share(l.extractors[0])
		}
		for _, f := range e.Names() {
			l.made = append(l.made, name+"."+f)
		}
	}
	if c.Window.Correlations && len(of) <= maxCorrelated {
		for i := range of {
			for j := i + 1; j < len(of); j++ {
				l.pairs = append(l.pairs, [2]int{i, j})
				l.made = append(l.made, "corr."+of[i]+"."+of[j])
			}
		}
	}
	return nil
}

// choose sets the features of a sample.
func (l *layout) choose(chosen []string, unused []int) error {
	if len(chosen) == 0 {
		if len(unused) > 0 {
			for i := range l.made {
				if !slices.Contains(unused, i) {
					l.pick = append(l.pick, i)
				}
			}
		}
		return nil
	}
	for _, name := range chosen {
		at := slices.Index(l.made, name)
		if at < 0 {
			return field.Check(false, "features", name, "one of those that the stream makes; edge check lists them")
		}
		l.pick = append(l.pick, at)
	}
	return nil
}

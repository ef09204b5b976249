package signal

import (
	"strings"
	"time"

	"edge/stream/field"
)

// unsettled begins the label of a row during which a state was changing. No label begins
// with it: it is no character.
const unsettled = "\x00"

// rowLabel is the label of a row or sample; the zero value: it has none.
type rowLabel struct {
	text   string
	sticky bool // it is a state
}

// run is a number of successive rows with one label.
type run struct {
	label string
	rows  int
}

func pushRun(runs []run, label string) []run {
	if n := len(runs); n > 0 && runs[n-1].label == label {
		runs[n-1].rows++
		return runs
	}
	return append(runs, run{label, 1})
}

// popRuns drops the first n rows.
func popRuns(runs []run, n int) []run {
	i := 0
	for ; n > 0 && i < len(runs); i++ {
		if runs[i].rows > n {
			runs[i].rows -= n
			break
		}
		n -= runs[i].rows
	}
	return append(runs[:0], runs[i:]...)
}

// windowLabel returns the label of the last n rows of a device's window.
func (s *Stage) windowLabel(d *device, n int) string {
	s.tally = s.tally[:0]
	left := n
	last := ""
	for i := len(d.window.runs) - 1; i >= 0 && left > 0; i-- {
		r := d.window.runs[i]
		r.rows = min(r.rows, left)
		left -= r.rows
		if i == len(d.window.runs)-1 {
			last = r.label
		}
		if r.label == "" {
			continue
		}
		if strings.HasPrefix(r.label, unsettled) {
			return s.mixed()
		}
		s.count(r)
	}
	switch {
	case len(s.tally) == 0:
		return ""
	case s.cfg.Window.Label == LabelLast:
		if last == "" {
			return s.mixed()
		}
		return last
	}
	most := s.tally[0] // of several, the latest
	for _, r := range s.tally[1:] {
		if r.rows > most.rows {
			most = r
		}
	}
	if s.cfg.Window.Label == LabelPure && (len(s.tally) > 1 || 10*most.rows < 9*n) || 2*most.rows <= n && s.cfg.Window.Label == LabelMajority {
		return s.mixed()
	}
	return most.label
}

// mixed counts a window whose labels give it none.
func (s *Stage) mixed() string {
	s.counts.Mixed.Add(1)
	return ""
}

// count adds a run to the rows of its label.
func (s *Stage) count(r run) {
	for i := range s.tally {
		if s.tally[i].label == r.label {
			s.tally[i].rows += r.rows
			return
		}
	}
	s.tally = append(s.tally, r)
}

// State configures labels that are a state: the latest counts until another comes.
type State struct {
	MaxAge time.Duration // after which it counts no more; 0: never
	Settle time.Duration // after a change, rows have no label, and no window with them
}

// states are the latest labels of the devices.
type states struct {
	State
	most int // devices
	of   map[string]*state
}

type state struct {
	label string
	since int64 // of the last change
	at    int64 // of the latest label
}

func newStates(config State, most int) states { return states{config, most, map[string]*state{}} }

// set sets the label of a device, or with "" of all devices that have none of their own.
func (s *states) set(device, label string, now int64, kept bool) {
	st := s.of[device]
	if st == nil {
		if len(s.of) > s.most {
			s.dropOldest()
		}
		st = &state{since: now}
		s.of[strings.Clone(device)] = st
	}
	if st.label != label || now < st.since { // or the clock was set back
		st.label, st.since = strings.Clone(label), now
	} else if kept {
		return
	}
	st.at = now
}

// names returns the devices with a label, sorted.
func (s *states) names() []string { return field.Names(s.of) }

// dropOldest drops the label that came longest ago, but not that of all devices.
func (s *states) dropOldest() {
	oldest := ""
	for _, name := range s.names() {
		if name != "" && (oldest == "" || s.of[name].at < s.of[oldest].at) {
			oldest = name
		}
	}
	delete(s.of, oldest)
}

// at returns the label of a row of a device at t.
func (s *states) at(device string, t int64) rowLabel {
	if len(s.of) == 0 {
		return rowLabel{}
	}
	st := s.of[device]
	if st == nil {
		st = s.of[""]
	}
	switch {
	case st == nil || st.label == "" || t < st.since || s.MaxAge > 0 && t-st.at > int64(s.MaxAge):
		return rowLabel{}
	case t-st.since < int64(s.Settle):
		return rowLabel{unsettled, true}
	}
	return rowLabel{st.label, true}
}

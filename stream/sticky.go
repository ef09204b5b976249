package stream

import (
	"fmt"
	"slices"
	"strings"

	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// teaching thins the samples whose label is a state.
type teaching struct {
	every  int64            // ns; 0: all are learnt
	latest map[string]int64 // time of the latest sample that was learnt, by device
	most   int              // devices, beyond which all are forgotten
}

// skips reports whether a sample is not learnt, and notes it otherwise.
func (t *teaching) skips(device string, at int64) bool {
	if t.every == 0 {
		return false
	}
	if latest, ok := t.latest[device]; ok && at >= latest && at-latest < t.every {
		return true
	}
	if _, known := t.latest[device]; !known && len(t.latest) >= t.most || t.latest == nil {
		t.latest = map[string]int64{}
	}
	t.latest[strings.Clone(device)] = at
	return false
}

// addSticky connects a source of labels that are a state to the stages of its models.
func (n *Node) addSticky(src *source, l codec.Labels) error {
	state := signal.State{MaxAge: l.MaxAge, Settle: l.Settle}
	for _, m := range src.models {
		for _, stream := range m.streams {
			st := stream.stage
			if st == nil || slices.Contains(src.states, st) {
				continue
			}
			if _, found := st.of.template.Arrange(src.template, make([]string, len(src.template.Names))); found > 0 && found < len(st.of.template.Names) {
				return fmt.Errorf("%s: the states are of some levels (%s) of the devices of stream %s, which are named by %s: name all of them in topic_template, or none", src.key, strings.Join(src.template.Names, ", "), stream.name, strings.Join(st.of.template.Names, ", "))
			}
			if st.sticky && (st.opts.State != state || st.teach.every != int64(l.Teach.Every)) {
				return fmt.Errorf("%s: stream %s has states with another max_age, settle or teach; one setting applies to all", src.key, stream.name)
			}
			st.sticky, st.opts.State, st.teach.every, st.teach.most = true, state, int64(l.Teach.Every), st.opts.Config.Window.Devices
			src.states = append(src.states, st)
		}
	}
	if len(src.states) == 0 && len(src.models) > 0 {
		return fmt.Errorf("%s: sticky labels are those of rows, and no stream of these models has signals: give it signals, or labels an id", src.key)
	}
	src.allowRetained = true
	src.handle = func(it *item, src *source) error { return n.worker.setState(it, src) }
	return nil
}

// setState sets the state on a topic in the stages of a source. A word that is refused ends the
// state before: rows after it are not of that state.
func (w *worker) setState(it *item, src *source) error {
	msg := it.msg
	word, named, found, err := src.decoder.State(msg.Payload)
	if !found {
		return err
	}
	captured := src.match(msg.Topic, named).levels
	errs := []error{err}
	for _, st := range src.states {
		device := "" // all of them
		if levels, named := src.levels(msg.Topic, captured, st.of); named == oneDevice {
			device = deviceName(levels)
		}
		if err := checkStageDevice(device); err != nil {
			errs = append(errs, err)
			continue
		}
		st.touch(it)
		w.predictSamples(it, st, st.SetState(device, word, signal.FromTime(msg.Arrived), msg.Retained, w.away() > 0))
	}
	return field.Join(errs...)
}

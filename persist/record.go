package persist

import (
	"encoding/binary"
	"fmt"
	"slices"

	"edge/online"
)

// appendRecord appends the payload of a record; its seq is its key, its model the bucket's name.
//
//	kind, dedupe key, label, X, optional Probs, extras
func appendRecord(dst []byte, ev *online.Event) []byte {
	dst = append(dst, byte(ev.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, ev.Key)
	dst = appendString(dst, ev.Label)
	dst = appendFloats(dst, ev.X)
	dst = appendOptionalFloats(dst, ev.Probs)
	return appendExtras(dst, extras{
		weight: ev.Weight, epoch: ev.Epoch, name: ev.Name, state: ev.State, meta: ev.Meta, parts: ev.Parts, known: ev.Known,
	})
}

// decodeRecord takes the payload of a record apart; nothing in the result aliases it.
func decodeRecord(payload []byte) (online.Event, error) {
	d := newDecoder(payload)
	ev := online.Event{Kind: online.Kind(d.Byte()), Key: d.Uint64()}
	ev.Label = d.String(maxLabel)
	ev.X = d.floats(d.Count(maxFeatures, 8, "number of elements"))
	ev.Probs = d.optionalFloats()
	e := d.extras(ofRecords)
	ev.Weight, ev.Epoch, ev.Name, ev.State, ev.Meta, ev.Parts, ev.Known = e.weight, e.epoch, e.name, e.state, e.meta, e.parts, e.known
	if err := d.End(); err != nil {
		return online.Event{}, fmt.Errorf("record: %w", err)
	}
	if err := checkEvent(&ev); err != nil {
		return online.Event{}, fmt.Errorf("record: %w", err)
	}
	return ev, nil
}

// checkEvent returns an error for an event that decodeRecord would not accept.
func checkEvent(ev *online.Event) error {
	switch {
	case ev.Kind < online.Observe || ev.Kind > online.Merge:
		return fmt.Errorf("kind %d: %w", ev.Kind, errEncoding)
	case len(ev.Label) > maxLabel || len(ev.Name) > maxLabel:
		return fmt.Errorf("label of %d bytes, at most %d: %w", max(len(ev.Label), len(ev.Name)), maxLabel, errTooLarge)
	case !(ev.Weight >= 0 && ev.Weight <= online.MaxWeight):
		return fmt.Errorf("weight %g, want 0 to %d: %w", ev.Weight, online.MaxWeight, errEncoding)
	case len(ev.State) > maxState:
		return fmt.Errorf("state of %d bytes, at most %d: %w", len(ev.State), maxState, errTooLarge)
	}
	return checkSample(ev.X, ev.Probs, ev.Parts, ev.Meta.Last)
}

func checkSample(x, probs []float64, parts []float32, last int) error {
	switch {
	case last < 0 || last > maxClasses:
		return fmt.Errorf("last label of class %d, want 0 to %d: %w", last, maxClasses, errEncoding)
	case len(parts) > maxParts || slices.ContainsFunc(parts, func(v float32) bool { return v-v != 0 }):
		return fmt.Errorf("%d parts of a prediction, want at most %d, all finite: %w", len(parts), maxParts, errEncoding)
	case len(x) > maxFeatures:
		return fmt.Errorf("%d features, at most %d: %w", len(x), maxFeatures, errTooLarge)
	case len(probs) > maxClasses:
		return fmt.Errorf("%d probabilities, at most %d: %w", len(probs), maxClasses, errTooLarge)
	}
	return nil
}

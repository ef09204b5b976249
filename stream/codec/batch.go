package codec

import (
	"cmp"
	"errors"

	"github.com/tidwall/gjson"
)

// batchOf returns the member of a payload that has its entries, or the payload, an array of objects or arrays. Where
// other keys are ignored, so is a member that is no array, as the number of a batch that is produced.
func (c jsonCodec) batchOf(root gjson.Result) (entries gjson.Result, ok bool) {
	switch {
	case root.IsArray():
		return root, root.Get("0").Type == gjson.JSON && (c.paths == nil || c.keyed != "")
	case !root.IsObject() || c.batchPath == "" && !c.members:
		return entries, false
	case c.batchPath == "":
		return root, true
	}
	entries = opened(at(root, c.batchPath))
	if c.members {
		return entries, entries.IsObject()
	}
	strict := c.signals == nil && c.paths == nil && len(c.names) > 0
	return entries, entries.Exists() && !c.reads(c.batchPath) && (strict || entries.IsArray())
}

// reads reports whether the key, the default of batch, belongs to the configured shape of the payload.
func (c jsonCodec) reads(key string) bool {
	if key != DefaultEntries().Batch {
		return false // it is configured
	}
	for _, path := range c.paths {
		if firstKey(path) == key {
			return true
		}
	}
	return c.id != "" && firstKey(c.id) == key || firstKey(c.time) == key || firstKey(c.label) == key
}

func (c jsonCodec) batch(root, entries gjson.Result, outer []gjson.Result) (readings []Reading, err *Refusal) {
	if !entries.IsArray() && !c.members {
		return nil, Refuse(Malformed, "%s is not an array", c.batchPath)
	}
	if c.paths == nil && len(c.names) > 0 && c.batchPath != "" && root.IsObject() {
		for key := range root.Keys() {
			if key.Str != firstKey(c.batchPath) && !c.marks.beside(key.Str) {
				return nil, Refuse(UnknownFeature, "key %.40q beside %s; list the features in fields to ignore other keys", key.Str, c.batchPath)
			}
		}
	}
	return c.entries(nil, entries, outer)
}

// entries appends the readings of the entries of an array; or of the members of an object, each an
// entry or an array of some.
func (c jsonCodec) entries(readings []Reading, list gjson.Result, outer []gjson.Result) (_ []Reading, err *Refusal) {
	n := 0
	for key, e := range list.All() {
		of, several := outer, false
		if list.IsObject() {
			if e.Type != gjson.JSON {
				continue
			}
			first := e.Get("0")
			of, several = c.marks.under(key, outer), e.IsArray() && first.Type == gjson.JSON
		}
		if several {
			readings, err = c.entries(readings, e, of)
		} else {
			readings, err = c.entry(readings, e, c.marks.find(e, of))
		}
		if err != nil {
			return nil, inEntry(err, key, n)
		}
		n++
	}
	if n == 0 {
		return nil, noEntries(list)
	}
	return readings, nil
}

// noEntries refuses an array, or an object, without entries.
func noEntries(v gjson.Result) *Refusal {
	if v.IsObject() {
		return Refuse(MissingFeature, "no member is an object or an array: it has %s", cmp.Or(keysOf(v), "none"))
	}
	return Refuse(Empty, "a batch without entries")
}

// inEntry puts the key of a member, or the index of an entry, before the cause of a refusal.
func inEntry(err *Refusal, key gjson.Result, entry int) *Refusal {
	if key.Type == gjson.String {
		return Refuse(err.Reason, "member %.40q: %w", key.Str, err.Err).of(err.Devices...)
	}
	return within(err, entry)
}

// batch decodes the entries of a batch. Time and label beside it are those of the entries
// that have none.
func (w *rows) batch(root, entries gjson.Result) *Refusal {
	var common Reading
	if err := w.identity(&common, root); err != nil {
		_ = w.entries(entries) // for their devices
		byDevice(w.list)
		for n := 0; len(w.list) > 0; w.list = w.list[n:] {
			n = SameDevice(w.list)
			if device := w.list[0].Device; device != "" {
				err.Devices = append(err.Devices, device)
			}
		}
		return err
	}
	if err := w.entries(entries); err != nil {
		return err
	}
	if err := w.spread(w.list, w.rate); err != nil {
		return err
	}
	for i := range w.list {
		if r := &w.list[i]; r.RawTime == "" {
			r.RawTime = common.RawTime
		}
		if r := &w.list[i]; r.Label == "" && !r.Null {
			r.Label, r.Null = common.Label, common.Null
		}
	}
	return nil
}

// entries decodes an array of objects and arrays, each one row or several, or the members of an object
// that are one or the other. One without a signal is left out where another has some.
func (w *rows) entries(v gjson.Result) *Refusal {
	var bare *Refusal // of the first entry without a signal
	n, from, outer := 0, len(w.list), w.found
	defer func() { w.found = outer }()
	for key, entry := range v.All() {
		arrays := func(v gjson.Result) *Refusal { return w.entry(v, w.rowOf) }
		if v.IsObject() {
			if entry.Type != gjson.JSON {
				continue
			}
			w.found, arrays = w.marks.under(key, outer), w.array
		}
		err, before := Refuse(Malformed, "want an object or an array, not %s", kind(entry)), len(w.list)
		switch {
		case entry.IsArray():
			err = arrays(entry)
		case entry.IsObject():
			err = w.entry(entry, w.object)
		}
		if err != nil && errors.Is(err.Err, errNoSignal) {
			w.list, bare, err = w.list[:before], cmp.Or(bare, inEntry(err, key, n)), nil
		}
		if err != nil {
			return inEntry(err, key, n)
		}
		n++
	}
	switch {
	case n == 0:
		return noEntries(v)
	case len(w.list) > from:
		return nil
	}
	return bare
}

// within puts the index of an entry before the cause of a refusal.
func within(err *Refusal, entry int) *Refusal {
	return Refuse(err.Reason, "entry %d: %w", entry, err.Err).of(err.Devices...)
}

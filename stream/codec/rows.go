package codec

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tidwall/gjson"
)

// signals describes the rows in the payloads of a stream, or of one of its inputs.
type signals struct {
	rules  []rule   // of each configured signal, in order
	names  []string // of the S numbers of a row
	absent []bool   // Reading.Absent where the payload has all of rules; nil: they are all of the stream's
	hold   bool     // a signal that is absent or missing is no error
	rate   Rate
}

// newSignals returns the rows of a stream. Those of an input, from, begin at index at of
// the stream's S numbers.
func newSignals(s, from Stream, at int) *signals {
	sig := &signals{names: s.SignalNames(), hold: s.Stage.Hold.Set(), rate: from.Raw.Rate}
	first := at
	for _, name := range from.Stage.Signals {
		v, ok := from.Raw.Values[name]
		if !ok {
			v = DefaultValue()
		}
		r := newRule(name, at, v)
		sig.rules = append(sig.rules, r)
		at += r.width()
	}
	if at-first < len(sig.names) {
		sig.absent = make([]bool, len(sig.names))
		for i := range sig.absent {
			sig.absent[i] = i < first || i >= at
		}
	}
	return sig
}

var errNoSignal = errors.New("no signal is in the payload")

// newX returns the numbers of k rows, all missing.
func (g *signals) newX(k int) []float64 {
	x := make([]float64, k*len(g.names))
	for i := range x {
		x[i] = math.NaN()
	}
	return x
}

// finish completes a row of which the payload had some signals, or refuses it: without
// hold by the stream's rule for missing values. keys lists those that the payload has
// instead, for an error.
func (s *schema) finish(r *Reading, x []float64, have []bool, keys func() string) *Refusal {
	n, values, missing := 0, 0, -1
	for i, ok := range have {
		if ok {
			n++
			if !s.signals.rules[i].isMissing(x) {
				values++
				continue
			}
		}
		if missing < 0 {
			missing = i
		}
	}
	switch {
	case n == 0:
		hint := ""
		if found := keys(); found != "" {
			hint = ": it has " + found + "; a path in fields finds a signal under another key"
		}
		return Refuse(MissingFeature, "%w%s", errNoSignal, hint)
	case s.signals.hold:
	case missing >= 0 && !s.lenient:
		where := ""
		if s.paths != nil && !have[missing] {
			where = " at " + s.paths[missing]
		}
		return Refuse(MissingFeature, "signal %.40q is missing%s; hold keeps last values, and on_missing: marginalise or impute predicts without", s.names[missing], where)
	case values == 0:
		return Refuse(MissingFeature, "no signal has a value")
	}
	r.X, r.Absent = x, s.signals.absent
	if n == len(have) {
		return nil
	}
	r.Absent = make([]bool, len(x))
	copy(r.Absent, s.signals.absent)
	for i, ok := range have {
		if rule := &s.signals.rules[i]; !ok {
			for j := range rule.width() {
				r.Absent[rule.at+j] = true
			}
		}
	}
	return nil
}

// rows reads payloads of JSON, and of CBOR, with rows of signals.
//
// A row is an object whose members are signals, or an array of all of them. Several rows
// are arrays of equal length in the object, one for each signal, where a signal with a
// single value has it in every row; an array of such arrays or objects, or the member
// batch, which is one; and, where there is one signal, an array of numbers.
type rows struct {
	jsonCodec
	list  []Reading
	rate  float64        // Hz; 0: none
	found []gjson.Result // marks of the entry
}

// rows decodes the rows of a payload.
func (c jsonCodec) rows(root gjson.Result) ([]Reading, *Refusal) {
	w := rows{jsonCodec: c}
	if err := w.setRate(root); err != nil {
		return nil, err
	}
	var err *Refusal
	switch entries, ok := c.batchOf(root); {
	case root.IsArray():
		if err = w.array(root); err != nil && errors.Is(err.Err, errNoSignal) {
			err = Refuse(err.Reason, "%w, and [KEY=WORD].KEY one in the record that has the word", err.Err).of(err.Devices...)
		}
	case ok:
		w.found = c.marks.find(root, nil)
		err = w.batch(root, entries)
	default:
		if err = w.entry(root, w.object); err != nil && errors.Is(err.Err, errNoSignal) {
			err = Refuse(err.Reason, "%w%s", err.Err, c.suchAs(root)).of(err.Devices...)
		}
	}
	if err == nil {
		err = w.spread(w.list, w.rate)
	}
	return w.list, err
}

// setRate reads the rate of the payload's rows.
func (w *rows) setRate(root gjson.Result) *Refusal {
	w.rate = w.signals.rate.Hz
	path := w.signals.rate.Path
	if path == "" || !root.IsObject() {
		return nil
	}
	v := at(root, path)
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	rate, err := number(v)
	if err != nil || !(rate > 0 && rate <= maxRate) {
		return Refuse(NotANumber, "the rate at %s is %s: want a number of Hz above 0, at most 1e9", path, kind(v))
	}
	w.rate = rate
	return nil
}

// maxBack bounds the time between the first and the last row of a payload.
const maxBack = 366 * 24 * time.Hour

// spread sets the distances of a device's rows to their common time, and brings the rows of each
// device together. Rows that have a time are left alone.
func (s *schema) spread(list []Reading, rate float64) *Refusal {
	byDevice(list)
	for n := 0; len(list) > 0; list = list[n:] {
		n = SameDevice(list)
		if err := s.spreadRun(list[:n], rate); err != nil {
			return err
		}
	}
	return nil
}

func (s *schema) spreadRun(list []Reading, rate float64) *Refusal {
	k := 0
	for i := range list {
		if list[i].RawTime == "" {
			k++
		}
	}
	switch {
	case k < 2:
		return nil
	case rate == 0 && s.signals.rate.Path != "":
		return Refuse(MissingFeature, "%d rows without a rate, which should be at %s", k, s.signals.rate.Path)
	case rate == 0:
		return nil
	}
	if float64(k-1)/rate > maxBack.Seconds() {
		return Refuse(NotANumber, "at a rate of %g Hz the %d rows of the payload take longer than a year", rate, k)
	}
	for i := range list {
		if list[i].RawTime == "" {
			k--
			list[i].Back = time.Duration(math.Round(float64(k) / rate * 1e9))
		}
	}
	return nil
}

// array decodes an array: of all signals, of rows, or of the values of the only signal.
func (w *rows) array(v gjson.Result) *Refusal {
	first := v.Get("0")
	switch {
	case first.IsArray() || first.IsObject():
		if w.oneRow(v) {
			return w.entry(v, w.object)
		}
		return w.entries(v)
	case len(w.names) > 1 || w.paths != nil || !first.Exists():
		return w.entry(v, w.rowOf)
	}
	return w.entry(v, w.values)
}

// values decodes an array of the values of the only signal.
func (w *rows) values(v gjson.Result) *Refusal {
	n := 0
	for _, e := range v.All() {
		r, x, err := w.add(1)
		if err == nil {
			err = w.signals.rules[0].json(x, e)
		}
		if err == nil {
			err = w.finish(&r[0], x, []bool{true}, none)
		}
		if err != nil {
			return within(err, n)
		}
		n++
	}
	return nil
}

// oneRow reports whether an array of arrays or objects is one row, in which a path such as
// 0.hz finds a value.
func (w *rows) oneRow(v gjson.Result) bool {
	var inner texts
	return w.keyed == "" && slices.ContainsFunc(w.paths, func(path string) bool {
		e := inner.at(v, path)
		return e.Exists() && !e.IsArray() && !e.IsObject()
	})
}

// none is the list of the keys of a payload without keys.
func none() string { return "" }

// add makes room for k rows.
func (w *rows) add(k int) ([]Reading, []float64, *Refusal) {
	if k > w.maxBatch-len(w.list) {
		return nil, nil, w.tooMany()
	}
	from := len(w.list)
	w.list = append(w.list, make([]Reading, k)...)
	return w.list[from:], w.signals.newX(k), nil
}

// rowOf decodes an array of all signals, by their paths if they have some.
func (w *rows) rowOf(v gjson.Result) *Refusal {
	if w.paths != nil {
		if err := w.indexed(); err != nil {
			return err
		}
		return w.object(v)
	}
	r, x, err := w.add(1)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range v.All() {
		if n == len(w.names) {
			return Refuse(WrongDimension, "more than %d values", len(w.names))
		}
		if err := w.signals.rules[n].json(x, e); err != nil {
			return err
		}
		n++
	}
	if n != len(w.names) {
		return Refuse(WrongDimension, "%d values, want %d", n, len(w.names))
	}
	return w.finish(&r[0], x, allTrue(n), none)
}

func allTrue(n int) []bool {
	have := make([]bool, n)
	for i := range have {
		have[i] = true
	}
	return have
}

// object decodes an object of signals, or of an array of values for each. A member
// features, unless it is a signal, holds them instead.
func (w *rows) object(v gjson.Result) *Refusal {
	var meta Reading
	if err := w.identity(&meta, v); err != nil {
		return err
	}
	from := len(w.list)
	if err := w.members(v); err != nil {
		return err
	}
	list := w.list[from:]
	for i := range list {
		list[i].Label, list[i].Null = meta.Label, meta.Null
	}
	when := gjson.Result{}
	if w.time != "" {
		when = at(v, w.time)
	}
	if when.IsArray() {
		return w.times(list, when)
	}
	if meta.RawTime == "" {
		return nil
	}
	if err := w.spread(list, w.rate); err != nil {
		return err
	}
	for i := range list {
		list[i].RawTime = meta.RawTime
	}
	return nil
}

// times sets the times of rows that have one each.
func (w *rows) times(list []Reading, when gjson.Result) *Refusal {
	n := 0
	for _, t := range when.All() {
		if n < len(list) {
			w.setRawTime(&list[n], t)
		}
		n++
	}
	if n != len(list) {
		return Refuse(WrongDimension, "%d times at %s, want %d, one for each row", n, w.time, len(list))
	}
	return nil
}

// members decodes the signals of an object.
func (w *rows) members(v gjson.Result) *Refusal {
	if _, own := w.index["features"]; w.paths == nil && !own {
		switch f := v.Get("features"); {
		case f.IsArray():
			return w.array(f)
		case f.IsObject():
			v = f
		}
	}
	values := make([]gjson.Result, len(w.names))
	if w.paths != nil {
		var inner texts
		for i, path := range w.paths {
			values[i] = inner.at(v, path)
		}
	} else {
		for key, e := range v.All() {
			if i, ok := w.index[key.Str]; ok {
				values[i] = e
			}
		}
	}
	k, err := w.rowsIn(values)
	if err != nil {
		return err
	}
	r, x, err := w.add(k)
	if err != nil {
		return err
	}
	have, size := make([]bool, len(values)), len(w.signals.names)
	for i := range values {
		if have[i] = values[i].Exists(); !have[i] {
			continue
		}
		if err := w.column(x, i, values[i]); err != nil {
			return err
		}
	}
	for i := range r {
		if err := w.finish(&r[i], x[i*size:(i+1)*size:(i+1)*size], have, func() string { return keysOf(v) }); err != nil {
			if k > 1 {
				return within(err, i)
			}
			return err
		}
	}
	return nil
}

// rowsIn returns the number of rows of an object: the length of its arrays, or 1.
func (w *rows) rowsIn(values []gjson.Result) (k int, err *Refusal) {
	first := -1
	for i, v := range values {
		if !v.IsArray() {
			continue
		}
		n := 0
		for range v.All() {
			n++
		}
		switch {
		case n == 0:
			return 0, Refuse(Empty, "signal %.40q is an array without values", w.names[i])
		case first < 0:
			first, k = i, n
		case n != k:
			return 0, Refuse(WrongDimension, "signal %.40q has %d values, %.40q has %d: want arrays of one length", w.names[i], n, w.names[first], k)
		}
	}
	return max(k, 1), nil
}

// column sets the values of signal i in all rows.
func (w *rows) column(x []float64, i int, v gjson.Result) *Refusal {
	rule, size := &w.signals.rules[i], len(w.signals.names)
	if !v.IsArray() {
		if err := rule.json(x, v); err != nil {
			return err
		}
		for at := size; at < len(x); at += size {
			copy(x[at+rule.at:at+rule.at+rule.width()], x[rule.at:])
		}
		return nil
	}
	n := 0
	for _, e := range v.All() {
		if err := rule.json(x[n*size:], e); err != nil {
			return within(err, n)
		}
		n++
	}
	return nil
}

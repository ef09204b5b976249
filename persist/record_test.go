package persist

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"edge/online"
	"edge/online/conformal"
)

// events are the cases of every test and the seeds of every fuzz target here.
var events = map[string]online.Event{
	"boundary":            {Kind: online.Boundary},
	"plain":               {Kind: online.Observe, Key: 7, X: []float64{1, -2.5, 1e308}, Label: "ok"},
	"late label":          {Kind: online.Observe, Key: math.MaxUint64, X: []float64{0}, Label: "worn", Probs: []float64{0.25, 0.75}},
	"before any class":    {Kind: online.Observe, X: []float64{0}, Label: "worn", Probs: []float64{}},
	"every bit of floats": {Kind: online.Observe, X: []float64{math.Copysign(0, -1), math.SmallestNonzeroFloat64, math.Inf(-1)}, Label: "é"},
	"weighted":            {Kind: online.Observe, Key: 8, X: []float64{1}, Label: "ok", Weight: 2.5},
	"everything late":     {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Probs: []float64{1}, Weight: 0.5, Epoch: 4, Parts: []float32{0.5, -3}},
	"metadata":            {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Probs: []float64{1}, Meta: conformal.PredictionMeta{Ruled: true, Sets: true, Threshold: -1.5}},
	"never empty":         {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Probs: []float64{1}, Meta: conformal.PredictionMeta{Sets: true, NeverEmpty: true, Threshold: 0.9}},
	"last label known":    {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Probs: []float64{1}, Meta: conformal.PredictionMeta{Last: maxClasses}},
	"labels learnt":       {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Probs: []float64{1}, Meta: conformal.PredictionMeta{Version: 1 << 40}},
	"known before":        {Kind: online.Observe, Key: 9, X: []float64{1}, Label: "ok", Parts: []float32{2}, Known: true},
	"class added":         {Kind: online.ClassAdd, Label: "broken"},
	"class removed":       {Kind: online.ClassRemove, Label: "broken"},
	"class renamed":       {Kind: online.ClassRename, Key: 3, Label: "broken", Name: "defekt"},
	"corrected":           {Kind: online.Correct, Key: 10, X: []float64{1}, Label: "worn", Probs: []float64{0.5, 0.5}, Name: "ok"},
	"reset":               {Kind: online.Reset},
	"replaced":            {Kind: online.Replace, State: []byte("a state")},
	"merged":              {Kind: online.Merge, State: []byte("a merge")},
	"largest":             {Kind: online.Observe, X: make([]float64, maxFeatures), Label: strings.Repeat("l", maxLabel), Probs: make([]float64, maxClasses)},
}

// pendingSamples are the cases of the tests of pending samples.
var pendingSamples = map[string]online.Pending{
	"nothing":  {},
	"plain":    {Key: 3, X: []float64{1, 2}, Probs: []float64{1}},
	"in order": {Key: 3, X: []float64{1, 2}, Probs: []float64{1}, Parts: []float32{1, -1e30}, Epoch: 1, Clock: time.Hour},
	"labelled": {Key: 3, X: []float64{1, 2}, Probs: []float64{}, Clock: 1, Label: "ok", By: math.MaxUint64},
	"metadata": {Key: 3, X: []float64{1}, Probs: []float64{1}, Meta: conformal.PredictionMeta{Ruled: true, Abstained: true}},
	"last":     {Key: 3, X: []float64{1}, Probs: []float64{1}, Meta: conformal.PredictionMeta{Sets: true, Threshold: 0.5, Last: 2, Version: 300}, From: 1, To: 2},
	"parts":    {Key: 3, Parts: make([]float32, maxParts)},
	"window":   {Key: 3, X: []float64{1}, Device: "hall/p7", From: -5, To: math.MaxInt64},
	"of a day": {Key: 3, X: []float64{1}, Clock: 1, Parts: []float32{2}, From: 1, To: 2},
}

func TestPendingRoundTrip(t *testing.T) {
	for name, p := range pendingSamples {
		t.Run(name, func(t *testing.T) {
			got, err := decodePending(appendPending(nil, &p))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("−want +got:\n%s", diff)
			}
		})
	}
}

// stored compares events by the fields that the store keeps.
var stored = cmpopts.IgnoreUnexported(online.Event{})

// TestRecordsOfVersion1 decodes payloads of version 1, and encodes the same events to
// the same bytes.
func TestRecordsOfVersion1(t *testing.T) {
	for line := range strings.Lines(string(readFile(t, filepath.Join("testdata", "records_v1.txt")))) {
		name, digits, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			continue // a comment
		}
		payload, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "pending" {
			want := online.Pending{Key: 3, X: []float64{1, -2}, Probs: []float64{0.25, 0.75}}
			if got, err := decodePending(payload); err != nil || !cmp.Equal(got, want) || !bytes.Equal(appendPending(nil, &want), payload) {
				t.Errorf("%s: %+v, %v, want %+v and the same bytes", name, got, err, want)
			}
			continue
		}
		want, ok := events[name]
		if got, err := decodeRecord(payload); !ok || err != nil || !cmp.Equal(got, want, stored) || !bytes.Equal(appendRecord(nil, &want), payload) {
			t.Errorf("%s: %+v, %v, want %+v and the same bytes", name, got, err, want)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	for name, ev := range events {
		t.Run(name, func(t *testing.T) {
			got, err := decodeRecord(appendRecord(nil, &ev))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ev, got, stored); diff != "" {
				t.Errorf("−want +got:\n%s", diff)
			}
		})
	}
}

// TestRecordSize checks the size of a record: 8 bytes a number and at most 26 others.
func TestRecordSize(t *testing.T) {
	ev := online.Event{Kind: online.Observe, Key: 1, X: make([]float64, 33), Label: "class"}
	value := seal(nil, kindRecord, journalBucket("bearing"), numberKey(1), appendRecord(nil, &ev))
	if limit := 33*8 + 26; len(value) > limit {
		t.Errorf("a record of 33 features takes %d bytes, want at most %d", len(value), limit)
	}
}

func TestDecodeRefuses(t *testing.T) {
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	head := append([]byte{byte(online.Observe)}, make([]byte, 8)...)
	late := events["late label"]
	record := appendRecord(nil, &late)
	for name, payload := range map[string][]byte{
		"nothing":              nil,
		"unknown kind":         append([]byte{byte(online.Merge) + 1}, record[1:]...),
		"label of 2^64 bytes":  append(head[:9:9], huge...),
		"2^64 features":        append(append(head[:9:9], 0), huge...),
		"2^64 probabilities":   append(append(head[:9:9], 0, 0), huge...),
		"unfinished number":    append(head[:9:9], 0x80),
		"one byte short":       record[:len(record)-1],
		"one byte left over":   append(record[:len(record):len(record)], 0),
		"more than there is":   append(append(head[:9:9], 0), 200),
		"label over the bound": append(append(append(head[:9:9], 0x81, 0x02), make([]byte, 257)...), 0, 0),
		"unknown tag":          append(record[:len(record):len(record)], tagClock+1),
		"another's tag":        append(record[:len(record):len(record)], tagClock, 1),
		"the same tag twice":   append(record[:len(record):len(record)], tagEpoch, 1, tagEpoch, 1),
		"falling tags":         append(record[:len(record):len(record)], tagEpoch, 1, tagChain, 1, 1),
		"state of 2^64 bytes":  append(append(record[:len(record):len(record)], tagState), huge...),
		"2^64 labels ahead":    append(append(record[:len(record):len(record)], tagChain), huge...),
		"last of 1001 classes": appendExtras(record[:len(record):len(record)], extras{meta: conformal.PredictionMeta{Last: maxClasses + 1}}),
		"weight NaN":           appendExtras(record[:len(record):len(record)], extras{weight: math.NaN()}),
		"weight below 0":       appendExtras(record[:len(record):len(record)], extras{weight: -1}),
		"metadata NaN":         appendExtras(record[:len(record):len(record)], extras{meta: conformal.PredictionMeta{Sets: true, Threshold: math.NaN()}}),
		"too many flags":       append(append(record[:len(record):len(record)], byte(tagMeta), 32), make([]byte, 8)...),
		"weight too large":     appendExtras(record[:len(record):len(record)], extras{weight: online.MaxWeight + 1}),
	} {
		t.Run(name, func(t *testing.T) {
			if ev, err := decodeRecord(payload); err == nil {
				t.Errorf("decodeRecord(%x) = %+v, want an error", payload, ev)
			}
		})
	}
	for name, payload := range map[string][]byte{
		"generation 0": (&checkpoint{seq: 1, keys: []uint64{1}}).head(),
		"no state":     (&checkpoint{generation: 1}).head(),
		"2^64 keys":    append([]byte{1, 1}, huge...),
	} {
		if c, err := decodeCheckpoint(payload); err == nil {
			t.Errorf("decodeCheckpoint of %s = %+v, want an error", name, c)
		}
	}
	for _, clock := range []time.Duration{-1, maxClock + 1, math.MaxInt64} {
		if p, err := decodePending(appendPending(nil, &online.Pending{Clock: clock})); err == nil {
			t.Errorf("decodePending of an arrival at %v = %+v, want an error", clock, p)
		}
	}
	if _, err := decodeFormat([]byte{0}); err == nil {
		t.Error("decodeFormat accepts version 0")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, ev := range events {
		f.Add(appendRecord(nil, &ev))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		ev, err := decodeRecord(payload)
		if err != nil {
			return
		}
		// Not every length has one encoding (uvarint), so: decode, encode, decode.
		again, err := decodeRecord(appendRecord(nil, &ev))
		if err != nil || !sameBits(ev.X, again.X) || !sameBits(ev.Probs, again.Probs) || !cmp.Equal(plain(ev), plain(again), stored) {
			t.Errorf("round trip of %+v gave %+v, %v", ev, again, err)
		}
	})
}

// plain returns an event without the floats, which cmp does not compare bit by bit.
func plain(ev online.Event) online.Event {
	ev.X, ev.Probs = nil, nil
	return ev
}

func FuzzDecodePending(f *testing.F) {
	for _, p := range pendingSamples {
		f.Add(appendPending(nil, &p))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := decodePending(payload)
		if err != nil {
			return
		}
		again, err := decodePending(appendPending(nil, &p))
		same := sameBits(p.X, again.X) && sameBits(p.Probs, again.Probs)
		p.X, p.Probs, again.X, again.Probs = nil, nil, nil, nil
		if err != nil || !same || !cmp.Equal(p, again) {
			t.Errorf("round trip of %+v gave %+v, %v", p, again, err)
		}
	})
}

func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(append((&checkpoint{generation: 2, seq: 9, keys: []uint64{1, 2}}).head(), "state"...))
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := decodeCheckpoint(payload)
		if err != nil {
			return
		}
		again, err := decodeCheckpoint(append(c.head(), c.state...))
		if err != nil || !cmp.Equal(c, again, cmp.AllowUnexported(checkpoint{})) {
			t.Errorf("round trip of %+v gave %+v, %v", c, again, err)
		}
	})
}

func FuzzDecodeLedger(f *testing.F) {
	f.Add(encodeLedger(ledger{last: 300, pending: 2, entries: 305, sum: 1 << 40}))
	f.Add(encodeLedger(ledger{last: 300, mark: 3}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		l, err := decodeLedger(payload)
		if err != nil {
			return
		}
		if again, err := decodeLedger(encodeLedger(l)); err != nil || again != l {
			t.Errorf("round trip of %+v gave %+v, %v", l, again, err)
		}
	})
}

func sameBits(a, b []float64) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return true
}

// A set of an earlier program, whose threshold had another unit, is read and not
// judged; the decision about abstention stays.
func TestRecordOfOlderSet(t *testing.T) {
	payload := appendExtras(nil, extras{epoch: 1})
	payload = append(payload, byte(tagMeta), metaRuled|metaAbstained|metaOldSet)
	payload = binary.LittleEndian.AppendUint64(payload, math.Float64bits(-1.5))
	d := newDecoder(payload)
	got, want := d.extras(ofRecords).meta, conformal.PredictionMeta{Ruled: true, Abstained: true}
	if d.Err() != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, d.Err(), want)
	}
}

package stream

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"edge/online/drift"
)

func TestPredictionJSON(t *testing.T) {
	p := Prediction{
		Node: "pi4-hall", Model: "bearing", ID: "p7-000123", Seq: 99123, Version: 18231, Device: "p7",
		Classes: []string{"ok", "worn", "broken"}, Probs: []float64{0.05, 0.93, 0.02}, Novelty: 0.08,
		PredictionSet: PredictionSet{[]int{1, 0}, 0.95}, Abstain: true, Condition: Condition{drift.Warning, true},
		Latency: 412 * time.Microsecond, raw: rawReading{id: `"p7-000123"`, time: `"2026-11-20T20:29:45.120Z"`},
	}
	p.judge()
	const want = `{"v":1,"id":"p7-000123","ts":"2026-11-20T20:29:45.120Z","node":"pi4-hall","model":"bearing","device":"p7","seq":99123,"version":18231,"class":"worn","confidence":0.93,"probs":{"ok":0.05,"worn":0.93,"broken":0.02},"entropy":0.2955,"novelty":0.08,"set":["worn","ok"],"coverage":0.95,"abstain":true,"drift":"warning","recovering":true,"learned":false,"latency_us":412}`
	if got := string(p.appendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPredictionWithoutClasses(t *testing.T) {
	p := Prediction{Node: "n", Model: "m", raw: rawReading{arrived: time.Date(2026, 11, 20, 20, 29, 45, 120e6, time.FixedZone("", 3600))}}
	p.judge()
	const want = `{"v":1,"id":null,"ts":"2026-11-20T19:29:45.120Z","node":"n","model":"m","seq":0,"version":0,"class":null,"confidence":null,"probs":{},"entropy":0,"novelty":0,"abstain":false,"drift":"none","learned":false,"latency_us":0}`
	if got := string(p.appendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// CBOR and JSON have the same members and numbers.
func TestPredictionCBOR(t *testing.T) {
	encoder, err := newCBOREncoder()
	if err != nil {
		t.Fatal(err)
	}
	arrived := time.Date(2026, 11, 20, 20, 29, 45, 120e6, time.UTC)
	for name, p := range map[string]Prediction{
		"all": {
			Node: "pi4-hall", Model: "bearing", ID: "p7", Seq: 99123, Version: 18231, Device: "p7/a", Classes: []string{"ok", "worn", "broken"},
			Probs: []float64{0.05004, 0.92999, 0.01997}, Novelty: 0.081234, Learned: true, Latency: 412 * time.Microsecond, raw: rawReading{id: `"p7"`, time: `"2026-11-20"`},
		},
		"sets":       {ID: "1", raw: rawReading{arrived: arrived}, Classes: []string{"a", "b"}, Probs: []float64{0.5, 0.5}, PredictionSet: PredictionSet{[]int{1}, 0.8}, Abstain: true},
		"empty set":  {ID: "2", raw: rawReading{arrived: arrived}, Classes: []string{"a"}, Probs: []float64{1}, PredictionSet: PredictionSet{Coverage: 0.9}},
		"numbers":    {ID: "17", raw: rawReading{id: "17", time: "1700000000.5"}, Classes: []string{"a"}, Probs: []float64{1}},
		"derived id": {ID: "from csv", raw: rawReading{arrived: arrived}},
		"nothing":    {raw: rawReading{arrived: arrived}},
	} {
		p.judge()
		got, err := encoder.encode(&p)
		if err != nil {
			t.Fatal(err)
		}
		if want := decodedJSON(t, p.appendJSON(nil)); !reflect.DeepEqual(decodedCBOR(t, string(got)), want) {
			t.Errorf("%s: CBOR says\n%v, JSON\n%v", name, decodedCBOR(t, string(got)), want)
		}
	}
}

func decodedCBOR(t *testing.T, data string) (v any) {
	t.Helper()
	if err := cbor.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(err)
	}
	return wholeAsFloats(v)
}

// wholeAsFloats makes the numbers and objects of a decoded value those of JSON.
func wholeAsFloats(v any) any {
	switch v := v.(type) {
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case map[any]any:
		object := map[string]any{}
		for k := range v {
			object[k.(string)] = wholeAsFloats(v[k])
		}
		return object
	}
	return v
}

func decodedJSON(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Every payload on a prediction topic is read or refused.
func FuzzReadPublished(f *testing.F) {
	p := Prediction{ID: "p7", Node: "n", Model: "m", Classes: []string{"ok", "worn"}, Probs: []float64{0.25, 0.75}, PredictionSet: PredictionSet{[]int{0, 1}, 0.9}}
	p.judge()
	f.Add(p.appendJSON(nil))
	encoder, err := newCBOREncoder()
	if err != nil {
		f.Fatal(err)
	}
	packed, err := encoder.encode(&p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := ReadPrediction(payload)
		if err == nil && len(p.Probs) > len(payload) {
			t.Fatalf("%d classes in %d bytes", len(p.Probs), len(payload))
		}
	})
}

// Names from outside come out as they are, and the result is JSON.
func FuzzPredictionJSON(f *testing.F) {
	f.Add("ok", "p\"7", 0.3, 1e-9)
	f.Add("\u2028</script>", "\xff", 0.0, 1.0)
	f.Fuzz(func(t *testing.T, class, id string, a, b float64) {
		if math.IsNaN(a) || math.IsInf(a, 0) || math.IsNaN(b) || math.IsInf(b, 0) {
			return
		}
		p := Prediction{ID: id, Device: class, Classes: []string{class, class + "'"}, Probs: []float64{math.Abs(math.Mod(a, 1)), math.Abs(math.Mod(b, 1))}}
		p.judge()
		var got struct {
			ID     string             `json:"id"`
			Device string             `json:"device"`
			Probs  map[string]float64 `json:"probs"`
		}
		text := p.appendJSON(nil)
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := string([]rune(id)); got.ID != want {
			t.Errorf("id %q came out as %q", want, got.ID)
		}
		if want := string([]rune(class)); len(got.Probs) != 2 || math.Abs(got.Probs[want]-p.Probs[0]) > 0.5001e-4 {
			t.Errorf("probs %v came out as %v", p.Probs, got.Probs)
		}
	})
}

func TestPredictionAllocates(t *testing.T) {
	p := Prediction{Node: "n", Model: "m", Classes: []string{"a", "b"}, Probs: []float64{0.25, 0.75}, PredictionSet: PredictionSet{[]int{0, 1}, 0.9}, raw: rawReading{id: "1", time: "2"}}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = p.appendJSON(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

package codec

import (
	"strings"
	"testing"
)

// TestRemedies compares parts of refusals that tell the way out.
func TestRemedies(t *testing.T) {
	for _, c := range []struct{ format, payload, want string }{
		{FormatJSON, "\x1f\x8b\x08\x00", "compressed by gzip: a stream with compression: gzip, or auto, reads it"},
		{FormatCBOR, "\x1f\x8b\x08\x00", "compressed by gzip"},
		{FormatValue, "\x28\xb5\x2f\xfd\x04", "compressed by zstd"},
		{FormatJSON, "\xff\xd5", "malformed: not valid UTF-8: is it of another format?"},
		{FormatJSON, "{\"x\":1,\"label\":\"ü \xfcber\"}", "malformed: byte 20 is not valid UTF-8, in which JSON is written: is the text in Latin-1?"},
		{FormatJSON, "[1]\xff", "malformed: byte 4 is not valid UTF-8"},
		{FormatJSON, "\r\n {\"x\":\"\xb0\"}", "malformed: byte 10 is not valid UTF-8, in which JSON is written"},
		{FormatJSON, "\x08\xd5\xd5\xe2\x9a\xcd\x33\x12\x1d\x0a\x04temp", "malformed: not a text: it looks like Protocol Buffers, such as Sparkplug B, which are not read; a flow of Node-RED, or Telegraf, can make JSON of it"},
		{FormatJSON, "\x0a\x05hello\x08\x01", "it looks like Protocol Buffers"},
		{FormatJSON, "\x12\x03abc", "it looks like Protocol Buffers"},
		{FormatJSON, "\x82\xa4temp\xcb\x40\x35\x80\x00\x00\x00\x00\x00\xa3hum\x28", "it looks like MessagePack, which is not read; a flow of Node-RED"},
		{FormatCBOR, "\x82\xa4temp\xcb\x40\x35\x80\x00\x00\x00\x00\x00\xa3hum\x28", "it looks like MessagePack"},
		{formatInflux, "\xde\x00\x01\xa1x\x01", "it looks like MessagePack"},
		{FormatJSON, "\xa1\x61x\xf9\x3e\x00", "it looks like CBOR, which format: cbor reads"},
		{formatCSV, "\xa1\x61x\xf9\x3e\x00", "it looks like CBOR, which format: cbor reads"},
		{FormatCBOR, "\xa1\x61x", "malformed: unexpected EOF: the message is cut off: is the sender's buffer too small?"},
		{FormatJSON, `{"x":1,"y":`, "malformed: byte 11: unexpected end of JSON input: the message is cut off: is the sender's buffer too small?"},
		{FormatCBOR, `{"x":1}`, "it looks like JSON, which format: json reads"},
		{FormatCBOR, "\n{\"x\":1}", "it looks like JSON, which format: json reads"},
		{FormatCBOR, "\x08\xd5\xd5\xe2\x9a\xcd\x33\x12\x1d\x0a\x04temp", "it looks like Protocol Buffers"},
		{FormatJSON, "\x78\x9c\xab\x56", "compressed by zlib, which is not read: compression: auto reads gzip and zstd"},
		{FormatJSON, `[{"n":"x","v":1},{"n":"y","v":2}]`, "no signal is in the payload: it has n, v; a path in fields finds a signal under another key, and [KEY=WORD].KEY one in the record that has the word"},
		{FormatJSON, `21.5`, "not the number 21.5; format: value reads a text that is one value"},
		{FormatJSON, "offline", "malformed: byte 1: invalid character 'o' looking for beginning of value; is it of another format? value is one word or number, csv cells"},
		{FormatJSON, " 1;2", "is it of another format?"},
		{FormatJSON, "cpu,host=a x=5", "influx line protocol"},
		{FormatJSON, "PASSKEY=A1&tempinf=68.5&tempf=41.2", "malformed: a form of KEY=VALUE&KEY=VALUE, which is not read; a flow of Node-RED"},
		{FormatJSON, `{"x":tempinf}`, "malformed: byte 7"},
		{FormatJSON, "[object Object]", "looking for beginning of value; JSON.stringify makes JSON of an object of JavaScript"},
		{FormatJSON, "nan", "not_a_number: NaN and Infinity are not JSON: want null; is it of another format?"},
		{FormatJSON, "{\"x\":1}\n{\"x\":2}\n", "after top-level value; several objects in a message are {\"batch\":[{…},{…}]}, or under another key that batch names"},
		{FormatJSON, `{"x":{"y":1}{}}`, "after object key:value pair"},
		{FormatJSON, `{"x":nan}`, "not_a_number: NaN and Infinity are not JSON"},
		{FormatJSON, `{"x":-inf}`, "not_a_number: NaN and Infinity are not JSON"},
		{FormatJSON, `{"x":nil}`, "malformed: byte 7"},
		{FormatJSON, `{"x":"03C9"}`, "hexadecimal digits are not read"},
		{FormatJSON, `{"x":"12C9"}`, "hexadecimal digits are not read"},
		{FormatJSON, `{"x":"0x1F"}`, "hexadecimal digits are not read"},
		{FormatJSON, `{"x":"0X10"}`, "hexadecimal digits are not read"},
		{FormatJSON, `{"x":"0x"}`, "want a number, or one of true"},
		{FormatJSON, `{"x":"12A"}`, `values.x can have unit: "A"`},
		{FormatJSON, `{"x":"5m3"}`, `values.x can have unit: "m3"`},
		{FormatJSON, `{"x":"{\"t\":1}"}`, "JSON in a text: a path in fields that goes on in it finds a value"},
		{FormatJSON, `"{\"x\":1"`, "malformed: want an object or an array, not the text"},
		{FormatJSON, `{"x":"21.5 ℃"}`, `values.x can have unit: "°C"`},
		{FormatJSON, `{"x":"−2 W"}`, `values.x can have unit: "W"`},
		{formatFloat32, "0000803f00000040", "malformed: text of hexadecimal digits: want the bytes themselves"},
		{formatFloat32, "AACAPwAAAEAAAEBAAACAQAAA", "malformed: text of base64 digits: want the bytes themselves"},
		{FormatJSON, `{"x":"1,5"}`, "want a number with a decimal point"},
		{FormatJSON, `{'x': 1, 'y': None}`, "malformed: byte 2: invalid character '\\'' looking for beginning of object key string; JSON has double quotes"},
		{FormatJSON, `{x:1}`, "JSON has double quotes around keys and texts"},
		{FormatJSON, `{"x":1,"label":""}`, "bad_label: label has 0 bytes: want 1 to 256; send null, or no label, for a sample without a label"},
		{FormatJSON, `{"x":1,"label":"  "}`, "bad_label: label has spaces alone; send null, or no label, for a sample without a label"},
		{FormatValue, `{"value":21.5}`, "format: json the path of the value in fields"},
		{FormatCBOR, "\xa1\x61x\xf9\x7c\x00", "not_a_number: signal \"x\": Infinity is beyond the range of a float64"},
		{FormatCBOR, "\xa1\x61x\xf9\xfc\x00", "-Infinity is beyond the range of a float64"},
		{FormatCBOR, "\xa1\x61x\x651e999", "1e999 is beyond the range of a float64"},
		{FormatJSON, `{"x":21e9999}`, "21e9999 is beyond the range of a float64"},
		{FormatValue, "12:30", `signal "x" is "12:30": want a number`},
		{FormatValue, "1795363500.123:0.1:0.2", `signal "x" is "0.1:0.2": want a number`},
		{formatCSV, "$GP,1,2", `3 cells, want 2; columns may have "" for one that is not read`},
		{formatCSV, `{"x":1}`, "malformed: it looks like JSON, which format: json reads"},
		{formatCSV, "[1,2,\n3]", "malformed: it looks like JSON, which format: json reads"},
		{formatInflux, `{"x":1}`, "malformed: it looks like JSON, which format: json reads"},
		{formatCSV, `1 2`, "1 cells, want 2, with commas between them"},
		{formatCSV, `1,5;2,5`, `signal "x" is "1,5": want a number with a decimal point and no other separator`},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"a"}, c.format, []string{"x"}
		if c.format == formatCSV {
			s.Stage.Signals = []string{"x", "y"}
		}
		got, err := mustDecoder(t, s).Decode([]byte(c.payload))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Decode(%q) = %+v, %v, want %q", c.format, c.payload, got, err, c.want)
		}
	}
}

// TestRemedyOfTags reads numbers of CBOR under tags.
func TestRemedyOfTags(t *testing.T) {
	for _, c := range []struct{ payload, want string }{
		{"\xa1\x61x\xd8\x57\x50" + strings.Repeat("\x00", 16), "malformed: tag 87, a typed array of other numbers than floats of 16, 32 or 64 bits and whole numbers, is not read"},
		{"\xa1\x61x\xd8\x1e\x82\x01\x03", "malformed: tag 30, a fraction or an array of several dimensions, is not read"},
		{"\xd8\x28\x82\x82\x02\x01\x82\x01\x02", "malformed: tag 40, a fraction or an array of several dimensions, is not read"},
		{"\xa1\x61x\xd8\x55\x43\x00\x00\x00", "malformed: tag 85, a typed array: want a byte string of numbers of 4 bytes each"},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"a"}, FormatCBOR, []string{"x"}
		if got, err := mustDecoder(t, s).Decode([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Decode(%q) = %+v, %v, want %q", c.payload, got, err, c.want)
		}
	}
}

// TestRemedyOfUTF16 reads texts that are not in UTF-8.
func TestRemedyOfUTF16(t *testing.T) {
	for _, c := range []struct{ format, payload string }{
		{FormatJSON, "\xff\xfe{\x00\"\x00x\x00\"\x00:\x001\x00}\x00"},
		{FormatJSON, "{\x00\"\x00x\x00\"\x00:\x00\xb0\x00}\x00"},
		{FormatJSON, "\x00{\x00\"\x00x\x00\"\x00:\x001\x00}"},
		{FormatValue, "\xfe\xff\x001\x00.\x005"},
		{FormatValue, "1\x00.\x005\x00"},
		{formatCSV, "1\x00,\x005\x00"},
		{formatInflux, "v\x00 \x00x\x00=\x001\x00"},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"a"}, c.format, []string{"x"}
		got, err := mustDecoder(t, s).Decode([]byte(c.payload))
		if want := "malformed: the text is UTF-16, which is not read: want UTF-8"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: Decode(%q) = %+v, %v, want %q", c.format, c.payload, got, err, want)
		}
	}
}

// TestRemedyOfFeatures reads texts where features are numbers.
func TestRemedyOfFeatures(t *testing.T) {
	for _, c := range []struct{ format, payload, want string }{
		{FormatJSON, `{"x":"1.5"}`, "signals in place of features read"},
		{FormatCBOR, "\xa1\x61x\xf9\x7c\x00", `feature "x": Infinity is beyond the range of a float64`},
		{FormatJSON, "[" + strings.Repeat("{},", 32<<10) + "{}]", "too_large: more than 64KiB: max_payload of a stream"},
		{formatFloat32, strings.Repeat("\x00\x00\x80\x3f", 1001), "too_large: more than 1000 rows or samples in a payload: max_batch of the stream"},
		{FormatJSON, `{"features":[1],"y":2}`, `unknown_feature: key "y" beside features; paths in fields, such as features.NAME, ignore other keys`},
		{FormatJSON, `{"batch":[[1]],"y":2}`, `unknown_feature: key "y" beside batch; list the features in fields to ignore other keys`},
		{FormatValue, "on", "signals in place of features read"},
		{formatFloat32, "1.5,-2.5,3e2\n", "malformed: text of decimal digits: want the bytes themselves"},
		{formatFloat32, "[1,2]", "wrong_dimension: 5 bytes, want 4, or a multiple of it; is it a text, which format: json, csv or value reads?"},
		{FormatJSON, "<?xml version=\"1.0\" ?><vs><ac>128</ac></vs>", "malformed: it looks like XML or HTML, which is not read; a flow of Node-RED"},
		{FormatJSON, `{"x":{"value":1.5}}`, `feature "x": an object is not a number; give the path of one in fields`},
		{FormatJSON, `[{"x":1},[{"x":2}]]`, `entry 1: feature "x": an object is not a number`},
		{formatCSV, "nan", `feature "x": "nan" is not a number; signals in place of features read words and units`},
		{FormatValue, `{"x":1.5}`, "not_a_number: it is JSON: with format: json the path"},
		{formatInflux, "m x=t", "the bool \"true\"; signals in place of features read texts and switches"},
		{FormatJSON, `{"x":"[1]"}`, `feature "x": it is JSON in a text: a path in fields that goes on in it`},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Features = []string{"a"}, c.format, []string{"x"}
		if _, err := mustDecoder(t, s).Decode([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Decode(%s) = %v, want the remedy %s", c.format, c.payload, err, c.want)
		}
	}
}

// TestRemedyOfMissing reads payloads that lack a value.
func TestRemedyOfMissing(t *testing.T) {
	for _, c := range []struct {
		signals         bool
		format, payload string
		want            string
	}{
		{true, FormatJSON, `{"a":{"x":1}}`, `signal "y" is missing at b.y; hold keeps last values`},
		{true, FormatJSON, `{"a":{"x":1},"b":{"y":null}}`, `signal "y" is missing; hold keeps last values`},
		{true, formatInflux, "v a.x=1", `signal "y" is missing at b.y; hold keeps last values`},
		{false, FormatJSON, `{"a":{"x":1}}`, `feature "y" is missing at b.y; on_missing: marginalise or impute predicts without`},
		{false, FormatJSON, `{"a":{"x":1},"b":{"y":null}}`, `feature "y" at b.y: null or NaN is not a number; on_missing: marginalise`},
		{false, formatCSV, "1,", `feature "y" is missing; on_missing: marginalise or impute predicts without`},
		{false, FormatJSON, `{"x":1,"y":2}`, `feature "x" is missing at a.x, and so are the others: the payload has x, y; a path in fields finds a feature under another key`},
		{false, FormatJSON, `{"c":{"x":1,"y":2}}`, `the payload has c; a path in fields finds a feature under another key, such as c.x`},
		{true, FormatJSON, `{"t":1,"b.c":{"d":{"y":2}}}`, `no signal is in the payload: it has t, b.c; a path in fields finds a signal under another key, such as b\.c.d.y`},
		{true, FormatJSON, `{"b":{"z":2}}`, `a path in fields finds a signal under another key`},
		{true, FormatJSON, `{"` + strings.Repeat("b", 300) + `":{"y":2}}`, `a path in fields finds a signal under another key`},
		{false, FormatJSON, `{"label":"ok"}`, `missing_feature: feature "x" is missing at a.x`},
		{false, formatInflux, `v label="ok"`, `missing_feature: line 1: feature "x" is missing`},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.ID, s.Fields = []string{"a"}, c.format, "", map[string]string{"x": "a.x", "y": "b.y"}
		if s.Features = []string{"x", "y"}; c.signals {
			s.Features, s.Stage.Signals = nil, s.Features
		}
		if c.format == formatCSV {
			s.Columns = []string{"a.x", "b.y"}
		}
		if got, err := mustDecoder(t, s).Decode([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Decode(%q) = %+v, %v, want %q", c.format, c.payload, got, err, c.want)
		}
	}
}

// TestQuotedValues reads values that are texts of JSON.
func TestQuotedValues(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.Format, s.Stage.Signals = []string{"a"}, FormatValue, []string{"x"}
	for payload, want := range map[string]float64{"1795363500.123:91.2": 91.2, `"21.5"`: 21.5, ` "ON" `: 1, `"\u004fFF"`: 0} {
		if got, err := mustDecoder(t, s).Decode([]byte(payload)); err != nil || got[0].X[0] != want {
			t.Errorf("Decode(%s) = %+v, %v, want %v", payload, got, err, want)
		}
	}
	s.Raw.Values = map[string]Value{"x": {Map: map[string]float64{`"idle"`: 3, "idle": 4}, Scale: 1}}
	if got, err := mustDecoder(t, s).Decode([]byte(`"idle"`)); err != nil || got[0].X[0] != 3 {
		t.Errorf("with a map that has the quotes: %+v, %v, want 3", got, err)
	}
}

// TestBatchThatIsNone reads payloads with a key batch that has another meaning, where other keys
// are ignored.
func TestBatchThatIsNone(t *testing.T) {
	signals := DefaultStream()
	signals.Topics, signals.Stage.Signals = []string{"a"}, []string{"x"}
	paths := DefaultStream()
	paths.Topics, paths.Features, paths.Fields = []string{"a"}, []string{"x"}, map[string]string{"x": "x"}
	strict := paths
	strict.Fields = nil
	for _, batch := range []string{`"B-17"`, `17`, `null`, `{"x":5}`} {
		payload := []byte(`{"batch":` + batch + `,"x":2,"id":"a","label":"ok"}`)
		for _, s := range []Stream{signals, paths} {
			if got, err := mustDecoder(t, s).Decode(payload); err != nil || len(got) != 1 || got[0].X[0] != 2 || got[0].Label != "ok" {
				t.Errorf("Decode(%s) = %+v, %v, want x 2", payload, got, err)
			}
		}
		if got, err := NewLabelDecoder(DefaultLabels()).Decode(payload); err != nil || len(got) != 1 || got[0].Label != "ok" {
			t.Errorf("label: Decode(%s) = %+v, %v", payload, got, err)
		}
		if _, err := mustDecoder(t, strict).Decode(payload); err == nil || !strings.Contains(err.Error(), "batch is not an array") {
			t.Errorf("without fields: Decode(%s) = %v, want a refusal", payload, err)
		}
	}
}

// A sender in C publishes its buffer with the zeros behind the text. In binary formats they are values.
func TestTrailingZeros(t *testing.T) {
	for format, payload := range map[string]string{FormatJSON: `{"x":1.5}`, FormatValue: "1.5", formatCSV: "1.5", formatInflux: "v x=1.5", FormatCBOR: "\xa1\x61x\xf9\x3e"} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"a"}, format, []string{"x"}
		zeros := "\x00\x00\x00"
		if format == FormatCBOR {
			zeros = "\x00" // of the number
		}
		if got, err := mustDecoder(t, s).Decode([]byte(payload + zeros)); err != nil || len(got) != 1 || got[0].X[0] != 1.5 {
			t.Errorf("%s: %+v, %v, want 1.5", format, got, err)
		}
	}
	s := DefaultStream()
	s.Topics, s.Stage.Signals = []string{"a"}, []string{"x"}
	if got, err := mustDecoder(t, s).Decode([]byte("\x00\x00")); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("zeros alone: %+v, %v", got, err)
	}
	l := DefaultLabels()
	l.Last = true
	if got, err := NewLabelDecoder(l).Decode([]byte("run\x00")); err != nil || got[0].Label != "run" {
		t.Errorf("a label: %+v, %v", got, err)
	}
}

// TestRemedyOfNull reads null where features may not be missing: the feature is named, with the
// keys under which it may be.
func TestRemedyOfNull(t *testing.T) {
	const want = `feature "y": null or NaN is not a number; on_missing: marginalise or impute predicts without`
	for _, payload := range []string{`{"x":1,"y":null}`, `[1,null]`, `{"features":[1,null]}`} {
		s := DefaultStream()
		s.Topics, s.Features = []string{"a"}, []string{"x", "y"}
		if _, err := mustDecoder(t, s).Decode([]byte(payload)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Decode(%s) = %v, want %q", payload, err, want)
		}
	}
}

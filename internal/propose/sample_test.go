package propose

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/stream/codec"
	"edge/test/files"
	"edge/test/harness"
)

func TestSampleOfDataFiles(t *testing.T) {
	text, err := sample(t.Context(), []string{harness.TableFile(t, "Room 1.csv", 20), harness.TableFile(t, "gas.csv.gz", 20)}, new(dataset.Options), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("sample.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cfg, err := c.Learner("room-1")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"x", "y"}; !reflect.DeepEqual(cfg.Features, want) {
		t.Errorf("features %q, want %q", cfg.Features, want)
	}
	if want := []string{"class0", "class1", "class2"}; !reflect.DeepEqual(cfg.Classes.Names, want) {
		t.Errorf("classes %q, want %q", cfg.Classes.Names, want)
	}
	if want := []string{"sensors/Room 1"}; !reflect.DeepEqual(c.Streams["room-1"].Topics, want) {
		t.Errorf("topics %q, want %q", c.Streams["room-1"].Topics, want)
	}
}

// Files of one name, as those of several devices in folders of their own, are named with the way out.
func TestSampleOfOneName(t *testing.T) {
	paths := []string{harness.TableFile(t, "readings.csv", 20), harness.TableFile(t, "Readings.csv", 20)}
	_, err := sample(t.Context(), paths, new(dataset.Options), nil, io.Discard)
	if want := "the streams of " + paths[0] + " and " + paths[1] + " would both be called readings: rename a file"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A file may have a name that a model cannot have.
func TestSampleOfReservedName(t *testing.T) {
	for _, file := range []string{"log.csv", "State.csv", strings.Repeat("x", 100) + ".csv"} {
		text, err := sample(t.Context(), []string{harness.TableFile(t, file, 20)}, new(dataset.Options), nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse("the sample", text, nil); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A file in which labels alone are missing has no missing features.
func TestSampleOfMissingLabels(t *testing.T) {
	for rows, want := range map[string]bool{"1,2,x\n3,4,\n": false, "1,2,x\n3,,y\n": true} {
		path := files.Write(t, "t.csv", "a,b,label\n"+rows)
		text, err := sample(t.Context(), []string{path}, new(dataset.Options), nil, io.Discard)
		if err != nil || strings.Contains(string(text), "on_missing") != want {
			t.Errorf("%q: %v, want on_missing: %v\n%s", rows, err, want, text)
		}
	}
}

// TestSampleOfNames checks files whose names YAML reads as another type of value.
func TestSampleOfNames(t *testing.T) {
	for _, name := range []string{"007", "on", "null", "1e3", "true"} {
		path := files.Write(t, name+".csv", "a,label\n1,x\n2,y\n")
		text, err := sample(t.Context(), []string{path}, new(dataset.Options), nil, io.Discard)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := config.Parse("sample.yaml", text, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A column with the name of a key of payloads, as id, is told with the flag that leaves it out.
func TestSampleOfKeys(t *testing.T) {
	for name, key := range map[string]bool{"id": true, "ts": true, "weight": true, "batch": true, "features": true, "source": true, "ids": false, "f0": false} {
		path := files.Write(t, "room.csv", name+",x,label\n7,1,a\n3,2,b\n5,3,a\n")
		_, err := sample(t.Context(), []string{path}, new(dataset.Options), nil, io.Discard)
		want := path + `: column "` + name + `" would be a feature, and a payload has a key of this name: --ignore ` + name + " leaves the column out"
		if key && (err == nil || !strings.HasPrefix(err.Error(), want)) || !key && err != nil {
			t.Errorf("%s: %v, want %q: %v", name, err, want, key)
		}
		data := new(dataset.Options)
		data.Ignore = []string{name}
		stream := codec.DefaultStream()
		stream.Topics, stream.Features = []string{"a"}, []string{name}
		if err := stream.Validate(); (err != nil) != key {
			t.Errorf("%s as a feature: %v, want an error: %v", name, err, key)
		}
		if text, err := sample(t.Context(), []string{path}, data, nil, io.Discard); err != nil || strings.Contains(string(text), name+",") {
			t.Errorf("%s, left out: %v\n%s", name, err, text)
		}
	}
}

// Labels that are no numbers of payloads are told.
func TestSampleOfFractions(t *testing.T) {
	for labels, want := range map[string]string{"1.0": `the label "1.0" of the file is a text, and the number 1 in a payload is the class "1"`, "1": "", "1.5": ""} {
		var errOut strings.Builder
		path := files.Write(t, "room.csv", "x,label\n1,"+labels+"\n2,0\n")
		if _, err := sample(t.Context(), []string{path}, new(dataset.Options), nil, &errOut); err != nil || !strings.Contains(errOut.String(), want) || want == "" && errOut.Len() > 0 {
			t.Errorf("%s: %q, %v, want %q", labels, errOut.String(), err, want)
		}
	}
}

// The command in the sample has the flags that chose the columns, without which replay refuses the file.
func TestSampleNamesTheFlags(t *testing.T) {
	path := files.Write(t, "room.csv", "when,x,state,it's y\nnoon,1,a,2\nnight,3,b,4\n")
	var data dataset.Options
	data.Label, data.Ignore, data.Header, data.SeparatorWord = "state", []string{"when", "it's y"}, "yes", ","
	text, err := sample(t.Context(), []string{path}, &data, nil, io.Discard)
	if want := `# Learns what this publishes: edge replay FILE --label state --ignore 'when,it'\''s y' --separator ',' --header yes` + "\n"; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%v: %s", err, text)
	}
}

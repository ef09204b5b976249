package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/signal"
	"edge/stream/topic"
	"edge/test/files"
)

// TestShapes runs the configurations of docs/guide/shapes.md on the payloads that the page
// names, and compares what it says of them.
func TestShapes(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "guide", "shapes.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var (
		page    strings.Builder
		inside  string // the kind of block
		streams map[string]codec.Stream
		block   strings.Builder
		ran     = map[string]bool{}
	)
	for line := range strings.Lines(string(text)) {
		switch kind, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fence && inside == "yaml":
			streams, inside = decoded(t, block.String()).Streams, ""
		case fence:
			inside = kind
			block.Reset()
		case inside == "yaml":
			block.WriteString(line)
		case inside == "text" && !strings.HasPrefix(line, " "):
			name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
			ran[file] = true
			page.WriteString(line + "    " + shape(t, streams, name, file) + "\n")
			continue
		case inside == "text": // what the page has of the payload
			continue
		}
		page.WriteString(line)
	}
	files.Golden(t, path, page.String())
	files, err := os.ReadDir(shapes)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !ran[f.Name()] {
			t.Errorf("the page does not use %s", f.Name())
		}
	}
	if len(ran) < 25 {
		t.Errorf("the page has %d payloads; was it read rightly?", len(ran))
	}
}

var shapes = filepath.Join("..", "..", "stream", "codec", "testdata", "shapes")

// shape returns what the stream of a topic reads in a payload, as the page has it.
func shape(t *testing.T, streams map[string]codec.Stream, name, file string) string {
	t.Helper()
	payload, err := os.ReadFile(filepath.Join(shapes, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		if !s.Takes(name) {
			continue
		}
		d, err := codec.NewDecoder(s)
		if err != nil {
			t.Fatal(err)
		}
		of := []*codec.Decoder{d}
		for i, in := range s.Raw.Inputs {
			if i == 0 {
				of = nil
			}
			if slices.ContainsFunc(in.Topics, func(filter string) bool { return topic.Matches(filter, name) }) {
				of = append(of, d.Inputs()[i])
			}
		}
		zone, err := s.Stage.Zone()
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, d := range of {
			readings, err := d.DecodeMessage(new(codec.Scratch), name, payload)
			var refusal *codec.Refusal
			if errors.As(err, &refusal) {
				rows = append(rows, fmt.Sprintf("refused, %s: %v", refusal.Reason, refusal.Err))
			}
			for _, r := range readings {
				rows = append(rows, row(t, s.SignalNames(), r, zone))
			}
		}
		return strings.Join(append(rows, "left out")[:max(1, len(rows))], "\n    ")
	}
	t.Fatalf("no stream takes %s", name)
	return ""
}

// row returns a reading as the page has it.
func row(t *testing.T, names []string, r codec.Reading, zone *time.Location) string {
	t.Helper()
	var values []string
	for i, name := range names {
		switch {
		case r.Absent != nil && r.Absent[i]:
		case math.IsNaN(r.X[i]):
			values = append(values, name+" missing")
		default:
			values = append(values, fmt.Sprintf("%s %.6g", name, r.X[i]))
		}
	}
	text := strings.Join(values, ", ")
	if r.Device != "" {
		text = r.Device + ": " + text
	}
	if r.RawTime == "" {
		return text
	}
	ns, ok := signal.ParseTime(r.RawTime, zone)
	if !ok {
		t.Errorf("the time %s is not read", r.RawTime)
	}
	return text + " at " + time.Unix(0, ns).Add(-r.Back).UTC().Format("15:04:05.999999999Z")
}

package propose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/signal"
)

// signalStream is a proposed stream for a file of signals.
type signalStream struct {
	dataset.Recording
	Rate             float64 // rows a second
	Length           signal.Span
	MaxGap, Resample time.Duration // of rows that come irregularly
	Reason           string        // of the length
}

// sections are those of a configuration that is written.
type sections struct{ streams, labels, models strings.Builder }

// sample returns a configuration with a stream and a model for each data file, for the messages
// that `edge replay` publishes of it. signals has the proposed streams of the files of signals, by
// path. Warnings go to errOut.
func sample(ctx context.Context, paths []string, data *dataset.Options, signals map[string]*signalStream, errOut io.Writer) ([]byte, error) {
	var to sections
	files := map[string]string{} // by stream
	for _, path := range paths {
		name := stream.ModelName(dataset.BaseName(path))
		if before := files[name]; before != "" {
			return nil, fmt.Errorf("the streams of %s and %s would both be called %s: rename a file, or name it by a link (ln -s)", before, path, name)
		}
		files[name] = path
		if s := signals[path]; s != nil {
			s.write(path, &to)
		} else if err := to.writeSamples(ctx, path, data, errOut); err != nil {
			return nil, err
		}
	}
	command, delayed := replayCommand(data, len(signals) > 0, to.labels.Len() > 0), ""
	if to.labels.Len() > 0 {
		delayed = "labels: # of edge replay --labels delayed\n" + to.labels.String()
	}
	return fmt.Appendf(nil, `# Learns what this publishes: %s
mqtt: {servers: ["tcp://127.0.0.1:1883"]}
streams:
%s%smodels:
%sstore: {path: edge.db}
`, command, &to.streams, delayed, &to.models), nil
}

// writeSamples writes the stream of a file of samples, its labels and its model.
func (to *sections) writeSamples(ctx context.Context, path string, data *dataset.Options, errOut io.Writer) error {
	summary, err := dataset.Summarize(ctx, path, data.Of(nil))
	if err != nil {
		return err
	}
	data.Warn(errOut, path, summary.Warning)
	if i := slices.IndexFunc(summary.Classes, func(class string) bool { return config.NumberWarning(class) != "" }); i >= 0 {
		fmt.Fprintf(errOut, "%s: %s\n", path, config.NumberWarning(summary.Classes[i]))
	}
	d, err := dataset.Open(path, data.Of(nil))
	if err != nil {
		return err
	}
	d.Close()
	if err := dataset.CheckWidth(path, d.Features); err != nil {
		return err
	}
	for _, key := range keys {
		if slices.Contains(d.Features, key) {
			return errors.New(path + `: column "` + key + `" would be a feature, and a payload has a key of this name: --ignore ` + key + " leaves the column out; a feature needs another name in the file")
		}
	}
	name, topic := stream.ModelName(d.Name), dataset.Topic(d.Name)
	features := "features: " + config.Flow(d.Features)
	if reflect.DeepEqual(d.Features, codec.Stream{Dimension: len(d.Features)}.FeatureNames()) {
		features = fmt.Sprintf("dimension: %d", len(d.Features))
	}
	fmt.Fprintf(&to.streams, "  %s:\n    topics: %s\n    %s\n", name, config.Flow([]string{topic}), features)
	if summary.Lacking > 0 {
		to.streams.WriteString("    on_missing: impute # the file has empty cells\n")
	}
	fmt.Fprintf(&to.labels, "  - topics: %s\n", config.Flow([]string{topic + "/label"}))
	fmt.Fprintf(&to.models, "  %s:\n    streams: %s\n    classes: {names: %s}\n", name, config.Flow([]string{name}), config.Flow(summary.Classes))
	to.models.WriteString(batch)
	return nil
}

// keys are those of a payload of the proposed streams, which no feature can have as its name.
var keys = [...]string{"id", "ts", "label", "batch", "features", "weight", "source"}

// batch is that of the models.
const batch = "    batch: {max_size: 16, max_wait: 50ms} # max_wait: 0s closes by count alone\n"

// replayCommand returns the command that publishes the files: of signals, of samples, or of both.
func replayCommand(data *dataset.Options, signals, samples bool) string {
	command := "edge replay FILE"
	if signals {
		command += " -c edge.yaml"
	}
	add := func(flag, value string, known bool) { // known: by the stream of signals
		if value != "" && !known {
			command += " " + flag + " " + shellWord(value)
		}
	}
	add("--time", data.TimeColumn, signals)
	add("--label", data.Label, !samples)
	add("--columns", strings.Join(data.Columns, ","), !samples)
	add("--ignore", strings.Join(data.Ignore, ","), !samples)
	add("--device", data.DeviceColumn, false)
	add("--separator", data.SeparatorWord, false)
	add("--decimal", data.DecimalWord, false)
	add("--header", data.Header, data.Header == "auto")
	return command
}

// shellWord returns a text as a shell takes it for one word.
func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// write writes the stream of a file of signals, and its model.
func (s *signalStream) write(path string, to *sections) {
	streams := &to.streams
	name, topic := stream.ModelName(dataset.BaseName(path)), dataset.Topic(dataset.BaseName(path))
	fmt.Fprintf(streams, "  %s:\n", name)
	if s.Device != "" {
		fmt.Fprintf(streams, "    topics: %s\n    topic_template: %s\n", config.Flow([]string{topic + "/+"}), word(topic+"/{device}"))
	} else {
		fmt.Fprintf(streams, "    topics: %s\n", config.Flow([]string{topic}))
	}
	fmt.Fprintf(streams, "    signals: %s\n    time: %s\n", config.Flow(s.Signals), word(gjson.Escape(s.Time)))
	if s.Label != "" && s.Label != codec.DefaultStream().Label {
		fmt.Fprintf(streams, "    label: %s\n", word(gjson.Escape(s.Label)))
	}
	switch {
	case s.Sparse:
		streams.WriteString("    hold: {on: any} # most rows of the file have empty cells: a value counts until another comes\n")
	case s.Lacking:
		streams.WriteString("    on_missing: marginalise # values are missing in the file\n")
	}
	window := fmt.Sprintf("length: %s", s.Length)
	if s.Days {
		streams.WriteString("    # the times count as seconds: if they are days, as in a spreadsheet, multiply them by 86400\n")
	} else if s.Relative && s.Step >= time.Second {
		streams.WriteString("    # the file has times from the start of a recording, which count as seconds: if they are ms, divide them by 1000\n")
	}
	if s.Regular {
		fmt.Fprintf(streams, "    rate: %g # rows a second\n", s.Rate)
	} else {
		fmt.Fprintf(streams, "    # the rows come irregularly, half of them after %v or less: so the windows are times\n", s.Step)
		window += fmt.Sprintf(", max_gap: %v, resample: %v", s.MaxGap, s.Resample)
	}
	fmt.Fprintf(streams, "    # %s\n    window: {%s} # hop: half of the length\n", s.Reason, window)
	fmt.Fprintf(&to.models, "  %s:\n    streams: %s\n", name, config.Flow([]string{name}))
	to.models.WriteString(batch)
}

// word returns a text as YAML has it in one line.
func word(text string) string {
	list := config.Flow([]string{text})
	return list[1 : len(list)-1]
}

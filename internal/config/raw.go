package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edge/internal/dataset"
	"edge/stream/codec"
	"edge/stream/field"
)

// Raw returns how a data file is read whose columns are signals of a stream: of the
// named one, or with "" of the one with signals among those of a model. It returns nil if
// there is none.
func (c *Config) Raw(model, name string) (*dataset.Raw, error) {
	return c.raw(c.Models[model].Streams, name)
}

// RawStream is Raw for all streams of the configuration.
func (c *Config) RawStream(name string) (*dataset.Raw, error) {
	return c.raw(field.Names(c.Streams), name)
}

func (c *Config) raw(names []string, name string) (*dataset.Raw, error) {
	if name != "" {
		if _, ok := c.Streams[name]; !ok {
			return nil, fmt.Errorf("--stream %s: no stream is called so; the configuration has %s", name, strings.Join(field.Names(c.Streams), ", "))
		}
		names = []string{name}
	}
	var found []string
	for _, n := range names {
		if s := c.Streams[n]; s.StageConfig().Set() {
			found = append(found, n)
		}
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("the streams %s have signals: --stream says which the file has", strings.Join(found, ", "))
	case len(found) == 0 && name != "":
		return nil, fmt.Errorf("--stream %s: the stream has no signals: its rows are samples", name)
	case len(found) == 0:
		return nil, nil
	}
	return &dataset.Raw{Name: found[0], Stream: c.Streams[found[0]], LateMessages: 2 * c.MQTT.InflightWindow}, nil
}

// SetLabels sets how the labels in files of a model are read: as those of its first stream, or of that
// with signals of which data makes samples.
func (c *Config) SetLabels(model string, data *dataset.Format) {
	streams := c.Models[model].Streams
	if data.Raw != nil {
		c.SetTopicLabels(model, data.Raw.Name, data)
	} else if len(streams) > 0 {
		s := c.Streams[streams[0]]
		data.OwnLabel, data.Labels.Map = codec.PlainName(s.Label), codec.NewLabelMap(s.LabelMap)
		c.SetTopicLabels(model, streams[0], data)
	}
}

// SetTopicLabels makes the words that the topics under labels have for classes labels of files of a
// stream which has no map of its own. Without a model they are those of every model of the stream.
func (c *Config) SetTopicLabels(model, stream string, data *dataset.Format) {
	words, several := map[string]string{}, map[string]bool{}
	for _, l := range c.Labels {
		if l.Model != "" && l.Model != model && (model != "" || !slices.Contains(c.Models[l.Model].Streams, stream)) {
			continue
		}
		for word, class := range l.Map {
			before, known := words[word]
			several[word] = several[word] || known && before != class
			words[word] = class
		}
	}
	maps.DeleteFunc(words, func(word, _ string) bool { return several[word] })
	if len(words) > 0 && len(c.Streams[stream].LabelMap) == 0 {
		data.Labels = dataset.LabelWords{Map: codec.NewLabelMap(words), Others: true}
	}
}

// LabelDoubt says of the classes in a file that one is called otherwise where it comes on a topic
// under labels, so that the daemon would learn it as another one; "" if there is none. SetLabels leaves such a
// word where topics differ.
func (c *Config) LabelDoubt(model string, classes []string) string {
	for _, l := range c.Labels {
		if l.Model != "" && l.Model != model {
			continue
		}
		words := codec.NewLabelMap(l.Map)
		for _, class := range classes {
			if name, err := words.Class(class); err == nil && name != class {
				return fmt.Sprintf("the label %s of the file is %q where it comes on %s (map), and a class of its own here: label_map of the stream, with the same words, makes them the same", field.Quote(class), name, strings.Join(l.Topics, ", "))
			}
		}
	}
	return ""
}

// SignalStreams returns the names of the streams with signals, sorted.
func (c *Config) SignalStreams() (names []string) {
	for _, name := range field.Names(c.Streams) {
		if c.Streams[name].StageConfig().Set() {
			names = append(names, name)
		}
	}
	return names
}

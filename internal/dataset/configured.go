package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/stream/codec"
	"edge/stream/field"
)

// Configure makes files those of a model of a configuration: with the signals of its stream, and
// with its labels.
func (o *Options) Configure(c *config.Config, model string) (err error) {
	streams := c.Models[model].Streams
	if o.Raw, err = rawAmong(c, streams, o.Stream); err != nil {
		return err
	}
	if o.Raw != nil {
		o.SetTopicLabels(c, model, o.Raw.Name)
	} else if len(streams) > 0 {
		s := c.Streams[streams[0]]
		o.OwnLabel, o.Labels.Map = codec.PlainName(s.Label), codec.NewLabelMap(s.LabelMap)
		o.SetTopicLabels(c, model, streams[0])
	}
	return nil
}

// RawOf returns how a file is read whose columns are signals of a stream: of the named one, or with
// "" of the one with signals. It returns nil if there is none.
func RawOf(c *config.Config, stream string) (*Raw, error) {
	return rawAmong(c, field.Names(c.Streams), stream)
}

// rawAmong is RawOf for some streams.
func rawAmong(c *config.Config, names []string, name string) (*Raw, error) {
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
	return &Raw{Name: found[0], Stream: c.Streams[found[0]], LateMessages: 2 * c.MQTT.InflightWindow}, nil
}

// SetTopicLabels makes the words that the topics under labels have for classes labels of files of a
// stream which has no map of its own. Without a model they are those of every model of the stream.
func (f *Format) SetTopicLabels(c *config.Config, model, stream string) {
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
		f.Labels = LabelWords{Map: codec.NewLabelMap(words), Others: true}
	}
}

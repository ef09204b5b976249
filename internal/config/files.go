package config

import (
	"fmt"
	"strings"

	"edge/stream/codec"
	"edge/stream/field"
)

// LabelWarning describes a class in a file that has another name where it comes on a topic under
// labels, so that the daemon would learn it as another one; "" if there is none. A file has such a
// word as it is where topics differ (dataset.Format.SetTopicLabels).
func (c *Config) LabelWarning(model string, classes []string) string {
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

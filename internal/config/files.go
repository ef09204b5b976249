package config

import (
	"fmt"
	"slices"
	"strings"

	"edge/stream/codec"
	"edge/stream/field"
)

// LabelWarning describes a class in a file that the daemon would not learn as that: on a topic under
// labels it has another name, or it is not among the names of the model. "" if there is none. A file
// has such a word as it is where topics differ (dataset.Format.SetTopicLabels).
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
	return c.classWarning(model, classes)
}

// classWarning describes a class in a file that is spelt almost like one of the model, or is none of a closed
// list; "" if there is none.
func (c *Config) classWarning(model string, classes []string) string {
	name, err := c.ModelName(model)
	if err != nil {
		return ""
	}
	own := c.Models[name].Learner.Classes
	for _, class := range classes {
		alike := slices.IndexFunc(own.Names, func(name string) bool { return codec.Spelling(name) == codec.Spelling(class) })
		switch {
		case slices.Contains(own.Names, class):
		case alike >= 0:
			return fmt.Sprintf("the label %s of the file and the class %s of classes.names are two classes, although they are spelt almost alike: if they are one, write it the same way, or give the stream a label_map", field.Quote(class), field.Quote(own.Names[alike]))
		case !own.Open:
			return fmt.Sprintf("the label %s of the file is not among classes.names, which are closed (open: false)", field.Quote(class))
		case !c.hasCells(name) && NumberWarning(class) != "":
			return NumberWarning(class)
		}
	}
	return ""
}

// NumberWarning describes a label of a file that is a number, in another form than that in which payloads with this
// number have the class, as 1.0; "" for others.
func NumberWarning(class string) string {
	if number := codec.Spelling(class); number != class && strings.Trim(class, "0123456789.") == "" {
		return fmt.Sprintf("the label %s of the file is a text, and the number %s in a payload is the class %[2]q: write it so, or give the stream a label_map", field.Quote(class), number)
	}
	return ""
}

// hasCells reports whether a stream of a model has cells, whose labels are texts, in place of numbers.
func (c *Config) hasCells(model string) bool {
	return slices.ContainsFunc(c.Models[model].Streams, func(stream string) bool {
		return slices.ContainsFunc(c.Streams[stream].Sources(), func(s codec.Stream) bool { return s.Format == "csv" })
	})
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

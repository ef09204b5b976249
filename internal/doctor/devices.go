package doctor

import (
	"fmt"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/topic"
)

// DeviceWarnings returns the topics of several devices that nothing tells apart: their rows, or their labels, are
// those of one.
func DeviceWarnings(c *config.Config) (warnings []string) {
	for _, name := range field.Names(c.Streams) {
		s := c.Streams[name]
		if !s.StageConfig().Set() && s.Format != codec.FormatValue {
			continue // each message is a sample of its own
		}
		sources := s.Sources()
		var common []string
		for i, source := range sources {
			key := "streams." + name
			if len(s.Raw.Inputs) > 0 {
				key += ".inputs." + s.Raw.Inputs[i].Name
			}
			if filter := untold(source); filter != "" {
				warnings = append(warnings, fmt.Sprintf("%s.topics: several devices on %s would count as one: topic_template names the level that tells them apart, or device their name in the payload", key, filter))
			}
			levels := deviceLevels(source.DeviceTemplate(), source.Entries.Device)
			if i == 0 {
				common = slices.Clone(levels)
			}
			common = slices.DeleteFunc(common, func(level string) bool { return !slices.Contains(levels, level) })
		}
		if len(common) == 0 && s.Devices() > 1 && len(sources) > 1 {
			warnings = append(warnings, fmt.Sprintf("streams.%s.inputs: no level has the same name in topic_template of all inputs, so that all devices count as one", name))
		}
	}
	return append(warnings, labelWarnings(c)...)
}

// untold returns the filter of a stream, or of one of its inputs, whose topics may be those of several devices that
// neither topic nor payload tells apart; "" without one.
func untold(s codec.Stream) string {
	ofValues := s.Format == codec.FormatValue && len(s.Fields) > 0 // which has a filter for each value
	if len(s.Entries.Device.Names()) > 0 || len(s.Entries.Where) > 0 || ofValues {
		return ""
	}
	levels := strings.Split(s.TopicTemplate, "/")
	value := slices.IndexFunc(levels, func(level string) bool { return level == codec.SignalLevel || level == codec.FeatureLevel })
	for _, filter := range s.Topics {
		plain, _ := topic.Unshare(filter)
		open, told := false, false
		for i, level := range strings.Split(plain, "/") {
			switch {
			case i == value && level != "+" && level != "#": // the filter of one value, as that of a field
				told = true
			case i == value || level != "+" && level != "#":
			case level == "+":
				open = true
				told = told || i < len(levels) && strings.HasPrefix(levels[i], "{")
			default:
				open = open || value < i
				told = told || slices.ContainsFunc(levels[min(i, len(levels)):], func(name string) bool { return strings.HasPrefix(name, "{") })
			}
		}
		if open && !told {
			return filter
		}
	}
	return ""
}

// labelWarnings returns the topics of labels that are those of all devices of a stream, since their levels have
// other names than those of the devices: of states and last labels that have several topics, and of labels that
// only seem to name a device.
func labelWarnings(c *config.Config) (warnings []string) {
	for i, l := range c.Labels {
		several := slices.ContainsFunc(l.Topics, func(filter string) bool { return strings.ContainsAny(filter, "+#") })
		what := "finds a sample of any device of stream %s by its id"
		switch named := len(deviceLevels(l.TopicTemplate, l.Device)) > 0; {
		case l.Sticky && several:
			what = "is the state of all devices of stream %s, until the next one"
		case l.Last && (several || named):
			what = "is that of the newest sample, of any device of stream %s"
		case l.Sticky || !named:
			continue
		}
		for _, of := range withoutDevice(c, l) {
			warnings = append(warnings, fmt.Sprintf("labels[%d].topics: a label on %s "+what+": %s tells the devices apart", i, strings.Join(l.Topics, ", "), of.stream, of.by))
		}
	}
	return warnings
}

// streamLevel is what tells the devices of a stream apart.
type streamLevel struct{ stream, by string }

// withoutDevice returns the streams with several devices of which a label's levels name none.
func withoutDevice(c *config.Config, l codec.Labels) (all []streamLevel) {
	own := deviceLevels(l.TopicTemplate, l.Device)
	for _, model := range field.Names(c.Models) {
		if l.Model != "" && l.Model != model {
			continue
		}
		for _, name := range c.Models[model].Streams {
			s, open := c.Streams[name], false
			var of []string
			for _, source := range s.Sources() {
				of = append(of, deviceLevels(source.DeviceTemplate(), source.Entries.Device)...)
				open = open || untold(source) != ""
			}
			at := streamLevel{stream: name}
			switch known := slices.ContainsFunc(own, func(level string) bool { return slices.Contains(of, level) }); {
			case known || l.Sticky && !s.StageConfig().Set():
				continue
			case len(of) > 0:
				at.by = "{" + of[0] + "} in topic_template"
			case l.Last && open:
				at.by = "{device} in topic_template, also of the stream,"
			default:
				continue
			}
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// deviceLevels returns the names of the levels of a device.
func deviceLevels(template string, in codec.Device) []string {
	t, err := topic.ParseTemplate(template)
	if err != nil {
		return in.Names()
	}
	return append(t.Names, in.Names()...)
}

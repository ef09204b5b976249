package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"edge/stream/codec"
	"edge/stream/topic"
)

// route is the way of a row's signals to the broker, one for each input.
type route struct {
	encoder  *codec.Encoder
	template string            // of the topic, with {device}
	topics   map[string]string // of signals with topics of their own
}

// deviceLevel, in --topic, stands for the device.
const deviceLevel = "{device}"

// deviceOf returns the device that a daemon knows the rows by, where neither the topics nor the
// payloads tell several devices apart; nil where they do. Ids of samples begin with it.
func deviceOf(s codec.Stream, given string) (*string, error) {
	device := ""
	for _, of := range s.Sources() {
		template, err := topic.ParseTemplate(of.DeviceTemplate())
		if err != nil {
			return nil, err
		}
		named := len(template.Names) > 0
		if len(of.Entries.Device.Names()) > 0 || named && (given == "" || strings.Contains(given, deviceLevel)) {
			return nil, nil
		}
		device = strings.Join(template.Capture(given), "/")
	}
	return &device, nil
}

// routesOf returns the routes of a stream's inputs.
func routesOf(s codec.Stream, given string) (all []route, err error) {
	if given != "" && len(s.Raw.Inputs) > 0 {
		return nil, errors.New("--topic is for streams without inputs, which have topics of their own")
	}
	some := strings.NewReplacer(deviceLevel, "+", codec.SignalLevel, "+").Replace(given)
	if given != "" && !overlap(s.Topics, some) {
		return nil, fmt.Errorf("it does not take %s: give --topic one that matches %s", given, strings.Join(s.Topics, " or "))
	}
	for _, of := range s.Sources() {
		r := route{template: given, topics: map[string]string{}}
		if r.encoder, err = codec.NewEncoder(of); err != nil {
			return nil, err
		}
		if of.Format == codec.FormatValue {
			maps.Copy(r.topics, of.Fields)
		}
		if r.template == "" {
			r.template = templateOf(of)
		}
		if r.template == "" && len(r.topics) == 0 {
			return nil, fmt.Errorf("its topics %s do not say where rows of a device go: give --topic, such as lab/{device}/rows", strings.Join(of.Topics, ", "))
		}
		all = append(all, r)
	}
	return all, nil
}

// templateOf returns the topic of a stream's rows, with {device} and, for values, {signal};
// "" if the configuration does not have it.
func templateOf(of codec.Stream) string {
	if of.TopicTemplate == "" {
		if len(of.Topics) != 1 {
			return ""
		}
		plain, _ := topic.Unshare(of.Topics[0])
		if strings.ContainsAny(plain, "+#$") {
			return ""
		}
		return plain
	}
	levels := strings.Split(of.TopicTemplate, "/")
	for i, level := range levels {
		switch {
		case level == codec.SignalLevel || level == codec.FeatureLevel:
			levels[i] = codec.SignalLevel
		case level == "+" || level == "#":
			return ""
		case strings.HasPrefix(level, "{"):
			levels[i] = deviceLevel // a device is all of them, with / in between
		}
	}
	return strings.Join(levels, "/")
}

// topic returns the topic of a row's payload. levels are those of the device that are not in it.
func (r *route) topic(levels []string, signal string) (string, error) {
	if t := r.topics[signal]; t != "" && !strings.ContainsAny(t, "+#") {
		return t, nil
	}
	device := strings.Join(levels, "/")
	if strings.ContainsAny(device, "+#\x00") {
		return "", fmt.Errorf("device %q cannot be a part of a topic", device)
	}
	text := strings.Replace(r.template, codec.SignalLevel, signal, 1)
	n := strings.Count(text, deviceLevel)
	if n > 0 && (n != len(levels) || slices.Contains(levels, "")) {
		return "", fmt.Errorf("device %q has %d levels of the topic %s, which has %d", device, len(levels), text, n)
	}
	for _, level := range levels {
		text = strings.Replace(text, deviceLevel, level, 1)
	}
	return text, nil
}

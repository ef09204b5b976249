package stream

import (
	"slices"
	"strings"

	"edge/stream/codec"
)

// devices are those that the topic of a label means, in one model.
type devices struct {
	named [][]string // levels of a device, "" for each that the topic does not have; nil: all devices
	alone bool       // the device of a stream that distinguishes none
	all   bool       // those of a stream of which the topic names none
}

// add adds the devices of a stream.
func (d *devices) add(levels []string, as naming) {
	switch {
	case as == anyDevice:
		d.all = true
	case len(levels) == 0:
		d.alone = true
	default:
		d.named = append(d.named, levels)
	}
}

// have reports whether a device may be one of them.
func (d *devices) have(device string) bool {
	switch {
	case d.all || d.named == nil:
		return true
	case device == "":
		return d.alone
	}
	levels := strings.Split(device, "/")
	return slices.ContainsFunc(d.named, func(named []string) bool {
		return slices.EqualFunc(named, levels, func(a, b string) bool { return a == "" || a == b })
	})
}

// String is the first of them, with + for each level that the topic does not have.
func (d *devices) String() string {
	if d.named == nil {
		return "all"
	}
	levels := slices.Clone(d.named[0])
	for i, level := range levels {
		if level == "" {
			levels[i] = "+"
		}
	}
	return deviceName(levels)
}

// misnamed is the refusal of a label whose topic, or whose member device over HTTP, names a device
// that no stream can have.
func misnamed(topic, own string, streams []*source) *codec.Refusal {
	var want []string
	why := ", as no topic_template names one (over HTTP leave device out)"
	for _, s := range streams {
		name := "…/label"
		if len(s.template.Names) > 0 {
			name += "/<" + strings.Join(s.template.Names, ">/<") + ">"
			why = ""
		}
		want = append(want, name)
	}
	return codec.Refuse(codec.UnknownID, "no device is named %.80q%s: send the label to %s", strings.TrimPrefix(topic, own+"/"), why, strings.Join(slices.Compact(want), " or "))
}

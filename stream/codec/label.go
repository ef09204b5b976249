package codec

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// labelCodec reads messages that hold only labels: JSON as jsonCodec does, or, for the
// newest sample, a bare label: ON, 1, true or "ON".
type labelCodec struct{ json jsonCodec }

func (c labelCodec) decode(payload []byte) ([]Reading, *Refusal) {
	bare := bytes.TrimSpace(payload)
	if bare[0] == '{' || bare[0] == '[' {
		if r, ok, err := c.selected(payload); ok || err != nil {
			return []Reading{r}, err
		}
		return c.json.decode(payload)
	}
	if _, err := c.json.deviceOf(payload); err != nil {
		return nil, err
	}
	if !c.json.last {
		return nil, Refuse(Malformed, "want {%q: …, %q: …}, where the id %q stands for the newest sample; topics with last: true under labels take a label without an id", c.json.id, c.json.label, LastID)
	}
	if !utf8.Valid(bare) {
		return nil, Refuse(Malformed, "not valid UTF-8")
	}
	if c.json.isNoState(bare) {
		return nil, Refuse(BadLabel, "%.40q tells that a state is not known, which is no label: if it is the name of a class, list it in map", bare)
	}
	r := Reading{ID: LastID}
	err := c.json.setBareLabel(&r, strings.Clone(string(bare)))
	if err != nil {
		return nil, err
	}
	return []Reading{r}, nil
}

// deviceOf returns the device that an object names.
func (c jsonCodec) deviceOf(payload []byte) (string, *Refusal) {
	if c.marks == nil {
		return "", nil
	}
	root := gjson.Result{}
	if CheckJSON(payload) == nil {
		root = gjson.ParseBytes(payload)
	}
	found := c.marks.find(root, nil)
	return c.marks.device(c.marks.texts(found), func() string { return keysOf(root) })
}

// setBareLabel sets the label of a reading from a payload that is the label.
func (c jsonCodec) setBareLabel(r *Reading, text string) *Refusal {
	if v := gjson.Parse(text); gjson.Valid(text) && v.Type != gjson.Null {
		return c.setLabelValue(r, v)
	}
	return c.setLabel(r, text)
}

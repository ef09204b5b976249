package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"edge/stream/field"
	"edge/stream/topic"
)

// Entries configure which rows or samples a payload has, and of which device.
type Entries struct {
	// Batch is the path of the array with several rows or samples, or with * as its last step
	// that of the object whose members have them; * alone is the payload. Default batch; with
	// "" no key has them.
	Batch string `yaml:"batch"`
	// Device is the place of the device in a payload, for topics that several devices have. The
	// path * is the key of the member that Batch takes.
	Device Device `yaml:"device"`
	// Where selects rows or samples: those that have, at each path, one of the words; the word *
	// is any value but null.
	Where map[string]field.Words `yaml:"where"`
}

// DefaultEntries returns the defaults that configs/edge.yaml documents.
func DefaultEntries() Entries { return Entries{Batch: "batch"} }

// Device is the place of a device in a payload: a path, or a path for each level of its name.
// The zero value: the topic alone names the device.
type Device struct {
	Path   string
	Levels Paths
}

// deviceName is the name of the level of a Device that is a path.
const deviceName = "device"

// Form implements the forms of a configuration value: a path, or a mapping from level to path.
func (d *Device) Form(kind field.Kind) any {
	switch {
	case kind == field.Word:
		*d = Device{}
		return &d.Path
	case kind == field.Mapping:
		*d = Device{}
		return &d.Levels
	case kind == field.Present && len(d.Levels) > 0:
		return &d.Levels
	case kind == field.Present:
		return &d.Path
	}
	return nil
}

// Forms lists the forms.
func (*Device) Forms() string {
	return "a path, such as id, or names with a path each, such as {model: model, sensor: id}"
}

// levels returns the levels in order.
func (d Device) levels() Paths {
	if d.Path != "" {
		return Paths{{deviceName, d.Path}}
	}
	return d.Levels
}

// String lists the paths.
func (d Device) String() string { return strings.Join(Entries{Device: d}.paths(), ", ") }

// Every is, as the last step of Entries.Batch, each member of an object, as a path the key of one,
// and as a word any.
const Every = "*"

// batch returns the path of the array with the entries, or of the object whose members they are.
func (e Entries) batch() (path string, members bool) {
	if e.Batch == Every {
		return "", true
	}
	return strings.CutSuffix(e.Batch, "."+Every)
}

// Names returns the names of the levels, which follow those of the topic. It is not inlined, which
// would make its many callers larger.
//
//go:noinline
func (d Device) Names() (names []string) {
	for _, level := range d.levels() {
		names = append(names, level.Name)
	}
	return names
}

// paths returns the paths of Device and Where.
func (e Entries) paths() (paths []string) {
	for _, level := range e.Device.levels() {
		paths = append(paths, level.Path)
	}
	return append(paths, field.Names(e.Where)...)
}

// Bounds of Entries.
const (
	maxLevels     = 4  // of a device in a payload
	maxConditions = 16 // of Where
)

// checkEntries checks Entries of a stream without inputs.
func (s *Stream) checkEntries() error {
	e := s.Entries
	inner := s.Format == FormatJSON || s.Format == FormatCBOR
	errs := []error{
		field.Check(inner || e.Batch == "" || e.Batch == DefaultEntries().Batch, "batch", e.Batch, "format json or cbor: in others each line, or every value, is an entry"),
		field.Check(s.named() || len(e.Device.levels()) == 0, "device", "{…}", "none with format "+s.Format+": its payloads have no names, so that only topic_template names a device; columns give csv some"),
		field.Check(s.named() || len(e.Where) == 0, "where", "{…}", "none with format "+s.Format+": its payloads have no names; columns give csv some"),
		field.Check(len(e.Where) <= maxConditions, "where", fmt.Sprintf("%d paths", len(e.Where)), fmt.Sprintf("at most %d", maxConditions)),
	}
	if path, _ := e.batch(); path != "" {
		errs = append(errs, checkPath("batch", path))
	}
	errs = append(errs, e.Device.check(s.DeviceTemplate(), s.checkMember))
	for _, l := range e.Device.levels() {
		errs = append(errs, field.Check(len(s.Stage.Signals) > 0 || s.ID != l.Path, "device", l.Path, `id: "" beside it: the id of a sample would be that of its device; or id: the path of the sample's own`))
	}
	for _, path := range field.Names(e.Where) {
		words := e.Where[path]
		errs = append(errs, s.checkMember("where."+path, path), field.Check(len(words) > 0, "where."+path, "[]", "a word, or a list of words"))
		for _, word := range words {
			errs = append(errs, field.Check(len(word) <= maxMember, "where."+path, fmt.Sprintf("%.40q", word), fmt.Sprintf("words of at most %d bytes", maxMember)))
		}
	}
	return field.Join(errs...)
}

// check checks the levels beside those of a topic template; path checks the path of one.
func (d Device) check(template string, path func(key, path string) error) error {
	named, _ := topic.ParseTemplate(template)
	levels := d.levels()
	errs := []error{field.Check(len(levels) <= maxLevels, "device", fmt.Sprintf("%d levels", len(levels)), fmt.Sprintf("at most %d", maxLevels))}
	for _, l := range levels {
		key := "device"
		if len(d.Levels) > 0 {
			key += "." + l.Name
		}
		errs = append(errs, path(key, l.Path),
			field.Check(topic.IsName(l.Name), "device", fmt.Sprintf("%.40q", l.Name), "names of levels in [a-z0-9_-]"),
			field.Check(named == nil || !slices.Contains(named.Names, l.Name), key, l.Path, "a name that topic_template does not have, such as device: {sensor: "+l.Path+"}"))
	}
	return field.Join(errs...)
}

// checkMember checks the path of a member that says something of an entry.
func (s *Stream) checkMember(key, path string) error {
	switch _, members := s.Entries.batch(); {
	case path == "":
		return field.Check(false, key, `""`, "a path")
	case path == Every:
		return field.Check(members, key, `"*"`, "a path; or the path of an object with .* after it as batch, or \"*\", beside it: * is the key of its members")
	}
	if s.Format == formatCSV && len(s.Columns) > 0 {
		return field.Check(slices.Contains(s.Columns, PlainName(path)), key, path, "the name of one of columns: "+strings.Join(s.Columns, ", "))
	}
	return s.checkPath(key, path)
}

// checkMemberPath is checkMember for payloads of JSON.
func checkMemberPath(key, path string) error {
	return (&Stream{Format: FormatJSON}).checkMember(key, path)
}

// maxMember bounds a word of Where, and the name of a device in a payload, in bytes.
const maxMember = 128

// measurement is the name of the measurement of a line of influx for Device and Where.
const measurement = "_measurement"

// mark is a member of an entry of which Device or Where speaks.
type mark struct {
	path  string
	level bool     // it is a level of the device
	words LabelMap // that Where wants; nil: a level
	any   bool     // Where wants any value
}

// marks are those of Device, in order, and then those of Where.
type marks []mark

func newMarks(e Entries) (all marks) {
	for _, l := range e.Device.levels() {
		all = append(all, mark{path: l.Path, level: true})
	}
	for _, path := range field.Names(e.Where) {
		all = append(all, mark{path: path, words: ignoredWords(e.Where[path]), any: slices.Contains(e.Where[path], Every)})
	}
	return all
}

// named reports whether one of the marks has the name of a column or a field.
func (m marks) named(name string) bool {
	return slices.ContainsFunc(m, func(of mark) bool { return PlainName(of.path) == name })
}

// beside reports whether one of the marks is, or lies in, the member of that key.
func (m marks) beside(key string) bool {
	return slices.ContainsFunc(m, func(of mark) bool { return firstKey(of.path) == key })
}

// find returns the marks of an entry: those that it does not have itself are those of what
// holds it, outer.
func (m marks) find(entry gjson.Result, outer []gjson.Result) []gjson.Result {
	if m == nil {
		return nil
	}
	found := make([]gjson.Result, len(m))
	for i := range m {
		if m[i].path != Every {
			found[i] = at(entry, m[i].path)
		}
		if !found[i].Exists() && outer != nil {
			found[i] = outer[i]
		}
	}
	return found
}

// under returns the marks of a member of an object that has the marks outer.
func (m marks) under(key gjson.Result, outer []gjson.Result) []gjson.Result {
	found := slices.Clone(outer)
	for i := range found {
		if m[i].path == Every {
			found[i] = key
		}
	}
	return found
}

// texts returns the texts of marks.
func (m marks) texts(found []gjson.Result) func(i int) (string, bool) {
	return func(i int) (string, bool) {
		if m[i].any && found[i].Type == gjson.JSON {
			return "", true
		}
		return textOf(found[i])
	}
}

// selects reports whether Where takes an entry with these texts; have says which it has.
func (m marks) selects(text func(i int) (string, bool)) bool {
	for i := range m {
		if m[i].level {
			continue
		}
		word, ok := text(i)
		if ok && !m[i].any {
			_, ok = m[i].words.class(word)
		}
		if !ok {
			return false
		}
	}
	return true
}

// device returns the levels of the device of an entry with these texts, joined by /.
func (m marks) device(text func(i int) (string, bool), keys func() string) (string, *Refusal) {
	if len(m) == 0 || !m[0].level {
		return "", nil
	}
	var name []byte
	for i := 0; i < len(m) && m[i].level; i++ {
		level, ok := text(i)
		if !ok || level == "" {
			found := keys()
			if found != "" {
				found = ": it has " + found
			}
			return "", Refuse(BadID, "no device is at %s%s", m[i].path, found)
		}
		if i > 0 {
			name = append(name, '/')
		}
		name = appendLevel(name, level)
	}
	if len(name) > maxMember {
		return "", Refuse(BadID, "the device %.40q has %d bytes, at most %d are possible", name, len(name), maxMember)
	}
	return string(name), nil
}

// appendLevel appends a level of a device's name. What a level of a topic cannot have is written
// as in a URL: a device sda of a path, /dev/sda, is %2Fdev%2Fsda.
func appendLevel(dst []byte, level string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(level) {
		if c := level[i]; c < ' ' || c == 0x7f || strings.IndexByte("/+#%", c) >= 0 {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// SameDevice returns the number of readings up to that of another device.
func SameDevice(list []Reading) int {
	n := 1
	for n < len(list) && list[n].Device == list[0].Device {
		n++
	}
	return n
}

// byDevice brings the readings of each device together, devices in the order of their first.
func byDevice(list []Reading) {
	if len(list) == 0 || SameDevice(list) == len(list) {
		return
	}
	index, counts := map[string]int{}, []int(nil) // number of readings before those of each device
	for i := range list {
		at, known := index[list[i].Device]
		if !known {
			at = len(counts)
			index[list[i].Device], counts = at, append(counts, 0)
		}
		counts[at]++
	}
	before := 0
	for i, n := range counts {
		counts[i], before = before, before+n
	}
	for _, r := range slices.Clone(list) {
		at := index[r.Device]
		list[counts[at]] = r
		counts[at]++
	}
}

// entry adds the rows of an entry, which decode reads, if it is selected.
func (w *rows) entry(v gjson.Result, decode func(gjson.Result) *Refusal) *Refusal {
	if w.marks == nil {
		return decode(v)
	}
	outer, from := w.found, len(w.list)
	defer func() { w.found = outer }()
	w.found = w.marks.find(v, outer)
	text := w.marks.texts(w.found)
	if !w.marks.selects(text) {
		return nil
	}
	device, err := w.marks.device(text, func() string { return keysOf(v) })
	if err := decode(v); err != nil {
		return err.of(device)
	}
	for i := range w.list[from:] {
		w.list[from+i].Device = cmp.Or(w.list[from+i].Device, device)
	}
	return err
}

// textOf returns the text of a member of JSON, false for one that is no word.
func textOf(v gjson.Result) (string, bool) {
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Number, gjson.True, gjson.False:
		return v.Raw, true
	}
	return "", false
}

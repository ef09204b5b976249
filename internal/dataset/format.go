package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"edge/internal/dataset/csvtext"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/field"
)

// Format is the syntax of a data file and the meaning of its columns. With the
// zero value the syntax is detected; the label is the column of that name, else the last
// one, and all others are features.
//
// A column is given by its name or, if no column has that name, by its number, 1
// being the first; 3-7 are five columns.
type Format struct {
	Label     string     // the label's column; "": that called label, else the last one
	Unlabeled bool       // the file has no label unless Label names it
	Columns   []string   // of the features, in their order; nil: all but the label
	Ignore    []string   // columns that are left out
	Device    string     // column of the device, which is no feature; "": none, or that of Raw
	Time      string     // column of the times, which is no feature; "": none, or that of Raw
	Separator rune       // between the cells; 0: a tab, ;, | or , whichever the lines have
	Decimal   rune       // '.' or ','; 0: whichever the first number with a fraction has
	Header    string     // yes, no or auto: whether the first line names the columns; "": auto
	Idle      func()     // called before the wait for more of a pipe, whose format is then detected early; nil: not called
	Labels    LabelWords // gives the class of each label; a file of signals has the map of its stream as well
	OwnLabel  string     // the label's column of a stream, where Label is empty and the file has it
	times     []int      // columns that are left out as well
	Raw       *Raw       // makes samples of a file of signals; nil: a row is a sample

	// Features are the names of a model's features, in its order; nil: all columns.
	// Other columns are left out. They are matched by name, or by order if Columns
	// lists as many or the file has no header.
	Features []string
}

// LabelWords gives the classes of the labels in a file.
type LabelWords struct {
	Map    codec.LabelMap // nil: each label is a class
	Others bool           // so is a label that the map lacks
}

// class returns the class of a label, "" for a word that is no label.
func (w LabelWords) class(text string) (string, error) {
	class, err := w.Map.Class(text)
	if err != nil && w.Others {
		return text, nil
	}
	return class, err
}

// unlabelled reports whether a cell of the label's column stands for no label.
// Words that may be classes, such as none and unknown, are labels.
func unlabelled(cell string) bool {
	switch cell {
	case "", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "?":
		return true
	}
	return false
}

// Roles of a column, besides the index of a feature.
const (
	ignored    = -1
	label      = -2
	deviceRole = -3
)

// maxColumns bounds the memory that a header can take.
const maxColumns = 100000

// CheckWidth returns an error for more features of a file than a model can have.
func CheckWidth(path string, features []string) error {
	if n := len(features); n > online.MaxFeatures {
		return fmt.Errorf("%s: %d columns are features, and a model can have %d: --columns names those that count, such as --columns 1-500; --ignore leaves columns out", path, n, online.MaxFeatures)
	}
	return nil
}

// labelColumn is the label's column, if a file has it, where nothing names another one.
const labelColumn = "label"

// OriginColumns are the first columns of the samples that edge windows prints.
var OriginColumns = []string{"id", "time", deviceColumn}

// begins reports whether names begin with others, and have more behind them.
func begins(names, others []string) bool {
	return len(names) > len(others) && slices.Equal(names[:len(others)], others)
}

// choose returns the role of each column and the names of the features. names are
// those of the header, nil without one; width is the number of columns.
func (f Format) choose(path string, names []string, width int) (roles []int, features []string, err error) {
	if f.Features == nil && f.Columns == nil && f.Label != deviceColumn && begins(names, OriginColumns) {
		f.Ignore, f.Device = slices.Concat(f.Ignore, OriginColumns), cmp.Or(f.Device, deviceColumn)
	}
	c := chooser{path: path, names: names, width: width, roles: make([]int, width)}
	for i := range c.roles {
		c.roles[i] = ignored
	}
	leftOut, deviceAt, err := c.leftOut(f)
	if err != nil {
		return nil, nil, err
	}
	labelAt, err := c.label(f, leftOut)
	if err != nil {
		return nil, nil, err
	}
	if hasIndex(names) && labelAt != 0 {
		leftOut = append(leftOut, 0)
	}
	picked, err := c.pick(f, labelAt, leftOut)
	if err != nil {
		return nil, nil, err
	}
	if features, err = c.take(f, picked); err != nil {
		return nil, nil, err
	}
	if labelAt >= 0 {
		c.roles[labelAt] = label
	}
	return c.roles, features, c.setDevice(deviceAt)
}

// pick returns the columns of the features, in their order.
func (c *chooser) pick(f Format, labelAt int, leftOut []int) (picked []int, err error) {
	if f.Columns != nil {
		if picked, err = c.find("--columns", f.Columns); err != nil {
			return nil, err
		}
	} else {
		out := make([]bool, c.width)
		for _, at := range leftOut {
			out[at] = true
		}
		for i := range c.width {
			if i != labelAt && !out[i] {
				picked = append(picked, i)
			}
		}
	}
	switch {
	case slices.Contains(picked, labelAt):
		return nil, fmt.Errorf("%s: %s is the label, so it cannot be a feature as well: --label names another column", c.path, c.word(labelAt))
	case len(picked) == 0 && c.width == 1 && labelAt == 0:
		return nil, fmt.Errorf("%s:1: no column is left for a feature: the only one, %s, is taken for the label; want features beside it; --separator names another separator than %s", c.path, c.word(0), csvtext.SeparatorWord(f.Separator))
	case len(picked) == 0:
		return nil, fmt.Errorf("%s:1: no column is left for a feature; want at least one beside the label; --separator names another separator than %s", c.path, csvtext.SeparatorWord(f.Separator))
	case f.Features != nil:
		return c.match(f, picked)
	}
	return picked, nil
}

// take gives the picked columns their roles, and returns the names of the features.
func (c *chooser) take(f Format, picked []int) (features []string, err error) {
	called := make(map[string]bool, len(picked))
	for i, at := range picked {
		if c.roles[at] != ignored {
			return nil, fmt.Errorf("%s: %s is given twice", c.path, c.word(at))
		}
		c.roles[at] = i
		switch {
		case f.Features != nil:
			features = append(features, f.Features[i])
		case c.names == nil:
			features = append(features, "f"+strconv.Itoa(i))
		case c.names[at] == "":
			return nil, fmt.Errorf("%s:1: column %d has no name: name it, or leave it out by --ignore %d", c.path, at+1, at+1)
		case !utf8.ValidString(c.names[at]):
			return nil, fmt.Errorf("%s:1: column %d is called %s, %s; --ignore %d leaves it out", c.path, at+1, field.Quote(c.names[at]), notUTF8, at+1)
		case called[c.names[at]]:
			return nil, c.twice(at)
		default:
			called[c.names[at]] = true
			features = append(features, c.names[at])
		}
	}
	return features, nil
}

// hasIndex reports whether the first column has the numbers or names of the rows, as pandas and R write
// them: it has no name, or that which pandas gives to such a column.
func hasIndex(names []string) bool {
	return len(names) > 2 && (names[0] == "" || names[0] == "Unnamed: 0")
}

// label returns the label's column, −1 without one: that which a flag names, that of the stream or called
// label, or else the last one that is no feature of the model.
func (c *chooser) label(f Format, leftOut []int) (int, error) {
	if f.Label != "" || f.Unlabeled {
		return c.one("--label", f.Label)
	}
	at := c.width - 1
	for ; at >= 0 && slices.Contains(leftOut, at); at-- {
	}
	for _, name := range []string{f.OwnLabel, labelColumn} {
		for i := at; i >= 0 && c.names != nil && name != ""; i-- {
			if c.names[i] == name && !slices.Contains(leftOut, i) && !contains(f.Columns, name) {
				return i, nil
			}
		}
	}
	if c.names == nil || f.Columns != nil || f.Features == nil {
		return at, nil
	}
	for last := at; at >= 0 && (slices.Contains(leftOut, at) || contains(f.Features, c.names[at])); at-- {
		if at == 0 {
			return -1, fmt.Errorf("%s:1: no column is left for the label: %s, the last one, is a feature of the model, and so are the others; --label names the column of the label", c.path, c.word(last))
		}
	}
	return at, nil
}

// leftOut returns the columns that are no features, the label aside, and that of the device, −1
// without one.
func (c *chooser) leftOut(f Format) (all []int, device int, err error) {
	if all, err = c.find("--ignore", f.Ignore); err != nil {
		return nil, 0, err
	}
	if device, err = c.one("--device", f.Device); err != nil {
		return nil, 0, err
	}
	at, err := c.one("--time", f.Time)
	return slices.DeleteFunc(append(append(all, device, at), f.times...), func(i int) bool { return i < 0 }), device, err
}

// setDevice sets the role of the device's column, if there is one.
func (c *chooser) setDevice(at int) error {
	if at < 0 {
		return nil
	}
	if c.roles[at] != ignored {
		return fmt.Errorf("%s: %s is the device, so it cannot be the label or a feature as well", c.path, c.word(at))
	}
	c.roles[at] = deviceRole
	return nil
}

// chooser finds columns by name or number.
type chooser struct {
	path  string
	names []string // nil: no header
	width int
	roles []int
}

// twice returns the error of a column with the name of another one.
func (c *chooser) twice(at int) error {
	return fmt.Errorf("%s:1: two columns are called %s: leave one out by --ignore %d", c.path, field.Quote(c.names[at]), at+1)
}

// word returns a column for an error message.
func (c *chooser) word(at int) string {
	if c.names != nil && c.names[at] != "" {
		return "column " + field.Quote(c.names[at])
	}
	return "column " + strconv.Itoa(at+1)
}

// one returns the column that a word names, −1 for "".
func (c *chooser) one(flag, word string) (int, error) {
	if word == "" {
		return -1, nil
	}
	at, err := c.find(flag, []string{word})
	switch {
	case err != nil:
		return -1, err
	case len(at) > 1:
		return -1, fmt.Errorf("%s: %s %s: want one column", c.path, flag, word)
	}
	return at[0], nil
}

// oneOr is one, and for "" the first of the candidates that is a column.
func (c *chooser) oneOr(flag, word string, candidates ...string) (int, error) {
	at, err := c.one(flag, word)
	for i := 0; word == "" && at < 0 && i < len(candidates); i++ {
		if candidates[i] != "" {
			at = indexOf(c.names, candidates[i])
		}
	}
	return at, err
}

// find returns the columns that words name.
func (c *chooser) find(flag string, words []string) (at []int, err error) {
	for _, word := range words {
		if i := indexOf(c.names, word); i >= 0 {
			at = append(at, i)
			continue
		}
		first, last, ok := columnNumbers(word)
		switch {
		case !ok && c.names == nil:
			return nil, fmt.Errorf("%s: %s %s: the file has no header line: give the number of a column, 1 to %d", c.path, flag, field.Quote(word), c.width)
		case !ok:
			return nil, fmt.Errorf("%s:1: no column is called %s; %s takes one of: %s", c.path, field.Quote(word), flag, listed(c.names))
		case first < 1 || last > c.width || first > last:
			return nil, fmt.Errorf("%s: %s %s: the file has the columns 1 to %d", c.path, flag, word, c.width)
		}
		for i := first; i <= last; i++ {
			at = append(at, i-1)
		}
	}
	return at, nil
}

// columnNumbers parses a number, 3, or a range, 3-7.
func columnNumbers(word string) (first, last int, ok bool) {
	from, to, several := strings.Cut(word, "-")
	first, err := strconv.Atoi(from)
	if err != nil {
		return 0, 0, false
	}
	if last = first; several {
		if last, err = strconv.Atoi(to); err != nil {
			return 0, 0, false
		}
	}
	return first, last, true
}

// match returns the columns, of those picked, that are the features of a model.
func (c *chooser) match(f Format, picked []int) ([]int, error) {
	by := make(map[string]int, len(picked))
	for _, at := range picked {
		if c.names == nil {
			break
		}
		if _, before := by[c.names[at]]; !before {
			by[c.names[at]] = at
		}
	}
	var found []int
	var missing []string
	for _, feature := range f.Features {
		at, ok := by[feature]
		if !ok {
			missing = append(missing, feature)
			continue
		}
		if i := slices.IndexFunc(picked, func(i int) bool { return i != at && c.names[i] == feature }); i >= 0 {
			return nil, c.twice(picked[i])
		}
		found = append(found, at)
	}
	switch {
	case len(missing) == 0:
		return found, nil
	case (c.names == nil || f.Columns != nil) && len(picked) == len(f.Features):
		return picked, nil
	case c.names == nil:
		return nil, fmt.Errorf("%s: no header line names the columns, and there are %d where the model has %d features: give them by --columns in the order %s",
			c.path, len(picked), len(f.Features), listed(f.Features))
	}
	var there []string
	for _, at := range picked {
		there = append(there, c.names[at])
	}
	remedy := "rename them, or list by --columns those that are meant, in the order of the features"
	if i := slices.IndexFunc(missing, func(feature string) bool {
		signal, _, of := strings.Cut(feature, ".")
		return of && contains(there, signal)
	}); i >= 0 {
		remedy = fmt.Sprintf("%s is of a window of signals, which the stream of a configuration makes: -c FILE", field.Quote(missing[i]))
	}
	return nil, fmt.Errorf("%s: the model has features that are no columns of the file: %s; the columns are %s; %s", c.path, listed(missing), listed(there), remedy)
}

// listed returns at most 20 names, for an error message.
func listed(names []string) string {
	words := slices.Clone(names)
	for i, name := range words[:min(len(words), 20)] {
		if short := field.Quote(name); short != `"`+name+`"` { // it is long, not for print, or has combining characters
			name = short
		}
		if strings.ContainsAny(name, ",; ") {
			name = `"` + strings.Trim(name, `"`) + `"`
		}
		words[i] = name
	}
	return field.Listed(words)
}

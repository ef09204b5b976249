package topic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"edge/stream/field"
)

// MaxLength is the largest length of a topic or filter in bytes (MQTT 3.1.1, section 1.5.3).
const MaxLength = 65535

// Matches reports whether filter matches topic (MQTT 3.1.1, section 4.7), and,
// if topic is itself a filter, whether filter matches all topics that it matches.
func Matches(filter, topic string) bool {
	if strings.HasPrefix(topic, "$") && (strings.HasPrefix(filter, "+") || strings.HasPrefix(filter, "#")) {
		return false
	}
	for {
		f, filterRest, filterMore := strings.Cut(filter, "/")
		if f == "#" {
			return true
		}
		t, topicRest, topicMore := strings.Cut(topic, "/")
		if f != t && (f != "+" || t == "#") {
			return false
		}
		switch {
		case filterMore && topicMore:
			filter, topic = filterRest, topicRest
		case filterMore:
			return filterRest == "#" // a/# matches a
		default:
			return !topicMore
		}
	}
}

// Overlap reports whether some topic matches both filters.
func Overlap(a, b string) bool {
	wild := func(s string) bool { return strings.HasPrefix(s, "+") || strings.HasPrefix(s, "#") }
	if wild(a) && strings.HasPrefix(b, "$") || wild(b) && strings.HasPrefix(a, "$") {
		return false
	}
	for {
		la, restA, moreA := strings.Cut(a, "/")
		lb, restB, moreB := strings.Cut(b, "/")
		if la == "#" || lb == "#" {
			return true
		}
		if la != lb && la != "+" && lb != "+" {
			return false
		}
		switch {
		case moreA && moreB:
			a, b = restA, restB
		case moreA:
			return restA == "#"
		case moreB:
			return restB == "#"
		default:
			return true
		}
	}
}

// Unshare returns the filter inside a shared subscription, $share/<group>/<filter>.
func Unshare(filter string) (plain string, shared bool) {
	rest, ok := strings.CutPrefix(filter, "$share/")
	if !ok {
		return filter, false
	}
	_, plain, _ = strings.Cut(rest, "/")
	return plain, true
}

// CheckFilter returns an error unless filter may be subscribed to.
func CheckFilter(filter string) error {
	if rest, ok := strings.CutPrefix(filter, "$share/"); ok {
		group, plain, _ := strings.Cut(rest, "/")
		if group == "" || plain == "" || strings.ContainsAny(group, "+#") {
			return fmt.Errorf("topic filter %q: want $share/<group>/<filter>", filter)
		}
		filter = plain
	}
	if err := checkText(filter); err != nil {
		return fmt.Errorf("topic filter %.80q: %w", filter, err)
	}
	levels := strings.Split(filter, "/")
	for i, level := range levels {
		if strings.Contains(level, "#") && (level != "#" || i != len(levels)-1) {
			return fmt.Errorf("topic filter %q: # stands alone and at the end", filter)
		}
		if strings.Contains(level, "+") && level != "+" {
			return fmt.Errorf("topic filter %q: + stands alone between slashes", filter)
		}
	}
	return nil
}

// Check returns an error unless a message may be published on topic.
func Check(topic string) error {
	if err := checkText(topic); err != nil {
		return err
	}
	if strings.ContainsAny(topic, "+#") {
		return errors.New("has a wildcard")
	}
	return nil
}

func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > MaxLength:
		return fmt.Errorf("has %d bytes, at most %d are allowed", len(s), MaxLength)
	case !utf8.ValidString(s):
		return errors.New("is not valid UTF-8")
	case strings.ContainsRune(s, 0):
		return errors.New("has a NUL character")
	}
	return nil
}

// IsName reports whether s may name a node, a stream or a model: [a-z0-9_-]+,
// because the name is a level of a topic. It is not inlined: it has many callers.
//
//go:noinline
func IsName(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

// Template is a topic with named levels: "factory/{device}/vibration".
type Template struct {
	levels []string // "+" for a captured or open level
	Names  []string // of the captured levels, in order
	at     []int    // index of each captured level
}

// ParseTemplate reads a template. An empty one captures nothing and matches everything. The error
// has the level that is wrong, or the reason of CheckFilter.
func ParseTemplate(s string) (*Template, error) {
	t := &Template{}
	if s == "" {
		return t, nil
	}
	for i, level := range strings.Split(s, "/") {
		if name, ok := strings.CutPrefix(level, "{"); ok {
			name, ok = strings.CutSuffix(name, "}")
			if !ok || !IsName(name) || slices.Contains(t.Names, name) {
				return nil, fmt.Errorf("topic_template %q: level %q: want {name} with a name of its own in [a-z0-9_-]", s, level)
			}
			t.Names, t.at = append(t.Names, name), append(t.at, i)
			level = "+"
		}
		t.levels = append(t.levels, level)
	}
	if err := CheckFilter(t.Filter()); err != nil {
		return nil, fmt.Errorf("topic_template %q: %w", s, err)
	}
	return t, nil
}

// Filter returns the MQTT filter of the topics that t matches: + for each name; "" of an empty one.
func (t *Template) Filter() string { return strings.Join(t.levels, "/") }

// Capture returns the captured levels of a topic that the template matches.
func (t *Template) Capture(topic string) []string {
	if len(t.at) == 0 {
		return nil
	}
	levels := strings.Split(topic, "/")
	captured := make([]string, len(t.at))
	for i, at := range t.at {
		if at < len(levels) {
			captured[i] = levels[at]
		}
	}
	return captured
}

// Arrange returns the levels that other captured under t's names, in t's order, "" for
// one that it has not captured; found is the number of the others.
func (t *Template) Arrange(other *Template, captured []string) (levels []string, found int) {
	levels = make([]string, len(t.Names))
	for i, name := range t.Names {
		if at := slices.Index(other.Names, name); at >= 0 && at < len(captured) {
			levels[i] = captured[at]
			found++
		}
	}
	return levels, found
}

// Router finds the destinations of a topic.
type Router[T comparable] struct {
	at tree // of filters, by their places in to
	to []T  // in the order of additions
}

// Add routes all topics that the subscribed filter matches to a destination.
func (r *Router[T]) Add(filter string, to T) {
	plain, _ := Unshare(filter)
	r.at.add(plain, len(r.to))
	r.to = append(r.to, to)
}

// Find appends the destinations of topic to dst, each once, in the order of their addition. A
// topic that MQTT forbids has no destination.
func (r *Router[T]) Find(dst []T, topic string) []T {
	if Check(topic) != nil {
		return dst
	}
	var space [8]int
	found := r.at.matching(space[:0], topic)
	slices.Sort(found)
	start := len(dst)
	for _, at := range found {
		if to := r.to[at]; !slices.Contains(dst[start:], to) {
			dst = append(dst, to)
		}
	}
	return dst
}

// Set is a set of filters, in the order of addition. The zero Set is empty.
type Set struct {
	filters []string
	at      tree
}

// Add adds a filter.
func (s *Set) Add(filter string) {
	plain, _ := Unshare(filter)
	s.at.add(plain, len(s.filters))
	s.filters = append(s.filters, filter)
}

// Overlap returns the first filter of the set that shares a topic with another filter, and
// whether there is one.
func (s *Set) Overlap(filter string) (first string, ok bool) {
	plain, _ := Unshare(filter)
	found := s.at.overlapping(plain)
	if len(found) == 0 {
		return "", false
	}
	return s.filters[slices.Min(found)], true
}

// mostOverlaps is the number of overlaps that Subscriptions returns at most: of n filters
// there may be n² of them.
const mostOverlaps = 20

// Subscriptions returns the filters to subscribe to: each once, and without those that
// another one covers, because a broker may send a message once for every matching
// subscription. It also returns the first pairs that still overlap.
func Subscriptions(filters []string) (subscribe []string, overlaps [][2]string) {
	distinct := field.Distinct(filters)
	var covers tree
	for i, f := range distinct {
		if _, shared := Unshare(f); !shared {
			covers.add(f, i)
		}
	}
	var set Set
	for _, f := range distinct {
		_, shared := Unshare(f)
		if shared || len(covers.matching(nil, f)) == 1 { // itself
			set.Add(f)
		}
	}
	for i, f := range set.filters {
		plain, _ := Unshare(f)
		found := set.at.overlapping(plain)
		slices.Sort(found)
		for _, j := range found {
			if j > i && len(overlaps) < mostOverlaps {
				overlaps = append(overlaps, [2]string{f, set.filters[j]})
			}
		}
		if len(overlaps) == mostOverlaps {
			break
		}
	}
	return set.filters, overlaps
}

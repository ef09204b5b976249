package topic

import "strings"

// A tree holds filters by their levels, each with a number. It finds those that match or
// overlap another one without a look at the rest. The zero tree is empty.
type tree struct {
	numbers []int // of the filters that end here
	below   map[string]*tree
}

func (t *tree) add(filter string, number int) {
	for level := range strings.SplitSeq(filter, "/") {
		next := t.below[level]
		if next == nil {
			next = new(tree)
			if t.below == nil {
				t.below = map[string]*tree{}
			}
			t.below[level] = next
		}
		t = next
	}
	t.numbers = append(t.numbers, number)
}

// matching appends the numbers of the filters that match a topic or a filter, as Matches has it.
func (t *tree) matching(dst []int, topic string) []int {
	return t.matchingRest(dst, topic, true, true)
}

// matchingRest is matching of the rest of a topic; more is false at its end.
func (t *tree) matchingRest(dst []int, rest string, more, first bool) []int {
	all := t.below["#"]
	if !more {
		if dst = append(dst, t.numbers...); all != nil { // a/# matches a
			dst = append(dst, all.numbers...)
		}
		return dst
	}
	level, rest, more := strings.Cut(rest, "/")
	open := !(first && reserved(level))
	if open && all != nil {
		dst = append(dst, all.numbers...)
	}
	if next := t.below["+"]; open && next != nil && level != "#" {
		dst = next.matchingRest(dst, rest, more, false)
	}
	if next := t.below[level]; next != nil && !wildcard(level) {
		dst = next.matchingRest(dst, rest, more, false)
	}
	return dst
}

// overlapping returns the numbers of the filters that share a topic with a filter, as Overlap
// has it, in no order.
func (t *tree) overlapping(filter string) []int { return t.overlappingRest(nil, filter, true, true) }

// overlappingRest appends those that share the rest of a filter; more is false at its end.
func (t *tree) overlappingRest(dst []int, rest string, more, first bool) []int {
	if !more {
		return t.matchingRest(dst, "", false, false)
	}
	level, rest, more := strings.Cut(rest, "/")
	visit := func(key string, next *tree) {
		switch {
		case next == nil || first && (wildcard(level) && reserved(key) || wildcard(key) && reserved(level)):
		case level == "#" || key == "#":
			dst = next.all(dst)
		default:
			dst = next.overlappingRest(dst, rest, more, false)
		}
	}
	if level == "#" { // it matches a, too
		dst = append(dst, t.numbers...)
	}
	if wildcard(level) {
		for key, next := range t.below {
			visit(key, next)
		}
		return dst
	}
	for _, key := range []string{level, "+", "#"} {
		visit(key, t.below[key])
	}
	return dst
}

// all appends the numbers of every filter.
func (t *tree) all(dst []int) []int {
	dst = append(dst, t.numbers...)
	for _, next := range t.below {
		dst = next.all(dst)
	}
	return dst
}

func wildcard(level string) bool { return level == "+" || level == "#" }

// reserved reports whether wildcards do not match a first level (MQTT 3.1.1, section 4.7.2).
func reserved(level string) bool { return strings.HasPrefix(level, "$") }

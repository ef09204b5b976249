package topic

import "strings"

// A tree holds filters by their levels, each with a value. It finds those that match or
// overlap another one without a look at the rest. The zero tree is empty.
type tree[T any] struct {
	values []T // of the filters that end here
	below  map[string]*tree[T]
}

func (t *tree[T]) add(filter string, value T) {
	for level := range strings.SplitSeq(filter, "/") {
		next := t.below[level]
		if next == nil {
			next = new(tree[T])
			if t.below == nil {
				t.below = map[string]*tree[T]{}
			}
			t.below[level] = next
		}
		t = next
	}
	t.values = append(t.values, value)
}

// matching appends the values of the filters that match a topic or a filter, as Matches has it.
func (t *tree[T]) matching(dst []T, topic string) []T {
	return t.matchingRest(dst, topic, true, true)
}

// matchingRest is matching of the rest of a topic; more is false at its end.
func (t *tree[T]) matchingRest(dst []T, rest string, more, first bool) []T {
	all := t.below["#"]
	if !more {
		if dst = append(dst, t.values...); all != nil { // a/# matches a
			dst = append(dst, all.values...)
		}
		return dst
	}
	level, rest, more := strings.Cut(rest, "/")
	open := !(first && reserved(level))
	if open && all != nil {
		dst = append(dst, all.values...)
	}
	if next := t.below["+"]; open && next != nil && level != "#" {
		dst = next.matchingRest(dst, rest, more, false)
	}
	if next := t.below[level]; next != nil && !wildcard(level) {
		dst = next.matchingRest(dst, rest, more, false)
	}
	return dst
}

// overlapping appends the values of the filters that share a topic with a filter, as Overlap
// has it, in no order.
func (t *tree[T]) overlapping(dst []T, filter string) []T {
	return t.overlappingRest(dst, filter, true, true)
}

// overlappingRest is overlapping of the rest of a filter; more is false at its end.
func (t *tree[T]) overlappingRest(dst []T, rest string, more, first bool) []T {
	if !more {
		return t.matchingRest(dst, "", false, false)
	}
	level, rest, more := strings.Cut(rest, "/")
	visit := func(key string, next *tree[T]) {
		switch {
		case next == nil || first && (wildcard(level) && reserved(key) || wildcard(key) && reserved(level)):
		case level == "#" || key == "#":
			dst = next.all(dst)
		default:
			dst = next.overlappingRest(dst, rest, more, false)
		}
	}
	if level == "#" { // it matches a, too
		dst = append(dst, t.values...)
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

// all appends the values of every filter.
func (t *tree[T]) all(dst []T) []T {
	dst = append(dst, t.values...)
	for _, next := range t.below {
		dst = next.all(dst)
	}
	return dst
}

func wildcard(level string) bool { return level == "+" || level == "#" }

// reserved reports whether wildcards do not match a first level (MQTT 3.1.1, section 4.7.2).
func reserved(level string) bool { return strings.HasPrefix(level, "$") }

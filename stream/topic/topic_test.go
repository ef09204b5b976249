package topic

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The cases of MQTT 3.1.1, section 4.7, and what follows from them.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		filter, topic string
		want          bool
	}{
		{"sport/tennis/player1/#", "sport/tennis/player1", true},
		{"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
		{"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
		{"sport/#", "sport", true},
		{"#", "a", true},
		{"#", "/a", true},
		{"sport/tennis/+", "sport/tennis/player1", true},
		{"sport/tennis/+", "sport/tennis/player1/ranking", false},
		{"sport/+", "sport", false},
		{"sport/+", "sport/", true},
		{"+/+", "/finance", true},
		{"/+", "/finance", true},
		{"+", "/finance", false},
		{"#", "$SYS/monitor", false},
		{"+/monitor/Clients", "$SYS/monitor/Clients", false},
		{"$SYS/#", "$SYS/", true},
		{"$SYS/monitor/+", "$SYS/monitor/Clients", true},
		{"a/b", "a/b", true},
		{"a/b", "A/b", false},
		{"a/b", "a", false},
		{"a", "a/b", false},
		{"a//b", "a//b", true},
		{"a/+/b", "a//b", true},
		// filters against filters
		{"a/#", "a/+", true},
		{"a/+", "a/#", false},
		{"a/+/c", "a/+/c", true},
		{"a/b", "a/+", false},
		{"#", "a/#", true},
		{"+", "#", false},
	} {
		if got := Matches(c.filter, c.topic); got != c.want {
			t.Errorf("matches(%q, %q) = %v, want %v", c.filter, c.topic, got, c.want)
		}
	}
}

// everyName returns all names of up to three levels over an alphabet.
func everyName(levels ...string) (names []string) {
	grow := []string{""}
	for depth := range 3 {
		var next []string
		for _, prefix := range grow {
			for _, l := range levels {
				name := l
				if depth > 0 {
					name = prefix + "/" + l
				}
				next = append(next, name)
			}
		}
		names, grow = append(names, next...), next
	}
	return names
}

// matches and overlap agree with the definition, on every pair of small
// filters: a covers b if it matches all that b matches, they overlap if they
// match a common topic.
func TestCoverAndOverlapByEnumeration(t *testing.T) {
	topics := everyName("a", "b", "$s", "")
	var filters []string
	for _, f := range everyName("a", "b", "+", "#", "$s") {
		if CheckFilter(f) == nil {
			filters = append(filters, f)
		}
	}
	set := map[string]map[string]bool{}
	for _, f := range filters {
		set[f] = map[string]bool{}
		for _, topic := range topics {
			if naiveMatch(strings.Split(f, "/"), strings.Split(topic, "/")) {
				set[f][topic] = true
			}
			if got := Matches(f, topic); got != set[f][topic] {
				t.Fatalf("matches(%q, %q) = %v, want %v", f, topic, got, !got)
			}
		}
	}
	var all tree
	for i, f := range filters {
		all.add(f, i)
	}
	named := func(found []int) (names []string) {
		for _, i := range found {
			names = append(names, filters[i])
		}
		return slices.Sorted(slices.Values(names))
	}
	for _, a := range filters {
		var matching, overlapping []string
		for _, b := range filters {
			if Matches(b, a) {
				matching = append(matching, b)
			}
			if Overlap(a, b) {
				overlapping = append(overlapping, b)
			}
		}
		if got := named(all.matching(nil, a)); !slices.Equal(got, slices.Sorted(slices.Values(matching))) {
			t.Errorf("filters that match %q = %q, want %q", a, got, matching)
		}
		if got := named(all.overlapping(a)); !slices.Equal(got, slices.Sorted(slices.Values(overlapping))) {
			t.Errorf("filters that overlap %q = %q, want %q", a, got, overlapping)
		}
		for _, b := range filters {
			common := false
			for topic := range set[b] {
				common = common || set[a][topic]
			}
			if got := Overlap(a, b); got != common && !(got && deep(a, b)) {
				t.Errorf("overlap(%q, %q) = %v, want %v", a, b, got, common)
			}
			if Matches(a, b) {
				for topic := range set[b] {
					if !set[a][topic] {
						t.Errorf("%q covers %q, but does not match %q", a, b, topic)
					}
				}
			}
		}
	}
}

// deep reports whether a common topic of a and b may need more levels than the
// enumeration has: a/+/+ and a/+/+/# have no common topic in it.
func deep(a, b string) bool {
	return strings.Count(a, "/") == 2 && strings.HasSuffix(b, "#") || strings.Count(b, "/") == 2 && strings.HasSuffix(a, "#")
}

// naiveMatch is the definition, by recursion over levels.
func naiveMatch(filter, topic []string) bool {
	if len(topic) > 0 && strings.HasPrefix(topic[0], "$") && len(filter) > 0 && (filter[0] == "+" || filter[0] == "#") {
		return false
	}
	return naiveLevels(filter, topic)
}

func naiveLevels(filter, topic []string) bool {
	switch {
	case len(filter) == 0:
		return len(topic) == 0
	case filter[0] == "#":
		return true
	case len(topic) == 0:
		return false
	case filter[0] == "+" || filter[0] == topic[0]:
		return naiveLevels(filter[1:], topic[1:])
	}
	return false
}

func TestCheckFilter(t *testing.T) {
	for _, f := range []string{"a", "a/b", "+", "#", "a/#", "+/a/+", "/", "$share/g/a/+", "$SYS/#", "a b/ü"} {
		if err := CheckFilter(f); err != nil {
			t.Errorf("checkFilter(%q) = %v, want nil", f, err)
		}
	}
	for _, f := range []string{"", "a#", "#/a", "a/#/b", "a+", "+a/b", "a\x00b", "\xff", "$share/g", "$share//a", "$share/g+/a", "$share/g/", strings.Repeat("a", 65536)} {
		if err := CheckFilter(f); err == nil {
			t.Errorf("checkFilter(%.40q) = nil, want an error", f)
		}
	}
}

func TestTemplate(t *testing.T) {
	tm, err := ParseTemplate("factory/{device}/+/{axis}")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tm.Filter(), "factory/+/+/+"; got != want {
		t.Errorf("filter = %q, want %q", got, want)
	}
	if got, want := tm.Capture("factory/p7/vibration/x"), []string{"p7", "x"}; !slices.Equal(got, want) {
		t.Errorf("capture = %q, want %q", got, want)
	}
	other, err := ParseTemplate("labels/{axis}/{device}")
	if err != nil {
		t.Fatal(err)
	}
	if got, found := tm.Arrange(other, []string{"x", "p7"}); found != 2 || !slices.Equal(got, []string{"p7", "x"}) {
		t.Errorf("arrange = %q, %d, want [p7 x], 2", got, found)
	}
	if got, found := tm.Arrange(&Template{Names: []string{"axis"}}, []string{"x"}); found != 1 || !slices.Equal(got, []string{"", "x"}) {
		t.Errorf("arrange of one level = %q, %d, want [\"\" x], 1", got, found)
	}
	if got, found := tm.Arrange(&Template{}, nil); found != 0 {
		t.Errorf("arrange from a template without names = %q, %d", got, found)
	}
	for _, s := range []string{"a/{b", "a/{}", "{a}/{a}", "a/{B}", "a/#/{b}"} {
		if _, err := ParseTemplate(s); err == nil {
			t.Errorf("parseTemplate(%q) = nil, want an error", s)
		}
	}
}

func TestRouterFindsEachDestinationOnce(t *testing.T) {
	var r Router[string]
	r.Add("a/+", "one")
	r.Add("a/#", "one")
	r.Add("$share/group/a/b", "two")
	r.Add("c", "three")
	if got, want := r.Find(nil, "a/b"), []string{"one", "two"}; !slices.Equal(got, want) {
		t.Errorf("find(a/b) = %q, want %q", got, want)
	}
	if got := r.Find(nil, "d"); len(got) != 0 {
		t.Errorf("find(d) = %q, want none", got)
	}
}

func TestSubscriptions(t *testing.T) {
	got, overlaps := Subscriptions([]string{"a/b", "a/+", "a/+", "x/#", "x", "+/b", "$share/g/a/b", "a/b"})
	if want := []string{"$share/g/a/b", "+/b", "a/+", "x/#"}; !slices.Equal(got, want) {
		t.Errorf("subscriptions = %q, want %q", got, want)
	}
	want := [][2]string{{"$share/g/a/b", "+/b"}, {"$share/g/a/b", "a/+"}, {"+/b", "a/+"}, {"+/b", "x/#"}}
	if !reflect.DeepEqual(overlaps, want) {
		t.Errorf("overlaps = %q, want %q", overlaps, want)
	}
}

// 60,000 filters may have 1.8 billion overlaps; each is a warning in the log.
func TestOverlapsAreBounded(t *testing.T) {
	filters := []string{"#"}
	for i := range 60_000 {
		filters = append(filters, fmt.Sprintf("$share/g/a/%d", i), fmt.Sprintf("$share/g/+/%d", i))
	}
	subscribe, overlaps := Subscriptions(filters)
	if len(subscribe) != len(filters) || len(overlaps) != mostOverlaps {
		t.Errorf("%d subscriptions with %d overlaps, want %d with %d", len(subscribe), len(overlaps), len(filters), mostOverlaps)
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	var r Router[int]
	for i, f := range []string{"a/+", "a/#", "$share/g/a/b", "+/b"} {
		r.Add(f, i)
	}
	dst := make([]int, 0, 8)
	if n := testing.AllocsPerRun(100, func() { dst = r.Find(dst[:0], "a/b") }); n > 0 || len(dst) != 4 {
		t.Errorf("find(a/b) = %v with %v allocations, want 4 destinations and none", dst, n)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("factory/{device}/vibration", "factory/p7/vibration")
	f.Add("{a}/+/{b}", "x/y/z")
	f.Add("", "anything")
	f.Fuzz(func(t *testing.T, tmpl, topic string) {
		tm, err := ParseTemplate(tmpl)
		if err != nil || tmpl == "" || Check(topic) != nil || !Matches(tm.Filter(), topic) {
			return
		}
		captured := tm.Capture(topic)
		if len(captured) != len(tm.Names) {
			t.Fatalf("template %q captured %q from %q, want %d levels", tmpl, captured, topic, len(tm.Names))
		}
		for i, level := range captured {
			if strings.Contains(level, "/") || strings.Split(topic, "/")[tm.at[i]] != level {
				t.Errorf("template %q captured %q from %q", tmpl, captured, topic)
			}
		}
	})
}

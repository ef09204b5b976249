package membership

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
	"edge/online/wire"
	"edge/stream/field"
)

func TestSplit(t *testing.T) {
	v := fleet.Version{Epoch: 3, Sequence: 9}
	for _, size := range []int{1, 99, 100, 101, 1000, 4 << 10} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 7)
		}
		head, parts := split(v, data, 100)
		if size <= 100 {
			if len(parts) > 0 || string(head) != string(data) {
				t.Errorf("%d bytes go in %d parts", size, len(parts))
			}
			continue
		}
		l, err := decodeList(head)
		if err != nil || l.Version != v || l.bytes != size || l.parts != len(parts) {
			t.Fatalf("the list is %+v, %v", l, err)
		}
		var a assembly
		for _, i := range rand.Perm(len(parts)) {
			if len(parts[i]) > 100 {
				t.Errorf("a part of %d bytes", len(parts[i]))
			}
			if err := a.addPart(i, parts[i], 1<<20, false); err != nil {
				t.Fatal(err)
			}
		}
		if a.whole() != nil {
			t.Error("parts without a list make a contribution")
		}
		a.addList(l)
		if string(a.whole()) != string(data) {
			t.Errorf("%d bytes are not put together", size)
		}
		if err := a.addPart(0, parts[0][:len(parts[0])-1], 1<<20, false); !errors.Is(err, ErrParts) {
			t.Errorf("a truncated part: %v", err)
		}
	}
}

func TestTopics(t *testing.T) {
	topics := NewTopics("plant/edge", "pump")
	for topic, want := range map[string]string{
		"plant/edge/fleet/pump/a": "a -1 true", "plant/edge/fleet/pump/a/0": "a 0 true", "plant/edge/fleet/pump/a/4096": "a 4096 true",
		"plant/edge/fleet/pump/a/4097": " 0 false", "plant/edge/fleet/pump/a/01": " 0 false", "plant/edge/fleet/pump/a/-1": " 0 false",
		"plant/edge/fleet/pump/a/b": " 0 false", "plant/edge/fleet/pump2/a": " 0 false", "plant/edge/a/pump": " 0 false",
	} {
		name, part, ok := topics.Read(topic)
		if got := fmt.Sprint(name, " ", part, " ", ok); got != want {
			t.Errorf("%s is %q, want %q", topic, got, want)
		}
	}
	if name, _, ok := topics.Read("plant/edge/fleet/pump/A b"); ok {
		t.Errorf("%q is the name of a node", name)
	}
}

func TestConfig(t *testing.T) {
	cfg := Default()
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Concept = "c"
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"concept": func(c *Config) { c.Concept = "a/b" }, "role": func(c *Config) { c.Role = "master" }, "basis": func(c *Config) { c.Basis = "common" },
		"scale": func(c *Config) { c.Scale, c.Role = ScaleOwn, RoleFollower }, "every": func(c *Config) { c.Every = 0 },
		"information": func(c *Config) { c.Information = -1 }, "interval": func(c *Config) { c.Interval = 0 },
		"max_wait":    func(c *Config) { c.MaxWait = time.Millisecond },
		"merge_every": func(c *Config) { c.MergeEvery = time.Millisecond }, "precision": func(c *Config) { c.Precision = "int8" },
		"max_message": func(c *Config) { c.MaxMessage = field.KiB }, "max_members": func(c *Config) { c.MaxMembers = 1001 },
		"stale_after": func(c *Config) { c.StaleAfter = 1 }, "members[1]": func(c *Config) { c.Members = []string{"a", "B"} }, "unseen": func(c *Config) { c.Unseen = "" },
	} {
		bad := cfg
		if change(&bad); bad.Validate() == nil || !strings.HasPrefix(bad.Validate().Error(), want+" ") {
			t.Errorf("%s: %v", want, bad.Validate())
		}
	}
	for nats, ok := range map[float64]bool{0: true, 0.5: true, 1e9: true, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false, -1e-9: false} {
		other := cfg
		other.Information = nats
		if err := other.Validate(); (err == nil) != ok {
			t.Errorf("information %g: %v", nats, err)
		}
	}
	for text, want := range map[string]string{"-2": "-2", "-inf": "-inf", "-.inf": "-inf", "0.5": "0.5"} {
		var v Trust
		if err := v.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
		}
		if got, _ := v.MarshalText(); string(got) != want {
			t.Errorf("trust %s is written as %s", text, got)
		}
	}
	for _, text := range []string{"", "nan", "inf", "x"} {
		if new(Trust).UnmarshalText([]byte(text)) == nil {
			t.Errorf("trust %q is accepted", text)
		}
	}
}

// Contributions and parts share one bound, and small parts count with the memory that they take.
func TestContributionsAndPartsAreBoundedTogether(t *testing.T) {
	w := newWorld(t)
	n := w.start("own", 0, plain)
	n.held = MaxHeld - 10*(partMemory+1)
	for i := range 100 {
		p := appendVersion(nil, partMagic, fleet.Version{Epoch: 1, Sequence: 1})
		n.Receive(w.now, fmt.Sprintf("edge/fleet/c/a/%d", i), wire.AppendChecksum(append(p, 1), 0), false)
	}
	equal(t, "parts of one byte", len(n.assemblies["a"].parts), 10)
	equal(t, "refused parts", n.counts.Refused, map[fleet.Reason]uint64{NoRoom: 90})
	n.held = 0
	n.assemblies["x"] = &assembly{bytes: MaxHeld}
	data, err := contribution(t, "b", 200, 2).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	n.Receive(w.now, "edge/fleet/c/b", data, false)
	equal(t, "contributions beside parts that take all the room", len(n.peers), 0)
	delete(n.assemblies, "x")
	n.Receive(w.now, "edge/fleet/c/b", data, false)
	equal(t, "contributions once there is room", len(n.peers), 1)
}

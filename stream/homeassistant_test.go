package stream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/homeassistant"
	"edge/stream/membership"
)

func TestHomeAssistant(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		h := newHome(t, b)
		journal := newFakeJournal()
		change := func(c *Config, m *ModelConfig) {
			c.HomeAssistant.Enabled, c.Control.Enabled = true, true
			m.Mark, m.Output = journal.mark(m.Name), codec.FormatCBOR // what Home Assistant reads stays JSON
		}
		now := func(n *Node) { n.report.home.Delay = func() time.Duration { return 0 } }
		d := startNode(t, b, journal, change, now).ready(t)

		// Before anything is known there is nothing to choose from.
		eventually(t, "the device", h.discover)
		eventually(t, "the node to read its own announcement", func() bool { return d.Stats().Received > 0 })
		if since := d.Stats().SinceMessage; since != 0 {
			t.Errorf("the own announcement counts as a message, %v ago", since)
		}
		if h.entities["class"].Get("device_class").Exists() || len(h.names("button")) > 0 {
			t.Errorf("without classes: %s", h.device)
		}
		eventually(t, "the device to be available", func() bool { return h.available("class", 0) })
		h.send("factory/p7/vibration", `[0,0]`)
		eventually(t, "a class that is unknown", func() bool { return h.state("class") == "None" && h.state("confidence") == "None" })

		// A first label makes a class, and an option.
		h.send("factory/p7/vibration", `{"features":[1,0],"label":"so \"ok\""}`, `{"features":[2,0],"label":"worn"}`, `{"features":[3,0],"label":"worn"}`)
		eventually(t, "buttons", func() bool { return slices.Equal(h.names("button"), []string{`Label so "ok"`, "Label worn"}) })
		if got := h.entities["class"].Get("options").Raw; got != `["so \"ok\"","worn"]` {
			t.Errorf("options %s", got)
		}
		h.send("factory/p7/vibration", `{"id":"x","features":[4,0]}`)
		eventually(t, "the states", func() bool {
			return h.state("class") == "worn" && h.state("confidence") == "60" && h.state("novelty") != "" && h.state("learning") == "ON"
		})
		eventually(t, "the attributes", func() bool {
			e := h.entities["class"]
			all := h.on(e.Get("json_attributes_topic").String())
			return h.render(e.Get("json_attributes_template").String(), all[len(all)-1]) == `{"so \"ok\"":0.4,"worn":0.6}`
		})

		// A person labels the last sample.
		h.label(`so "ok"`)
		eventually(t, "the label to be learnt", func() bool { return d.Stats().Learned == 4 })
		d.model.hasLearnt(t, []string{`so "ok" 1`, "worn 2", "worn 3", `so "ok" 4`})

		// The person switches learning off.
		h.toggle("Learning", "OFF")
		eventually(t, "learning to be off", func() bool { return h.state("learning") == "OFF" })
		h.send("factory/p7/vibration", `{"features":[5,0],"label":"worn"}`)
		eventually(t, "a label that is not learnt", func() bool { return d.Stats().Frozen == 1 && d.Stats().Unacked == 0 })

		// Home Assistant starts again, and so does the connection.
		announced := func() int { return len(h.on(discoveryTopic)) }
		for what, again := range map[string]func(){
			"Home Assistant's start": func() { h.send("homeassistant/status", "online") },
			"a new connection":       func() { d.cut() },
		} {
			before := announced()
			again()
			eventually(t, "an announcement after "+what, func() bool { return announced() > before })
		}
		if before := announced(); before > 0 {
			h.send("homeassistant/status", "offline")
		}

		// Switched off, the device goes, and learning is still off.
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		off := startNode(t, b, journal, func(c *Config, m *ModelConfig) { m.Mark = journal.mark(m.Name) }).ready(t)
		eventually(t, "the device to go", func() bool { return !h.discover() })
		if late := newHome(t, b); len(late.on(discoveryTopic)) > 0 {
			t.Errorf("the broker still has %q", late.on(discoveryTopic))
		}
		if off.Stats().Models["bearing"].Learning {
			t.Error("learning is on again after a restart")
		}
	})
}

// A person labels for a model without classes from Home Assistant alone: by an entry
// for the first class and by buttons from then on, the same class repeatedly. Removed
// classes are not offered any more.
func TestLabelsFromHomeAssistant(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		h := newHome(t, b)
		journal, fake := newFakeJournal(), newFakeModel(2)
		open := true
		change := func(c *Config, m *ModelConfig) {
			c.HomeAssistant.Enabled = true
			m.Mark, m.Model = journal.mark(m.Name), fake
			m.Classes.Open = open
		}
		d := startNode(t, b, journal, change).ready(t)
		samples := 0
		sample := func() {
			samples++
			h.send("factory/p7/vibration", fmt.Sprintf(`[%d,0]`, samples))
			eventually(t, "the sample", func() bool { return d.Stats().Models["bearing"].Predictions >= uint64(samples) })
		}
		learnt := func(want ...string) {
			t.Helper()
			eventually(t, fmt.Sprintf("%q to be learnt", want), func() bool { return len(fake.learnt()) >= len(want) })
			equal(t, "learnt", fake.learnt(), want)
		}
		const entry = "Label last sample as"
		eventually(t, "the entry", func() bool { _, _, ok := h.entity("text", entry); return ok && h.available("label_as", 0) })
		sample()
		if !h.enter(entry, " washing ") {
			t.Error("the first class is not sent")
		}
		learnt("washing 1")
		eventually(t, "a button", func() bool { return slices.Equal(h.names("button"), []string{"Label washing"}) })

		// The same class twice in a row.
		sample()
		if !h.label("washing") {
			t.Error("the label is not sent")
		}
		learnt("washing 1", "washing 2")
		sample()
		if !h.label("washing") {
			t.Error("the same label is not sent again")
		}
		learnt("washing 1", "washing 2", "washing 3")
		eventually(t, "the entry's state", func() bool { return h.state("label_as") == "" })
		sample()
		if !h.enter(entry, "spinning") {
			t.Error("another class is not sent")
		}
		learnt("washing 1", "washing 2", "washing 3", "spinning 4")
		sample()
		if !h.enter(entry, "spinning") {
			t.Error("the same text is not sent again")
		}
		learnt("washing 1", "washing 2", "washing 3", "spinning 4", "spinning 5")
		if h.enter(entry, "") || h.enter(entry, strings.Repeat("x", maxText+1)) {
			t.Error("Home Assistant sends what it does not send")
		}

		// A class goes while the node runs, another while it does not.
		eventually(t, "two buttons", func() bool { return slices.Equal(h.names("button"), []string{"Label spinning", "Label washing"}) })
		fake.forget("washing")
		eventually(t, "a button to go", func() bool { return slices.Equal(h.names("button"), []string{"Label spinning"}) })
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		fake.forget("spinning")
		open = false
		d = startNode(t, b, journal, change).ready(t)
		eventually(t, "the other button and the entry to go", func() bool { return len(h.names("button"))+len(h.names("text")) == 0 })
	})
}

// The class of a device that reports only changes stays, unless the configuration
// limits its time.
func TestExpiryInHomeAssistant(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		for after, want := range map[time.Duration]bool{homeassistant.DefaultConfig().ExpireAfter: true, time.Minute: false} {
			h := newHome(t, b)
			before := len(h.on(discoveryTopic)) // the retained announcement of the other node
			d := startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
				c.HomeAssistant.Enabled, c.HomeAssistant.ExpireAfter = true, after
			}).ready(t)
			eventually(t, "the announcement", func() bool { return len(h.on(discoveryTopic)) > before })
			h.send("factory/p7/vibration", `{"features":[1,0],"label":"ok"}`)
			eventually(t, "the label", func() bool { return len(d.model.learnt()) > 0 })
			h.send("factory/p7/vibration", `[2,0]`)
			eventually(t, "the class", func() bool { return h.state("class") == "ok" && h.available("class", 0) })
			if got := h.available("class", 24*time.Hour); got != want {
				t.Errorf("expire_after %v: available a day later: %v, want %v", after, got, want)
			}
			if err := d.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The announcement is bounded, however many classes come and go; a class without a
// button can be entered.
func TestManyClassesInHomeAssistant(t *testing.T) {
	cfg, m := testConfig()
	cfg.HomeAssistant.Enabled = true
	m.Classes = online.Classes{Max: 250}
	fake := m.Model.(*fakeModel)
	r := newRig(t, newFakeJournal(), cfg, m)
	for round := range 20 {
		fake.forget(fake.Snapshot().Names...)
		for k := range 40 {
			fake.Learn(t.Context(), []online.Record{{Event: online.Event{Kind: online.Observe, Label: fmt.Sprintf("%d of %d", k, round)}}})
		}
		r.node.report.announce()
	}
	all := r.published()
	d := gjson.ParseBytes(all[len(all)-1].Payload)
	checkDiscovery(t, d)
	const maxButtons, maxGone = 32, 256
	buttons, gone, entries := 0, 0, 0
	for _, e := range d.Get("components").Map() {
		switch {
		case e.Get("platform").String() == "text" && len(e.Map()) > 1:
			entries++
		case e.Get("platform").String() != "button":
		case len(e.Map()) == 1:
			gone++
		default:
			buttons++
		}
	}
	if buttons != maxButtons || gone != maxGone || entries != 1 {
		t.Errorf("%d buttons, %d removed, %d entries: want %d, %d, 1", buttons, gone, entries, maxButtons, maxGone)
	}
}

// A follower takes no labels and does not learn: it has neither buttons nor a switch.
func TestFollowerInHomeAssistant(t *testing.T) {
	cfg, m := testConfig()
	cfg.HomeAssistant.Enabled, cfg.Control.Enabled = true, true
	m.Fleet = membership.Default()
	m.Fleet.Concept, m.Fleet.Role = "c", membership.RoleFollower
	r := newRig(t, newFakeJournal(), cfg, m)
	m.Model.(*fakeModel).Learn(t.Context(), []online.Record{{Event: online.Event{Kind: online.Observe, Label: "worn"}}})
	r.node.report.announce()
	all := r.published()
	d := gjson.ParseBytes(all[len(all)-1].Payload)
	checkDiscovery(t, d)
	var present []string
	for key, e := range d.Get("components").Map() {
		if len(e.Map()) > 1 {
			present = append(present, key)
		}
	}
	slices.Sort(present)
	equal(t, "components", present, []string{"accuracy", "class", "confidence", "drift", "novelty"})
	if options := d.Get("components.class.options").String(); options != `["worn"]` {
		t.Errorf("the classes are %s", options)
	}
}

// A node that was never announced to Home Assistant publishes nothing there.
func TestWithoutHomeAssistant(t *testing.T) {
	withBrokers(t, func(t *testing.T, b *broker) {
		p := newProbe(t, b, "#")
		startNode(t, b, newFakeJournal(), nil).ready(t)
		eventually(t, "info", func() bool { return len(p.on("edge/n1/info")) > 0 && len(p.on("edge/n1/bearing/metrics")) > 0 })
		if got := p.on("homeassistant/#"); len(got) > 0 {
			t.Errorf("published %q", got)
		}
	})
}

// Names, ids and topics of several models are their own.
func TestDiscoveryOfSeveralModels(t *testing.T) {
	cfg, a := testConfig()
	cfg.HomeAssistant.Enabled = true
	b := a
	b.Name, b.Model = "motor", newFakeModel(2)
	r := newRig(t, newFakeJournal(), cfg, a, b)
	eventually(t, "the marks", func() bool {
		return r.journal.mark("bearing") == markAnnounced && r.journal.mark("motor") == markAnnounced
	})
	r.node.report.announce()
	seen := map[string]string{}
	for _, m := range r.published() {
		if !m.Retained {
			t.Errorf("%s is not retained", m.Topic)
		}
		d := gjson.ParseBytes(m.Payload)
		checkDiscovery(t, d)
		if len(d.Get("components.learning").Map()) != 1 {
			t.Errorf("a switch for learning although requests are not heard: %s", d)
		}
		for _, e := range d.Get("components").Map() {
			id := e.Get("unique_id").String()
			if other := seen[id]; id != "" && other != "" {
				t.Errorf("%s is in %s and %s", id, other, m.Topic)
			}
			seen[id] = m.Topic
		}
	}
	if topics := slices.Compact(slices.Sorted(maps.Values(seen))); !slices.Equal(topics, []string{"homeassistant/device/edge_n1_bearing/config", "homeassistant/device/edge_n1_motor/config"}) {
		t.Errorf("announced on %q", topics)
	}
}

// A stream must not receive the node's announcements to Home Assistant.
func TestOwnDiscoveryIsNotInput(t *testing.T) {
	cfg, m := testConfig()
	cfg.HomeAssistant.Enabled = true
	s := cfg.Streams["vibration"]
	s.Topics, s.TopicTemplate = []string{"homeassistant/#"}, ""
	cfg.Streams["vibration"] = s
	_, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
	if err == nil || !strings.Contains(err.Error(), "homeassistant/device/+/config") {
		t.Errorf("NewNode = %v, want a refusal of homeassistant/#", err)
	}
}

// Of two nodes whose devices have the same identifier one is announced, and the other one
// tells of it; it is announced once the device of the first is removed.
func TestSameIdentifierInHomeAssistant(t *testing.T) {
	withMosquitto(t, "", func(t *testing.T, b *broker) {
		const topic = "homeassistant/device/edge_a_b_c/config"
		p := newProbe(t, b, "homeassistant/#")
		names := func() (all []string) {
			for _, payload := range p.on(topic) {
				all = append(all, gjson.Get(payload, "device.name").String())
			}
			return all
		}
		last := func(name string) func() bool {
			return func() bool { all := names(); return len(all) > 0 && all[len(all)-1] == name }
		}
		start := func(node, model string) *daemon {
			return startNode(t, b, newFakeJournal(), func(c *Config, m *ModelConfig) {
				c.HomeAssistant.Enabled, c.Node, m.Name = true, node, model
			}).ready(t)
		}
		first := start("a", "b_c")
		eventually(t, "the first device", last("b_c (a)"))
		second := start("a_b", "c")
		eventually(t, "the clash in the log", func() bool {
			return strings.Contains(string(second.log.tail(1<<20)), "c (a_b) and b_c (a) have the same identifier, edge_a_b_c; this one is not announced")
		})
		eventually(t, "the first device again", last("b_c (a)"))
		second.report.home.AnnounceIn(0)
		first.stop()
		p.send(topic, "")
		eventually(t, "the second device", last("c (a_b)"))
	})
}

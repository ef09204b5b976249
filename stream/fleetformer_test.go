package stream

import (
	"slices"
	"strings"
	"testing"

	"edge/stream/codec"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// A fleet that the configuration has no more, by a restart, is left as by a reload, and a
// node with another name is told what to remove. What a model has retained that the configuration
// has no more is removed, and nothing else.
func TestFormerFleets(t *testing.T) {
	concept := membership.Default()
	concept.Concept = "c"
	for name, tc := range map[string]struct {
		known   []string
		fleet   membership.Config
		cleared []string
		renamed string // in the events; none without it
	}{
		"first start":        {nil, concept, nil, ""},
		"as before":          {[]string{"edge/n1/bearing/label/#", "edge/fleet/c/+", "edge/fleet/c/+/+"}, concept, nil, ""},
		"no fleet any more":  {[]string{"edge/n1/bearing/label/#", "edge/fleet/c/+"}, membership.Config{}, []string{"edge/fleet/c/n1"}, ""},
		"another concept":    {[]string{"edge/n1/bearing/label/#", "edge/fleet/d/+"}, concept, []string{"edge/fleet/d/n1"}, ""},
		"another name":       {[]string{"edge/old/bearing/label/#", "edge/old/request/#", "edge/fleet/c/+"}, concept, nil, "mosquitto_sub -t 'edge/old/#' -t 'edge/fleet/c/old/#' --retained-only"},
		"a name, no fleet":   {[]string{"edge/old/bearing/label/#"}, membership.Config{}, nil, "mosquitto_sub -t 'edge/old/#' --retained-only --remove-retained"},
		"a device":           {[]string{"edge/old/bearing/label/#", "homeassistant/device/edge_old_bearing/config"}, membership.Config{}, nil, "mosquitto_sub -t 'edge/old/#' -t 'homeassistant/device/edge_old_bearing/config' --ret"},
		"another base":       {[]string{"ml/old/n1/bearing/label/#", "ml/old/fleet/c/+", "ml/old/fleet/c/+/+", "homeassistant/device/edge_n1_bearing/config"}, concept, nil, "this node was ml/old/n1 before, and the broker keeps what it has published so, which counts in a fleet: unless another device has that name now, mosquitto_sub -t 'ml/old/n1/#' -t 'ml/old/fleet/c/n1/#' --retained-only"},
		"base and name":      {[]string{"ml/old/bearing/label/#"}, concept, nil, "mosquitto_sub -t 'ml/old/#' --retained-only"},
		"labels elsewhere":   {[]string{"plant/n1/bearing/label/#", "edge/n1/bearing/label/#"}, concept, nil, ""},
		"of no model":        {[]string{"plant/n1/pump/label/#"}, concept, nil, ""},
		"no such model":      {[]string{"edge/n1/pump/label/#", "homeassistant/device/edge_n1_pump/config"}, membership.Config{}, []string{"edge/n1/pump/latest", "edge/n1/pump/metrics", "homeassistant/device/edge_n1_pump/config"}, ""},
		"topics of sensors":  {[]string{"other/fleet/c/+", "fleet/c/+", "edge/fleet/c"}, concept, nil, ""},
		"in parts, no fleet": {[]string{"edge/fleet/c/+", "edge/fleet/c/+/+"}, membership.Config{}, []string{"edge/fleet/c/n1", "edge/fleet/c/n1/0", "edge/fleet/c/n1/15"}, ""},
	} {
		cfg, m := testConfig()
		cfg.Node, m.Fleet, cfg.MQTT.PersistentSession = "n1", tc.fleet, false // the session makes no difference
		node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Subscriptions: &fakeMemory{filters: tc.known}})
		var cleared, events []string
		for p, ok := node.outbox.Pop(); ok; p, ok = node.outbox.Pop() {
			switch {
			case strings.HasSuffix(p.Topic, "/event"):
				events = append(events, string(p.Payload))
			case p.Retained && len(p.Payload) == 0:
				cleared = append(cleared, p.Topic)
			default:
				t.Errorf("%s: a message on %s", name, p.Topic)
			}
		}
		for _, topic := range tc.cleared {
			if !slices.Contains(cleared, topic) {
				t.Errorf("%s: %s is not removed", name, topic)
			}
		}
		if len(tc.cleared) < 2 && len(cleared) != len(tc.cleared) {
			t.Errorf("%s: removed are %q", name, cleared)
		}
		if (tc.renamed != "") != (len(events) > 0) || !strings.Contains(strings.Join(events, ""), tc.renamed) {
			t.Errorf("%s: events %q", name, events)
		}
	}
}

// Another name without mqtt.client_id is another client, whose former session the command ends.
func TestFormerSession(t *testing.T) {
	for name, tc := range map[string]struct {
		client, known, want string
	}{
		"the default":   {"", "edge/old/bearing/label/#", "mosquitto_sub -i " + mqtt.DefaultClientID("old") + " -t 'edge/old/#'"},
		"a client_id":   {"bearings", "edge/old/bearing/label/#", "mosquitto_sub -t 'edge/old/#'"},
		"the same name": {"", "ml/old/n1/bearing/label/#", "mosquitto_sub -t 'ml/old/n1/#'"},
	} {
		cfg, m := testConfig()
		cfg.Node, cfg.MQTT.ClientID = "n1", tc.client
		node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Subscriptions: &fakeMemory{filters: []string{tc.known}}})
		p, ok := node.outbox.Pop()
		if !ok || !strings.Contains(string(p.Payload), tc.want) {
			t.Errorf("%s: %s, want %q", name, p.Payload, tc.want)
		}
	}
}

// Labels of another node that the configuration reads are no former name.
func TestLabelsOfAnotherNode(t *testing.T) {
	const topic = "edge/other/bearing/label/#"
	cfg, m := testConfig()
	l := codec.DefaultLabels()
	l.Topics = []string{topic}
	cfg.Node, cfg.Labels = "n1", []codec.Labels{l}
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Subscriptions: &fakeMemory{filters: []string{topic}}})
	if p, ok := node.outbox.Pop(); ok {
		t.Errorf("a message on %s: %s", p.Topic, p.Payload)
	}
}

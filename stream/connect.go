package stream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"edge/online/active"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/membership"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

const labelsName = "labels" // name of the sources of labels

// Levels of the topics that a node publishes, below <base>/<node>/ and below that of a
// model. request, log, schema and query are reserved.
var (
	nodeTopics  = []string{"state", "info", "health", "event", "log", "request", "response", mqtt.CursorLevel}
	modelTopics = []string{"prediction", "latest", "metrics", "reject", "schema", "query"}
)

// newNode checks the configuration, and connects streams, labels and models. It returns
// the filters to subscribe to.
func newNode(cfg Config, deps Deps) (*Node, []string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	n := &Node{
		cfg: cfg, log: deps.Log, previous: deps.After, program: deps.Program, background: make(backgroundQueue, maxBackground),
		counts: new(counters), sourceCounts: map[string]*sourceCounts{}, modelCounts: map[string]*modelCounts{},
	}
	if n.previous != nil {
		n.counts, n.sourceCounts, n.modelCounts = n.previous.counts, maps.Clone(n.previous.sourceCounts), maps.Clone(n.previous.modelCounts)
	}
	n.unrouted = n.withCounts(&source{name: "none"})
	if err := n.connectModels(deps.Models); err != nil {
		return nil, nil, err
	}
	if deps.Courses {
		for _, st := range n.stages() {
			st.opts.Courses, st.opts.Windows = true, &st.filling
		}
	}
	if err := n.startStages(deps.Windows); err != nil {
		return nil, nil, err
	}
	filters, err := n.filters()
	n.fleets = n.newFleets()
	return n, append(filters, n.fleets.filters()...), field.Join(err, n.checkFleets())
}

// connectModels makes the sources and the models, and connects them.
func (n *Node) connectModels(configs []ModelConfig) error {
	streams, err := n.newStreams()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range configs {
		m, err := n.newModel(c, streams)
		errs = append(errs, err)
		if m != nil {
			n.models = append(n.models, m)
		}
	}
	if len(configs) == 0 {
		errs = append(errs, errors.New("models: want at least one"))
	}
	for _, name := range field.Names(streams) {
		if len(streams[name].models) == 0 {
			n.log.Warn("no model uses this stream; it is not subscribed to", "stream", name)
			continue
		}
		n.addStream(streams[name])
	}
	if err := n.addLabelSources(field.Join(errs...) == nil); err != nil {
		errs = append(errs, err)
	}
	n.addOwnSources()
	return field.Join(errs...)
}

// newStreams returns a source for each configured stream, by name.
func (n *Node) newStreams() (map[string]*source, error) {
	streams, identities := map[string]*source{}, n.identities()
	for _, name := range field.Names(n.cfg.Streams) {
		s := n.cfg.Streams[name]
		src, err := newSource(name, s)
		if err != nil {
			return nil, err
		}
		if src.decoder, err = codec.NewDecoder(s); err != nil {
			return nil, err
		}
		src.identity = identities[name]
		if err := n.newStage(s, src); err != nil {
			return nil, err
		}
		if s.Format == codec.FormatValue && src.stage == nil {
			src.joiners = newJoiners(s, n.counts)
		}
		streams[name] = src
	}
	return streams, nil
}

// newSource returns the source of a stream's topics, or of those of an input, without its
// decoder.
func newSource(name string, s codec.Stream) (src *source, err error) {
	src = &source{
		name: name, key: "streams." + name + ".topics", filters: s.Topics, features: s.FeatureNames(),
		allowRetained: s.AcceptsRetained(), impute: s.OnMissing == codec.OnMissingImpute, qos: s.Raw.QoS,
	}
	if src.template, err = topic.ParseTemplate(s.DeviceTemplate()); err == nil {
		src.template.Names = append(src.template.Names, s.Entries.Device.Names()...)
	}
	return src, err
}

// addStream adds the source of a stream, or those of its inputs.
func (n *Node) addStream(src *source) {
	n.withCounts(src)
	if src.stage == nil || len(src.stage.inputs) == 0 {
		n.sources = append(n.sources, src)
		return
	}
	for _, in := range src.stage.inputs {
		in.models = src.models
		n.sources = append(n.sources, n.withCounts(in))
	}
}

// newModel returns a model that its streams feed. The model is nil if the error prevents
// further checks.
func (n *Node) newModel(c ModelConfig, streams map[string]*source) (*modelState, error) {
	if !topic.IsName(c.Name) || slices.Contains(nodeTopics, c.Name) || n.model(c.Name) != nil {
		return nil, fmt.Errorf("models.%s: want unique names in [a-z0-9_-], and none of %s", c.Name, strings.Join(nodeTopics, ", "))
	}
	errs := []error{field.Within("models."+c.Name+".pending", c.Pending.Validate())}
	if err := CheckOutput(cmp.Or(c.Output, codec.FormatJSON)); err != nil {
		return nil, field.Join(append(errs, fmt.Errorf("models.%s.output %w", c.Name, err))...)
	}
	if c.Fleet.Follows() {
		c.Model, c.Pending.Max = &follower{Model: c.Model, make: c.Follow}, 0
	}
	m := &modelState{
		ModelConfig: c, rejects: newRateLimits(rejectEvery, rejectBurst),
		topicNames: newTopicNames(n.cfg.prefix() + c.Name),
	}
	if err := m.feedFrom(streams); err != nil {
		return nil, field.Join(append(errs, field.Within("models."+c.Name, err))...)
	}
	if m.modelCounts = n.modelCounts[c.Name]; m.modelCounts == nil {
		m.modelCounts = new(modelCounts)
		n.modelCounts[c.Name] = m.modelCounts
	}
	if n.previous.model(c.Name) == nil { // otherwise Inherit sets whether it learns
		m.expectOff(c.Mark&markFrozen != 0 || c.Fleet.Follows())
	}
	if !c.Fleet.Follows() && m.expectedOff() {
		n.log.Warn("learning is switched off by an earlier request; labels are ignored until another request switches it on", "model", c.Name,
			"topic", n.cfg.prefix()+"request/learning/"+c.Name, "control", n.cfg.Control.Enabled)
	}
	if c.Active.Enabled() {
		m.asker = active.NewSelector(c.Active, c.Seed)
		errs = append(errs, field.Within("models."+c.Name+".active", c.Active.Validate()))
	}
	if c.Output == codec.FormatCBOR {
		var err error
		if m.cbor, err = newCBOREncoder(); err != nil {
			errs = append(errs, fmt.Errorf("models.%s.output cbor: %w", c.Name, err))
		}
	}
	m.last.none, m.committedLast.none = true, true
	m.classes = newClasses(c.Classes, m.Model.Status)
	m.classes.foresee(c.Unlearnt, 0)
	m.Unlearnt = nil
	return m, field.Join(errs...)
}

// addLabelSources adds the sources of labels without samples: the configured ones, and
// the label topic of each model. An unknown model of the configuration is an error if
// all models are valid.
func (n *Node) addLabelSources(allModels bool) error {
	var errs []error
	for i, l := range n.cfg.Labels {
		t, err := topic.ParseTemplate(l.TopicTemplate)
		if err != nil {
			return err
		}
		t.Names = append(t.Names, l.Device.Names()...)
		src := &source{name: labelsName, key: fmt.Sprintf("labels[%d].topics", i), filters: l.Topics, decoder: codec.NewLabelDecoder(l), template: t}
		for _, m := range n.models {
			if l.Model == "" || l.Model == m.Name {
				src.models = append(src.models, m)
			}
		}
		if len(src.models) == 0 && allModels {
			errs = append(errs, fmt.Errorf("labels[%d].model %s: there is no such model", i, l.Model))
			allModels = false
		}
		if l.Sticky {
			errs = append(errs, n.addSticky(src, l))
		}
		n.sources = append(n.sources, n.withCounts(src))
	}
	for _, m := range n.models {
		n.sources = append(n.sources, n.withCounts(&source{
			name: labelsName, filters: []string{m.labelTopic + "/#"}, // matches …/label as well
			decoder: codec.NewLabelDecoder(codec.DefaultLabels()), template: &topic.Template{}, models: []*modelState{m},
			ownTopic: m.labelTopic,
		}))
	}
	return field.Join(errs...)
}

// addOwnSources adds the sources of requests and of Home Assistant.
func (n *Node) addOwnSources() {
	own := func(name, filter string, handle func(*item, *source) error) {
		n.sources = append(n.sources, n.withCounts(&source{
			name: name, filters: []string{filter}, decoder: codec.NewLabelDecoder(codec.DefaultLabels()), template: &topic.Template{},
			ownTopic: filter, handle: handle,
		}))
	}
	if n.cfg.Control.Enabled {
		own(requestsName, n.cfg.prefix()+"request/#", func(it *item, _ *source) error { return n.request(it) })
	}
	if h := n.cfg.HomeAssistant; h.Enabled {
		own(homeAssistantName, h.StatusTopic, func(it *item, _ *source) error { n.report.home.Status(it.msg.Payload); return nil })
		for _, m := range n.models {
			own(homeAssistantName, h.Announcement(n.cfg.Node, m.Name), func(it *item, _ *source) error { n.report.readAnnouncement(m, it.msg); return nil })
		}
	}
}

// feedFrom connects the model to its streams.
func (m *modelState) feedFrom(streams map[string]*source) error {
	if len(m.Streams) == 0 {
		return errors.New("streams []: want at least one")
	}
	var errs []error
	for _, name := range m.Streams {
		src := streams[name]
		if src == nil {
			errs = append(errs, fmt.Errorf("streams: there is no stream %q; there are %s", name, strings.Join(field.Names(streams), ", ")))
			continue
		}
		if slices.Contains(m.streams, src) {
			errs = append(errs, fmt.Errorf("streams: %s occurs twice", name))
			continue
		}
		if m.Features == nil {
			m.Features = slices.Clone(src.features)
		}
		f := feed{to: m}
		if !slices.Equal(m.Features, src.features) {
			for _, feature := range m.Features {
				at := slices.Index(src.features, feature)
				if at < 0 {
					errs = append(errs, fmt.Errorf("features: stream %s has no feature %q", name, feature))
				}
				f.pick = append(f.pick, at)
			}
		}
		src.feeds, src.models, m.streams = append(src.feeds, f), append(src.models, m), append(m.streams, src)
	}
	if d := m.Model.Snapshot().Dim(); len(errs) == 0 && d != len(m.Features) {
		errs = append(errs, fmt.Errorf("features: %d names, but the model has %d features", len(m.Features), d))
	}
	return field.Join(errs...)
}

// filters returns the filters to subscribe to.
func (n *Node) filters() ([]string, error) {
	var filters []string
	var errs []error
	var outputs topic.Set
	for _, own := range n.outputs() {
		outputs.Add(own)
	}
	for _, src := range n.sources {
		for _, f := range src.filters {
			if own, ok := outputs.Overlap(f); ok && src.ownTopic == "" {
				errs = append(errs, fmt.Errorf("%s: %s would receive the node's own output %s: name the topics of the sensors, such as factory/+/vibration", src.key, f, own))
			}
			filters = append(filters, f)
		}
	}
	subscribe, overlaps := topic.Subscriptions(filters)
	for _, pair := range overlaps {
		n.log.Warn("two subscriptions overlap; some brokers send a message twice that matches both", "one", pair[0], "other", pair[1])
	}
	return subscribe, field.Join(errs...)
}

// outputs returns filters for all topics that the node publishes on.
func (n *Node) outputs() (filters []string) {
	prefix := n.cfg.prefix()
	for _, m := range n.models {
		for _, t := range modelTopics {
			filters = append(filters, prefix+m.Name+"/"+t)
		}
		filters = append(filters, m.predictionTopic+"/#")
	}
	for _, t := range nodeTopics {
		filters = append(filters, prefix+t)
	}
	filters = append(filters, prefix+"request/#", prefix+"response/#")
	filters = append(filters, n.fleetTopics()...)
	if h := n.cfg.HomeAssistant; h.Enabled {
		filters = append(filters, h.DiscoveryPrefix+"/device/+/config")
	}
	return filters
}

func (n *Node) router() *topic.Router[*source] {
	r := new(topic.Router[*source])
	for _, src := range n.sources {
		for _, f := range src.filters {
			r.Add(f, src)
		}
	}
	return r
}

func (n *Node) maxPayload() (largest int) {
	for _, src := range n.sources {
		largest = max(largest, src.decoder.MaxPayload())
	}
	if len(n.fleets.members) > 0 {
		largest = max(largest, membership.MaxPayload)
	}
	return largest
}

// limits returns the node's bounds.
func (n *Node) limits() Limits {
	payload := map[string]int{}
	for _, src := range n.sources {
		payload[src.name] = max(payload[src.name], src.decoder.MaxPayload())
	}
	if _, ok := payload[requestsName]; ok {
		payload[requestsName] = int(MaxRequest) // of larger ones its decoder reads enough to answer
	}
	return Limits{
		MaxPayload: payload, InflightWindow: n.cfg.MQTT.InflightWindow, RingMessages: n.cfg.MQTT.Ring.MaxMessages, RingBytes: n.cfg.MQTT.Ring.MaxBytes,
		LossWindow: n.cfg.LossWindow.Seconds(), OutboxMessages: n.cfg.Outbox.MaxMessages, OutboxBytes: n.cfg.Outbox.MaxBytes,
	}
}

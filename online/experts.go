package online

import (
	"edge/model"
	"edge/online/fleet"
	"edge/online/forest"
	"edge/online/wire"
)

// Switch is on or off.
type Switch string

const (
	On  Switch = "on"
	Off Switch = "off"
)

// ForestSize is the size of the forest among the experts.
type ForestSize string

const (
	FullForest  ForestSize = "on"    // 50 trees of 64 leaves, 1000 stored samples
	SmallForest ForestSize = "small" // 32 trees of 64 leaves, 500 stored samples
	NoForest    ForestSize = "off"
	// StoredForest is the forest of the state from which a learner is restored, and
	// none for a new learner: for a reader without the model's configuration.
	StoredForest ForestSize = ""
)

// Experts configures the models beside the Gaussian process that answer together with
// it, to the degree that they have improved its answers.
type Experts struct {
	// Regression is soft-max regression on the standardised features, for trends
	// through the whole space. C·(D+1) numbers. Default on.
	Regression Switch `yaml:"regression"`
	// Forest is an ensemble of random partitions of the raw features, for
	// thresholds and their interactions: on, small or off. Its size is the larger
	// part of a state of few classes. Default on.
	Forest ForestSize `yaml:"forest"`
}

const (
	forestLeaves = 64
	leastStored  = 100     // samples of any number of features
	mostStored   = 1 << 20 // bytes of the stored samples' features, beyond these
)

// exists reports whether a new learner has a forest.
func (f ForestSize) exists() bool { return f == FullForest || f == SmallForest }

// sizes returns the sizes of a forest for D features; without trees where there is
// none. Samples of more than 262 features are stored in a smaller number.
func (f ForestSize) sizes(features int) (s forest.Sizes) {
	switch f {
	case FullForest:
		s = forest.Sizes{Trees: 50, Leaves: forestLeaves, Stored: 1000}
	case SmallForest:
		s = forest.Sizes{Trees: 32, Leaves: forestLeaves, Stored: 500}
	}
	s.Stored = min(s.Stored, max(leastStored, mostStored/(4*max(features, 1))))
	return s
}

// ForestMemory is the memory in bytes that the forest takes with C classes, with the
// forests of two snapshots.
func (cfg *Config) ForestMemory(classes int) uint64 {
	d := len(cfg.Features)
	return cfg.Experts.Forest.sizes(d).Memory(d, classes)
}

// FleetMemory estimates the memory in bytes that other members of a fleet take, with C classes. each
// is that of one contribution as it is kept. all is that of the contributions, and, before and after a
// merge, of their sums, which are as large as the own sites, of their forests and, where the fleet
// answers for unseen classes, of the posterior that does; and that of the tuned weights of the own
// forest.
func (cfg *Config) FleetMemory(members, classes int) (each, all uint64) {
	h, m, d := len(cfg.fleetHorizons()), cfg.Inducing, len(cfg.Features)
	f, packed := cfg.Experts.Forest.sizes(d), h*classes*(m*m+3*m)/2
	const weight, split = 2, 7 // of a forest, as it is sent
	n := packed*cfg.Fleet.precision().Bytes() + 8*d*(m+3+model.RankPoints) + f.Trees*f.Leaves*(weight*classes+split)
	if cfg.Fleet.Unseen == MixUnseen {
		points := fleet.UnseenPoints * m
		all = 2 * uint64(classes*(8*points*points+4*points*(points+3)/2))
	}
	all += uint64(members)*uint64(n) + 8*7*uint64(packed) + 2*uint64(min(members, fleet.MaxForests))*f.Frozen(classes) + f.Tuned(classes)
	return uint64(n), all
}

// startForest begins an empty forest, if the configuration has one.
func (l *Learner) startForest() {
	d, size := len(l.cfg.Features), l.cfg.Experts.Forest
	if size.exists() {
		l.forest = forest.New(forest.Config{Features: d, Sizes: size.sizes(d), Seed: l.cfg.Seed}, l.view)
	}
}

// decodeExperts reads blends, with or without a forest among their experts. Without a
// configuration of it there is one from now on.
func (l *Learner) decodeExperts(d *wire.Decoder, forest bool, decode func(*wire.Decoder, bool)) {
	if forest && l.cfg.Experts.Forest == StoredForest {
		l.cfg.Experts.Forest = FullForest
		l.startForest()
		l.mix.AddForest()
		l.cfg.Experts.Forest = StoredForest // until its size is known
	}
	decode(d, forest)
}

// decodeOwn reads the answer without the fleet.
func (l *Learner) decodeOwn(d *wire.Decoder) {
	l.mix.DecodeOwn(d)
	l.publishFleet()
}

// decodeForest reads the forest. One of other sizes than the configured one is not
// carried on: the forest begins empty, and has to show its worth.
func (l *Learner) decodeForest(d *wire.Decoder) {
	sizes, features := forest.DecodeSizes(d), len(l.cfg.Features)
	configured := &l.cfg.Experts.Forest
	if *configured == StoredForest {
		*configured = FullForest
		if sizes == SmallForest.sizes(features) {
			*configured = SmallForest
		}
		l.startForest()
	}
	if sizes == configured.sizes(features) {
		l.forest.Decode(d)
		return
	}
	d.Bytes(d.Len(), "forest")
	l.mix.RestartForest()
}

package membership

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/online"
	"edge/online/fleet"
	"edge/stream/field"
	"edge/stream/topic"
)

// Role is that of a node in a fleet.
type Role string

const (
	RoleMember   Role = "member"   // it learns, publishes and merges
	RoleFollower Role = "follower" // it answers by the members' contributions, and neither learns nor publishes
)

// Values of Config.Basis.
const (
	BasisOwn    = "own"
	BasisShared = "shared"
)

// Values of Config.Scale.
const (
	ScaleShared = "shared"
	ScaleOwn    = "own"
)

// Trust is a number of standard errors, with -inf.
type Trust float64

// MarshalText writes "-inf" or a plain number.
func (t Trust) MarshalText() ([]byte, error) {
	if math.IsInf(float64(t), -1) {
		return []byte("-inf"), nil
	}
	return strconv.AppendFloat(nil, float64(t), 'g', -1, 64), nil
}

// UnmarshalText reads the text that MarshalText writes, and YAML's "-.inf".
func (t *Trust) UnmarshalText(text []byte) error {
	s := strings.Replace(strings.ToLower(strings.TrimSpace(string(text))), "-.inf", "-inf", 1)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 1) {
		return fmt.Errorf("trust %q: want a number of standard errors or -inf", text)
	}
	*t = Trust(v)
	return nil
}

// Config configures a model's part in a fleet.
type Config struct {
	// Concept names the common task of several nodes, a level of their topics:
	// [a-z0-9_-]. Empty, the default: the model learns alone.
	Concept string `yaml:"concept"`
	// Role is member or follower. A follower answers by the members' contributions; it
	// neither learns nor publishes. Default member.
	Role Role `yaml:"role" jsonschema:"enum=member,enum=follower"`
	// Basis: own, each member has inducing points and a kernel of its own; shared, all
	// begin with those of one, and average them. Default own.
	Basis string `yaml:"basis" jsonschema:"enum=own,enum=shared"`
	// Scale: shared, features have the same units on all devices; own, devices differ by
	// gain and offset, and what counts is the distance from the mean of the device in its
	// standard deviations. Default shared.
	Scale string `yaml:"scale" jsonschema:"enum=shared,enum=own"`
	// Every is the number of own labels between publications. Default 100, at least 1.
	Every uint64 `yaml:"every"`
	// Interval is the least time between publications. Default 60s, at least 1s.
	Interval time.Duration `yaml:"interval"`
	// Information, in nats, leads to a publication before there are Every labels: once
	// the labels since the last one have brought this much, that is the sum of
	// -log p(label) by the predictions before they were learnt. Default 2.5, finite and
	// at least 0; 0 turns it off.
	Information float64 `yaml:"information"`
	// MaxWait is the longest time that labels wait for a publication: then it comes before
	// there are Every labels, but not before Interval, if they are 1 % of those published or
	// more. Default 1h, at least 1s; 0 turns it off.
	MaxWait time.Duration `yaml:"max_wait"`
	// MergeEvery is the least time between merges, each of which the journal keeps.
	// Default 5m, at least 1s.
	MergeEvery time.Duration `yaml:"merge_every"`
	// Horizons are those of the model that are exchanged. Empty, the default: all.
	Horizons []online.Horizon `yaml:"horizons"`
	// Precision of the published numbers: bfloat16 or float32. Default bfloat16.
	Precision string `yaml:"precision" jsonschema:"enum=bfloat16,enum=float32"`
	// MaxMessage bounds a published message; a larger contribution goes in parts.
	// Default 96KiB, range 4KiB to 1MiB.
	MaxMessage field.ByteSize `yaml:"max_message"`
	// MaxMembers bounds the other members; those with the fewest labels are left out.
	// Default 64, range 1 to 1000.
	MaxMembers int `yaml:"max_members"`
	// StaleAfter leaves a member out that has published nothing for this long. 0, the
	// default: it stays. Otherwise at least 1s.
	StaleAfter time.Duration `yaml:"stale_after"`
	// Members are the names of the nodes whose contributions are used. Empty, the
	// default: all that the broker lets publish.
	Members []string `yaml:"members"`
	// Trust is the least mean gain in log probability of the own labels by a
	// contribution, in standard errors; one below it is left out of the merge. -inf
	// turns the test off. Default -2. Before there are 50 own labels the other members
	// decide instead.
	Trust Trust `yaml:"trust"`
	// Unseen is the use of the members' answer for classes with few own labels:
	// report publishes it beside the prediction, mix puts it into the prediction. Default
	// report.
	Unseen online.Unseen `yaml:"unseen" jsonschema:"enum=report,enum=mix"`
}

// MaxPayload is the largest message of a fleet that is received, in bytes.
const MaxPayload = int(field.MiB)

// Default returns the defaults that configs/edge.yaml documents.
func Default() Config {
	return Config{
		Role: RoleMember, Basis: BasisOwn, Scale: ScaleShared, Every: 100, Information: 2.5, Interval: time.Minute, MaxWait: time.Hour, MergeEvery: 5 * time.Minute,
		Horizons: []online.Horizon{}, Precision: "bfloat16", MaxMessage: 96 * field.KiB, MaxMembers: 64, Members: []string{},
		Trust: fleet.DefaultTrust, Unseen: online.ReportUnseen,
	}
}

// Enabled reports whether the model is in a fleet.
func (c *Config) Enabled() bool { return c.Concept != "" }

// Follows reports whether the model only follows a fleet. It is not inlined, which would make its
// many callers larger.
//
//go:noinline
func (c *Config) Follows() bool { return c.Enabled() && c.Role == RoleFollower }

// Validate reports every field that is out of range, joined.
func (c *Config) Validate() error {
	if !c.Enabled() {
		return field.Check(c.Role != RoleFollower, "role", c.Role, "a fleet.concept with it: a model in no fleet learns alone")
	}
	errs := []error{
		field.Check(topic.IsName(c.Concept), "concept", c.Concept, "[a-z0-9_-]"),
		field.Check(c.Role == RoleMember || c.Role == RoleFollower, "role", c.Role, "member or follower"),
		field.Check(c.Basis == BasisOwn || c.Basis == BasisShared, "basis", c.Basis, "own or shared"),
		field.Check(c.Scale == ScaleShared || c.Scale == ScaleOwn, "scale", c.Scale, "shared or own"),
		field.Check(c.Scale != ScaleOwn || c.Role != RoleFollower, "scale", c.Scale, "shared with role: follower; a follower has no labels by which to know its own scale"),
		field.Check(c.Every >= 1, "every", c.Every, "at least 1 label"),
		field.Check(c.Information >= 0 && !math.IsInf(c.Information, 1), "information", c.Information, "0 or more nats"),
		field.Check(c.Interval >= time.Second, "interval", c.Interval, "at least 1s"),
		field.Check(c.MaxWait == 0 || c.MaxWait >= time.Second, "max_wait", c.MaxWait, "0s or at least 1s"),
		field.Check(c.MergeEvery >= time.Second, "merge_every", c.MergeEvery, "at least 1s"),
		field.Check(c.Precision == "bfloat16" || c.Precision == "float32", "precision", c.Precision, "bfloat16 or float32"),
		field.Check(c.MaxMessage >= 4*field.KiB && c.MaxMessage <= field.MiB, "max_message", c.MaxMessage, "4KiB to 1MiB"),
		field.Check(c.MaxMembers >= 1 && c.MaxMembers <= 1000, "max_members", c.MaxMembers, "1 to 1000"),
		field.Check(c.StaleAfter == 0 || c.StaleAfter >= time.Second, "stale_after", c.StaleAfter, "0s or at least 1s"),
		field.Check(c.Unseen == online.ReportUnseen || c.Unseen == online.MixUnseen, "unseen", c.Unseen, "report or mix"),
	}
	for i, name := range c.Members {
		errs = append(errs, field.Check(topic.IsName(name), fmt.Sprintf("members[%d]", i), name, "the name of a node, [a-z0-9_-]"))
	}
	return field.Join(errs...)
}

// Fits returns an error if a learner of this configuration cannot take part.
func (c *Config) Fits(learner *online.Config) error {
	if !c.Enabled() {
		return nil
	}
	errs := []error{field.Check(learner.Kernel != online.PerClass, "concept", c.Concept, "kernel: shared; the members' kernels of single classes cannot be added")}
	if c.Basis == BasisShared && learner.Track > 0 {
		errs = append(errs, fmt.Errorf("basis shared: want own with track, or track 0: scalings that follow their streams drift apart"))
	}
	for i, length := range c.Horizons {
		errs = append(errs, field.Check(slices.Contains(learner.Horizons, length), fmt.Sprintf("horizons[%d]", i), float64(length), "one of the model's horizons"))
	}
	return field.Join(errs...)
}

// Learner returns the part of the configuration that is the learner's.
func (c *Config) Learner() online.Fleet {
	if !c.Enabled() {
		return online.DefaultConfig().Fleet
	}
	f := online.Fleet{Precision: fleet.Bfloat16, Trust: float64(c.Trust), Unseen: c.Unseen}
	if c.Precision == "float32" {
		f.Precision = fleet.Float32
	}
	f.Shared = c.Basis == BasisShared && c.Role != RoleFollower
	if c.Scale == ScaleOwn {
		f.Units = fleet.Standard
	}
	if len(c.Horizons) > 0 {
		f.Horizons = slices.Clone(c.Horizons)
	}
	return f
}

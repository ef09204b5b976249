package membership

import (
	"strconv"
	"strings"

	"edge/stream/topic"
)

// Level is the level of all topics of fleets, in place of a node's name.
const Level = "fleet"

// Topics are the topics of one fleet.
type Topics struct{ prefix string } // <base>/fleet/<concept>/

// NewTopics returns the topics of a concept below a base topic.
func NewTopics(base, concept string) Topics {
	return Topics{base + "/" + Level + "/" + concept + "/"}
}

// Contribution is the topic of a member's contribution.
func (t Topics) Contribution(member string) string { return t.prefix + member }

// Part is the topic of a part of a member's contribution.
func (t Topics) Part(member string, part int) string {
	return t.prefix + member + "/" + strconv.Itoa(part)
}

// of returns the topics of a member's contribution with a number of parts; 0: one message.
func (t Topics) of(member string, parts int) []string {
	all := []string{t.Contribution(member)}
	for i := range parts {
		all = append(all, t.Part(member, i))
	}
	return all
}

// Filter is the subscription to all contributions.
func (t Topics) Filter() string { return t.prefix + "+" }

// Parts is the subscription to all parts.
func (t Topics) Parts() string { return t.prefix + "+/+" }

// Has reports whether a topic is below that of the fleet.
func (t Topics) Has(name string) bool { return strings.HasPrefix(name, t.prefix) }

// Read returns the member of a topic, and the number of the part; −1 for a contribution
// or a list of parts. It reports false for other topics.
func (t Topics) Read(name string) (member string, part int, ok bool) {
	rest, ok := strings.CutPrefix(name, t.prefix)
	if !ok {
		return "", 0, false
	}
	member, number, parted := strings.Cut(rest, "/")
	if part = -1; parted {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= maxParts || strconv.Itoa(n) != number {
			return "", 0, false
		}
		part = n
	}
	return member, part, topic.IsName(member)
}

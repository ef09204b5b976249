package fleetctl

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"edge/internal/terminal"
	"edge/online/fleet"
	"edge/stream/field"
	"edge/stream/membership"
)

// Print writes a model's part in a fleet as text. concept is that of the configuration, which
// the daemon may not have read.
func Print(out io.Writer, model, concept string, v *membership.View) error {
	w := terminal.Writer{To: out}
	fmt.Fprintf(w, "model %s in fleet %s: %s, %s\n", model, v.Concept, v.Node, stateWords(v.State))
	if v.Concept != concept {
		fmt.Fprintf(w, "  the daemon runs with another configuration than this one, which has fleet %s: reload it\n", concept)
	}
	fmt.Fprintf(w, "  %s\n", published(v))
	merged := "none since the start"
	if v.Merges > 0 {
		merged = fmt.Sprintf("%d, the latest %s ago", v.Merges, age(v.MergeAge))
	}
	fmt.Fprintf(w, "  merges: %s; weight of the fleet in the answers %.0f %%\n", merged, 100*v.Weight)
	if b := v.Basis; b != nil {
		averaged := "no parameters, which takes members with 50 labels that have published on this basis"
		if b.Averaged > 1 {
			averaged = fmt.Sprintf("the parameters of %d members", b.Averaged)
		}
		fmt.Fprintf(w, "  common basis: number %d, of %s; the latest merge averaged %s\n", b.Number, b.Author, averaged)
	}
	if v.Unfit != "" {
		fmt.Fprintf(w, "  %s\n", v.Unfit)
	}
	if len(v.Members) == 0 {
		fmt.Fprintln(w, "  no other member is known")
	} else if err := printMembers(w, v.Members); err != nil {
		return err
	}
	if len(v.Foreign) > 0 {
		fmt.Fprintf(w, "  only other members have labels of %s\n", classes(v.Foreign))
	}
	if len(v.Alone) > 0 {
		fmt.Fprintf(w, "  only this node has labels of %s\n", classes(v.Alone))
	}
	for _, all := range v.Spellings {
		fmt.Fprintf(w, "  %s are spelt almost alike, and count as different classes: let all devices send one spelling, or give them a label_map\n", strings.Join(all, " and "))
	}
	if len(v.Refused) == 0 {
		return nil
	}
	var counts []string
	for _, reason := range field.Names(v.Refused) {
		counts = append(counts, fmt.Sprintf("%s %d", reason, v.Refused[fleet.Reason(reason)]))
	}
	_, err := fmt.Fprintf(w, "  refused since the start: %s\n", strings.Join(counts, ", "))
	if v.Refused[membership.Malformed]+v.Refused[membership.BadName] > 0 {
		fmt.Fprintln(w, "  edge fleet ls --kept says which of the kept messages this edge cannot read, or are on no topic of a member")
	}
	return err
}

// published describes the latest contribution of the node.
func published(v *membership.View) string {
	switch {
	case v.Stopped != "":
		return "publishes nothing more: " + v.Stopped
	case v.Role == membership.RoleFollower:
		return "publishes nothing: it only follows"
	case v.Sequence == 0 && v.WarmedUp:
		return "has published nothing since its start: the first contribution follows once the broker has sent what it keeps of this node"
	case v.Sequence == 0:
		return "has published nothing since its start: the first contribution follows the warm-up"
	}
	kept := "not seen back from the broker yet"
	switch {
	case v.Kept:
		kept = "the broker keeps it"
	case v.Cleared:
		kept = "it was removed from the broker, and the next one follows after more labels"
	case v.Lost:
		kept = "it did not come back: see edge doctor"
	}
	messages := "1 message"
	if v.Parts > 0 {
		messages = fmt.Sprintf("%d messages", 1+v.Parts) // the list of the parts is one
	}
	return fmt.Sprintf("published version %d.%d with %d labels, %s in %s, %s ago; %s", v.Epoch, v.Sequence, v.N, terminal.Bytes(uint64(v.Bytes)), messages, age(v.Age), kept)
}

// printMembers writes the table of the other members.
func printMembers(w io.Writer, members []membership.MemberView) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	basis := ""
	if members[0].Basis != "" { // all have one, or none
		basis = "BASIS\t"
	}
	fmt.Fprintf(table, "  MEMBER\tVERSION\tLABELS\tCLASSES\tSIZE\tAGE\tZ\tSHARE\t%sIN THE LATEST MERGE\n", basis)
	for _, m := range members {
		z := "–"
		if m.Trust != nil {
			z = fmt.Sprintf("%+.1f", *m.Trust)
		}
		switch {
		case m.Unfit != "":
			basis = m.Basis + ": " + string(m.Unfit) + "\t"
		case m.Basis != "":
			basis = m.Basis + "\t"
		}
		fmt.Fprintf(table, "  %s\t%d.%d\t%d\t%d\t%s\t%s\t%s\t%.0f %%\t%s%s\n", m.Name, m.Epoch, m.Sequence, m.N, len(m.Classes), terminal.Bytes(uint64(m.Bytes)), age(&m.Age), z, 100*m.Share, basis, mergeResult(&m))
	}
	return table.Flush()
}

// mergeResult describes the result of the latest merge for a member.
func mergeResult(m *membership.MemberView) string {
	switch {
	case m.Taken && m.Unread != "":
		return "yes; its newest message is refused: " + string(m.Unread)
	case m.Taken:
		return "yes"
	case m.Stale:
		return "no: silent for longer than stale_after"
	case m.Refused != fleet.None:
		return "no: " + string(m.Refused)
	}
	return "not yet"
}

// stateWords describes a state.
func stateWords(s membership.State) string {
	switch s {
	case membership.Alone:
		return "alone: no other member is known"
	case membership.Gathering:
		return "gathering: no other member is in the answers"
	case membership.Newcomer:
		return "newcomer: the fleet answers while its own warm-up runs"
	case membership.Joined:
		return "member"
	case membership.Isolated:
		return "isolated: the broker is away, the latest merge goes on"
	}
	return string(s)
}

// age returns a number of seconds for people.
func age(seconds *float64) string {
	if seconds == nil {
		return "–"
	}
	return terminal.Duration(time.Duration(*seconds * float64(time.Second)))
}

// Kept is the JSON of one member's retained contribution, or of the common basis, whose
// name is basis and whose epoch is its number.
type Kept struct {
	Name     string   `json:"name"`
	Author   string   `json:"author,omitempty"` // of the common basis
	Epoch    uint64   `json:"epoch"`
	Sequence uint64   `json:"sequence"`
	N        uint64   `json:"n"`
	Classes  []string `json:"classes"`
	Bytes    int      `json:"bytes"`
	Topics   []string `json:"topics"`
	Error    string   `json:"error,omitempty"` // it cannot be read
}

// Describe returns the JSON of the contributions.
func (r *Retained) Describe() []Kept {
	list := []Kept{}
	for _, c := range r.Contributions {
		one := Kept{Name: c.Member, Bytes: len(c.Data), Topics: c.Topics}
		if c.Err != nil {
			one.Error = c.Err.Error()
		} else {
			one.Epoch, one.Sequence, one.N, one.Classes = c.Epoch, c.Sequence, c.N, c.Classes
			if c.Member == membership.BasisName {
				one.Author = c.Contribution.Member
			}
		}
		list = append(list, one)
	}
	return list
}

// classes lists names of classes, which another program may have written with a newline or a tab.
func classes(names []string) string { return strings.Join(terminal.PlainAll(names), ", ") }

// PrintKept writes the retained contributions as text.
func PrintKept(out io.Writer, concept string, all []Kept) error {
	w := terminal.Writer{To: out}
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "the broker keeps no contribution of fleet %s, or this user may not read it\n", concept)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tVERSION\tLABELS\tSIZE\tMESSAGES\tCLASSES")
	for _, c := range all {
		if c.Error != "" {
			fmt.Fprintf(table, "%s\t–\t–\t%s\t%d\t%s\n", c.Name, terminal.Bytes(uint64(c.Bytes)), len(c.Topics), c.Error)
			continue
		}
		if c.Author != "" {
			c.Name = "common basis of " + c.Author
		}
		fmt.Fprintf(table, "%s\t%d.%d\t%d\t%s\t%d\t%s\n", c.Name, c.Epoch, c.Sequence, c.N, terminal.Bytes(uint64(c.Bytes)), len(c.Topics), classes(c.Classes))
	}
	return table.Flush()
}

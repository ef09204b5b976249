package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// Set holds the newest contribution of each member, in the order of their names. It is
// a join-semilattice: whatever the order and the repetition of Put, the same
// contributions give the same set. The zero value is empty and has no limit.
type Set struct {
	members []*Contribution
	limit   int
	common  *Common // the newest common basis; nil: none is known
	BasisRequest
}

// NewSet returns a set of at most limit members; those with the fewest labels leave
// first. 0: no limit.
func NewSet(limit int) *Set { return &Set{limit: limit} }

// find returns the place of a member, and whether it is there.
func (s *Set) find(member string) (int, bool) {
	return slices.BinarySearchFunc(s.members, member, func(c *Contribution, name string) int { return strings.Compare(c.Member, name) })
}

// Put adds a contribution, in the place of an older version of the same member. It
// reports false if the set has that version or a newer one, or has no room for it.
func (s *Set) Put(c *Contribution) (taken bool) {
	at, there := s.find(c.Member)
	if there {
		if !c.Newer(s.members[at].Version) {
			return false
		}
		s.members[at] = c
		return true
	}
	s.members = slices.Insert(s.members, at, c)
	if s.limit == 0 || len(s.members) <= s.limit {
		return true
	}
	least := slices.MinFunc(s.members, func(a, b *Contribution) int {
		return cmp.Or(cmp.Compare(a.N, b.N), -strings.Compare(a.Member, b.Member))
	})
	s.Remove(least.Member)
	return least != c
}

// Remove removes a member; it reports whether it was there.
func (s *Set) Remove(member string) bool {
	at, there := s.find(member)
	if there {
		s.members = slices.Delete(s.members, at, at+1)
	}
	return there
}

// Get returns the contribution of a member, or nil.
func (s *Set) Get(member string) *Contribution {
	if at, there := s.find(member); there {
		return s.members[at]
	}
	return nil
}

// Members returns the contributions in the order of the members' names. Read only, until
// the next change.
func (s *Set) Members() []*Contribution { return s.members }

// Offer adds a common basis, in the place of one that it replaces; it reports false if the
// set has that one or one that replaces it.
func (s *Set) Offer(c *Common) bool {
	if s.common != nil && !s.common.Before(c.Birth) {
		return false
	}
	s.common = c
	return true
}

// Common returns the newest common basis, or nil.
func (s *Set) Common() *Common { return s.common }

// Withdraw removes the common basis.
func (s *Set) Withdraw() { s.common = nil }

// Clone returns a copy that shares the contributions.
func (s *Set) Clone() *Set {
	c := *s
	c.members = slices.Clone(s.members)
	return &c
}

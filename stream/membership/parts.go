package membership

import (
	"encoding/binary"
	"errors"
	"fmt"

	"edge/online/fleet"
	"edge/online/wire"
)

// Formats of the messages of a contribution in parts. All numbers are little-endian.
//
//	list  EFP1 · epoch u64 · sequence u64 · bytes u32 · parts u32 · CRC-32C of all before
//	part  EFD1 · epoch u64 · sequence u64 · data · CRC-32C of all before
const (
	listMagic, partMagic = "EFP1", "EFD1"

	versionBytes = 4 + 8 + 8
	listBytes    = versionBytes + 4 + 4 + wire.ChecksumBytes
	partExtra    = versionBytes + wire.ChecksumBytes // bytes of a part beside its data
	leastMessage = 4 << 10                           // data of a part that is not halved any more
	packedMore   = 64                                // bytes that another version may have more
	maxParts     = fleet.MaxBytes/leastMessage + 1
	partMemory   = 64 // bytes of memory that a collected part takes beside its data
)

// ErrParts: bytes are no list of parts, no part, or are damaged.
var ErrParts = errors.New("not a valid list of parts, or part")

// errRoom: other contributions and parts take the memory that a part needs.
var errRoom = errors.New("no room for it")

// list is a list of parts.
type list struct {
	fleet.Version
	bytes int // of the contribution
	parts int
}

// split returns the messages of a contribution of a version: itself if it is not larger
// than limit, otherwise parts of at most limit bytes and their list.
func split(v fleet.Version, data []byte, limit int) (head []byte, parts [][]byte) {
	if len(data) <= limit {
		return data, nil
	}
	size := limit - partExtra
	for from := 0; from < len(data); from += size {
		p := appendVersion(make([]byte, 0, limit), partMagic, v)
		parts = append(parts, wire.AppendChecksum(append(p, data[from:min(from+size, len(data))]...), 0))
	}
	head = appendVersion(make([]byte, 0, listBytes), listMagic, v)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(data)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(parts)))
	return wire.AppendChecksum(head, 0), parts
}

// Messages returns the messages of a version of a member's encoded contribution, none larger than
// limit: its parts, and last the list of them, or the contribution itself.
func (t Topics) Messages(member string, v fleet.Version, data []byte, limit int) (all []Publication) {
	head, parts := split(v, data, limit)
	for i, p := range parts {
		all = append(all, Publication{t.Part(member, i), p})
	}
	return append(all, Publication{t.Contribution(member), head})
}

// probePart is the number of the part of a Probe. A member's contribution has fewer.
const probePart = maxParts - 1

// Probe returns a retained message of a number of bytes on a topic of a member, by which
// a tool tries whether the broker retains messages. It is a part that belongs to no contribution:
// members ignore it.
func (t Topics) Probe(member string, bytes int) Publication {
	data := appendVersion(make([]byte, 0, bytes), partMagic, fleet.Version{})
	return Publication{t.Part(member, probePart), wire.AppendChecksum(data[:max(bytes, partExtra)-wire.ChecksumBytes], 0)}
}

// appendVersion appends the beginning of a list or a part.
func appendVersion(dst []byte, magic string, v fleet.Version) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, magic...), v.Epoch)
	return binary.LittleEndian.AppendUint64(dst, v.Sequence)
}

// isList reports whether a payload is meant as a list of parts.
func isList(payload []byte) bool {
	return len(payload) >= 4 && string(payload[:4]) == listMagic
}

// open checks magic and checksum, and returns version and rest.
func open(payload []byte, magic string) (v fleet.Version, rest []byte, err error) {
	if len(payload) < partExtra || string(payload[:4]) != magic {
		return v, nil, fmt.Errorf("fleet: does not begin with %s: %w", magic, ErrParts)
	}
	body, ok := wire.CutChecksum(payload)
	if !ok {
		return v, nil, fmt.Errorf("fleet: checksum differs: %w", ErrParts)
	}
	v = fleet.Version{Epoch: binary.LittleEndian.Uint64(body[4:]), Sequence: binary.LittleEndian.Uint64(body[12:])}
	return v, body[versionBytes:], nil
}

// decodeList returns a list of parts.
func decodeList(payload []byte) (l list, err error) {
	v, rest, err := open(payload, listMagic)
	if err != nil {
		return l, err
	}
	if len(rest) != 8 {
		return l, fmt.Errorf("fleet: list of %d bytes: %w", len(payload), ErrParts)
	}
	l = list{v, int(binary.LittleEndian.Uint32(rest)), int(binary.LittleEndian.Uint32(rest[4:]))}
	if l.bytes < 1 || l.bytes > fleet.MaxBytes || l.parts < 1 || l.parts > maxParts || l.parts > l.bytes {
		return l, fmt.Errorf("fleet: %d bytes in %d parts: %w", l.bytes, l.parts, ErrParts)
	}
	return l, nil
}

// assembly collects the parts of one member's newest contribution. Parts may come before
// their list.
type assembly struct {
	list   list
	listed bool
	live   bool           // the list was published while this node listened; retained parts may follow it
	parts  map[int][]byte // of the newest version
	of     fleet.Version  // of parts
	bytes  int            // in parts
	latest bool           // the latest version counts, whatever its number: it has several authors
}

// addList takes a list of parts.
func (a *assembly) addList(l list) {
	if a.list, a.listed = l, true; a.replaces(l.Version, false) {
		a.clear(l.Version)
	}
}

// replaces reports whether parts of version v take the place of those there are. Older ones do that
// are published while no others are collected: another process has the name now, and an old state file.
func (a *assembly) replaces(v fleet.Version, live bool) bool {
	return v.Newer(a.of) || live && a.parts == nil || a.latest && v != a.of && v != fleet.Version{}
}

// connected drops parts without a list, which comes last: their member may have ended before, and the
// broker sends those that it keeps again.
func (a *assembly) connected() {
	if !a.listed || a.list.Version != a.of {
		a.clear(fleet.Version{})
	}
}

// held is about the number of bytes of memory that the parts take.
func (a *assembly) held() int { return a.bytes + partMemory*len(a.parts) }

// clear drops the parts, and waits for those of a version.
func (a *assembly) clear(v fleet.Version) { a.parts, a.of, a.bytes = nil, v, 0 }

// addPart takes a copy of a part, which the broker kept or which is live. room is the number of bytes
// that are left for it. The error is ErrParts or errRoom.
func (a *assembly) addPart(part int, payload []byte, room int, live bool) error {
	v, data, err := open(payload, partMagic)
	if err != nil {
		return err
	}
	if v != a.of {
		if !a.replaces(v, live) {
			return nil
		}
		a.clear(v)
	}
	if a.parts[part] != nil {
		return nil
	}
	if most := fleet.MaxBytes - a.bytes; len(data) == 0 || len(data) > most {
		return fmt.Errorf("fleet: part of %d bytes, of %d at most: %w", len(data), most, ErrParts)
	}
	if len(data) > room {
		return fmt.Errorf("fleet: part of %d bytes: more than %d bytes of contributions and parts: %w", len(data), MaxHeld, errRoom)
	}
	if a.parts == nil {
		a.parts = map[int][]byte{}
	}
	a.parts[part], a.bytes = append([]byte(nil), data...), a.bytes+len(data)
	return nil
}

// whole returns the contribution once all of its parts are there, and drops them.
func (a *assembly) whole() []byte {
	if !a.listed || a.of != a.list.Version || len(a.parts) < a.list.parts || a.bytes < a.list.bytes {
		return nil
	}
	data := make([]byte, 0, a.list.bytes)
	for i := range a.list.parts {
		if len(data)+len(a.parts[i]) > a.list.bytes {
			return nil
		}
		data = append(data, a.parts[i]...)
	}
	if len(data) != a.list.bytes {
		return nil
	}
	a.clear(a.of)
	return data
}

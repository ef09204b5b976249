package simulation

import (
	"bytes"
	"slices"
)

// doubt knows which acknowledgements of a session the broker has read without
// the node's being able to know it. What they acknowledged may be taken for the
// first transmission of another message that the broker sends again, where
// topic, payload and, if the broker keeps them, identifier are the same: MQTT
// 3.1.1 gives nothing to tell the two apart.
type doubt struct {
	world     *world
	all       []*delivery // acknowledged, oldest first
	known     int         // of them the first ones, of the connection, which the node can know to be read
	durable   int         // and after a restart
	answered  []answer    // of the connection
	over      *peer       // the connection
	cursor    int         // acknowledgements when the broker received the cursor that it keeps
	published *peer       // the connection over which it received that
	began     []*delivery // what the node could not know when the connection began
}

// answer is a packet that proves to the node that what it wrote before was read.
type answer struct {
	at    int   // byte of the connection after which it has arrived
	total int   // acknowledgements that were read before the packet that it answers
	over  *peer // the connection of that packet; an earlier one where the answer is the cursor
}

// mistake bounds how many messages of equal topic and payload may be taken for
// repetitions.
type mistake struct{ left int }

// acknowledged notes that the broker has read an acknowledgement.
func (b *doubt) acknowledged(s *session, d *delivery) {
	if s.id != nodeID {
		return
	}
	b.settle()
	b.all = append(b.all, d)
}

// proves notes that what the broker writes now answers a packet that the node
// wrote after so many acknowledgements.
func (b *doubt) proves(p *peer, total int) {
	if p.session == nil || p.session.id != nodeID {
		return
	}
	b.note(p, answer{at: p.written, total: total, over: p})
}

// tells notes that the broker has just sent the cursor that it keeps. The node takes
// no message of a connection before it has read the cursor, where there is one. If
// the connection ends before, and the broker forgets the cursor, it never does.
func (b *doubt) tells(p *peer) {
	if p.session.id == nodeID {
		b.note(p, answer{at: p.written, total: b.cursor, over: b.published})
	}
}

func (b *doubt) note(p *peer, a answer) {
	if b.over != p {
		b.over, b.answered = p, nil
	}
	b.answered = append(b.answered, a)
}

// kept notes that the broker keeps another cursor: the number of a commit, which the
// node wrote after its latest acknowledgements, or 0, which proves none.
func (b *doubt) kept(p *peer, commit bool) {
	b.cursor, b.published = 0, p
	if commit {
		b.cursor = len(b.all)
	}
}

// open returns the acknowledgements of which the node cannot know that they were
// read, once it knows the cursor.
func (b *doubt) open() (open []*delivery) {
	for i, d := range b.all {
		if !d.proven && (i >= b.cursor || d.over != b.published) {
			open = append(open, d)
		}
	}
	return open
}

// prove notes that the node can know of the acknowledgements over a connection that
// are among the first ones that they were read.
func (b *doubt) prove(total int, over *peer) {
	for _, d := range b.all[:total] {
		d.proven = d.proven || d.over == over
	}
}

// settle returns how many acknowledgements there were before the latest one that
// the node can know to be read.
func (b *doubt) settle() int {
	for b.over != nil && len(b.answered) > 0 && b.answered[0].at <= b.over.link.client.read {
		a := b.answered[0]
		b.prove(a.total, a.over)
		b.known = max(b.known, a.total)
		b.answered = b.answered[1:]
	}
	return b.known
}

// committed notes that the set of the messages taken is on the disk. It lacks, as
// far as is certain, what the node knew when the latest message came that it
// has acknowledged.
func (b *doubt) committed() {
	if n := len(b.all); n > 0 {
		b.durable = b.all[n-1].known
	}
}

// restarted notes that the node knows what is on its disk.
func (b *doubt) restarted() {
	b.known, b.over, b.answered = min(b.known, b.durable), nil, nil
	for _, d := range b.all[b.durable:] {
		d.proven = false
	}
}

// fromOne reports whether the first message that is sent again has the identifier 1:
// then the node cannot rely on identifiers.
func (s *session) fromOne() bool {
	i := slices.IndexFunc(s.inflight, func(d *delivery) bool { return !d.released })
	return i >= 0 && s.inflight[i].id == 1
}

// resumes notes which of the messages that a broker is about to send again may
// be mistaken.
func (b *doubt) resumes(s *session, keeps bool) {
	if s.id != nodeID {
		return
	}
	b.settle()
	keeps = keeps && !s.fromOne()
	b.over, b.answered = nil, nil
	groups := map[string]*mistake{}
	b.began = b.open()
	for _, d := range slices.Concat(s.inflight, s.waiting) {
		if d.sent == 0 || d.released {
			continue
		}
		alike := 0
		for _, old := range b.began {
			if old.topic == d.topic && bytes.Equal(old.payload, d.payload) && (!keeps || old.id == d.id) {
				alike++
			}
		}
		if alike == 0 {
			continue
		}
		key := d.topic + "\x00" + string(d.payload)
		if groups[key] == nil {
			groups[key] = &mistake{}
		}
		if keeps {
			groups[key].left++
		} else {
			groups[key].left = alike
		}
		if d.mistaken == nil {
			d.mistaken = groups[key]
		}
	}
}

// sends notes whether a message that a broker without DUP sends for the first
// time may be mistaken, because another one had its identifier.
func (b *doubt) sends(s *session, d *delivery) {
	if s.id != nodeID || d.mistaken != nil {
		return
	}
	for _, old := range b.began {
		if old.id == d.id && old.topic == d.topic && bytes.Equal(old.payload, d.payload) {
			d.mistaken = &mistake{left: 1}
		}
	}
}

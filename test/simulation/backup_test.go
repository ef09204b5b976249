package simulation

import (
	"maps"
	"slices"

	"edge/online"
)

// backup is a copy of the state file, and what was the case when it was made.
type backup struct {
	image        []byte
	records      map[string][]online.Record
	doubted      map[string][]online.Record
	acknowledged int // messages
	proven       map[*delivery]bool
}

// backUp copies the state file, as edge backup does: what its latest transaction
// has left. The caller holds mu.
func (w *world) backUp() *backup {
	b := &backup{
		image: w.disk.read(), records: map[string][]online.Record{}, doubted: map[string][]online.Record{},
		acknowledged: w.acknowledged, proven: map[*delivery]bool{},
	}
	for name, r := range w.truth.models {
		b.records[name], b.doubted[name] = slices.Clone(r.records), slices.Clone(r.doubted)
	}
	for i, d := range w.doubt.all {
		b.proven[d] = d.proven && i < w.doubt.durable
	}
	w.log("backup")
	return b
}

// restore kills the node, and lets the next life find the backup. What was
// acknowledged since is lost, but for what the node had learnt before it made the backup and
// acknowledged after it. The caller holds mu.
func (w *world) restore(b *backup) {
	w.life.die("for a restored backup")
	w.disk.image, w.disk.forgetful, w.truth.cut = b.image, true, false
	limits := map[string]int{}
	for name, r := range w.truth.models {
		r.records, r.doubted = b.records[name], b.doubted[name]
		r.before = len(r.records)
		for _, e := range slices.Concat(r.records, r.doubted) {
			if e.Kind != online.Boundary {
				limits[name]++
			}
		}
	}
	w.losses++
	w.limits[w.losses] = maps.Clone(limits)
	for _, d := range w.history {
		if d.acked && d.number > b.acknowledged {
			d.lost = w.losses
		}
	}
	for _, d := range w.doubt.all {
		d.proven = b.proven[d]
	}
	w.doubt.durable = len(w.doubt.all)
}

package simulation

import (
	"maps"
	"slices"

	"edge/online"
)

// backup is a copy of the state file, with the truth at that time.
type backup struct {
	image        []byte
	records      map[string][]online.Record
	uncertain    map[string][]online.Record
	later        map[string]int
	acknowledged int // messages
	proven       map[*delivery]bool
	taken        []*delivery // that were not acknowledged
}

// backUp copies the newest transaction of the state file, as edge backup does. Nil while that
// is one of which the sync failed: a later start may go on without it and number the next one
// as this, which is a gap that RELIABILITY.md lists. The caller holds mu.
func (w *world) backUp() *backup {
	for _, r := range w.truth.models {
		if len(r.uncertain) > 0 {
			return nil
		}
	}
	b := &backup{
		image: w.disk.read(), records: map[string][]online.Record{}, uncertain: map[string][]online.Record{}, later: map[string]int{},
		acknowledged: w.acknowledged, proven: map[*delivery]bool{},
	}
	for name, r := range w.truth.models {
		b.records[name], b.uncertain[name], b.later[name] = slices.Clone(r.records), slices.Clone(r.uncertain), r.later
	}
	for i, d := range w.unproven.acknowledged {
		b.proven[d] = d.proven && i < w.unproven.durable
	}
	if s := w.broker.sessions[w.name]; s != nil {
		for _, d := range slices.Concat(s.inflight, s.waiting) {
			if d.arrived() {
				b.taken = append(b.taken, d)
			}
		}
	}
	w.log("backup")
	return b
}

// restore kills the node, and starts the next process with the backup. Messages
// acknowledged after the backup are lost, unless the node had learnt them before it.
// The caller holds mu.
func (w *world) restore(b *backup) {
	w.process.kill("for a restored backup")
	w.disk.restart, w.disk.filtersLost, w.truth.cut = b.image, true, false
	limits := map[string]int{}
	for name, r := range w.truth.models {
		r.records, r.uncertain = b.records[name], b.uncertain[name]
		r.before, r.later = len(r.records), b.later[name]
		for _, e := range slices.Concat(r.records, r.uncertain) {
			if e.Kind != online.Boundary && e.Kind != online.Merge {
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
	for _, d := range b.taken {
		d.adrift = d.acked
	}
	w.unproven.restored, w.unproven.durable = b, len(w.unproven.acknowledged)
}

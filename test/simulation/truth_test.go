package simulation

import (
	"fmt"
	"hash/crc32"

	"edge/online"
)

// truth holds the expected contents of the state file: every committed record, in
// order. World.mu guards it.
type truth struct {
	world  *world
	models map[string]*record
	cut    bool // a power cut ended the last commit, which may be lost as a whole
}

// record holds the expected records of one model.
type record struct {
	plan      *modelPlan
	records   []online.Record
	before    int             // length of the durable records before the last commit
	later     int             // records at the end that become durable with the next commit: a crash may lose them
	uncertain []online.Record // of a failed commit that the next start may find
	learner   *online.Learner // reference: learns without interruption
	learnt    int             // number of records that learner has learnt
}

func newTruth(w *world) *truth {
	t := &truth{world: w, models: map[string]*record{}}
	for i := range w.plan.models {
		m := &w.plan.models[i]
		t.models[m.name] = &record{plan: m}
	}
	return t
}

// committed records a commit.
func (t *truth) committed(c *online.Commit) {
	if c.Taken != nil {
		t.world.unproven.committed()
	}
	for _, r := range t.models {
		r.before, r.uncertain = len(r.records)-r.later, nil
	}
	if !c.Later && len(c.Records)+len(c.Wait)+len(c.Forget)+len(c.Marks)+len(c.Windows) > 0 || c.Taken != nil {
		t.durable()
	}
	for _, e := range c.Records {
		r := t.models[e.Model]
		if e.Seq != uint64(len(r.records)+1) {
			t.world.fail("record %d of %s has number %d", len(r.records)+1, e.Model, e.Seq)
		}
		r.records = append(r.records, e)
		if c.Later {
			r.later++
		}
		t.world.log("  %s %s", e.Model, describe(&e.Event))
	}
}

// durable notes a transaction, which takes along the records that waited for it.
func (t *truth) durable() {
	for _, r := range t.models {
		r.later = 0
	}
}

// uncertain records a commit that failed after it was in the file: the next commit
// rolls it back, but a start before that may find it.
func (t *truth) uncertain(c *online.Commit) {
	for _, r := range t.models {
		r.uncertain = nil
	}
	for _, e := range c.Records {
		r := t.models[e.Model]
		e.Seq = uint64(len(r.records) + len(r.uncertain) + 1)
		r.uncertain = append(r.uncertain, e)
		t.world.log("  %s may have: %s", e.Model, describe(&e.Event))
	}
}

// recovered compares the number of a model's records after a start with the truth, and
// returns the digest of the reference learner.
func (t *truth) recovered(model string, seq uint64) (digest string, err error) {
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	r := t.models[model]
	if t.cut && int(seq) == r.before {
		r.records = r.records[:r.before]
	}
	if int(seq) == len(r.records)+len(r.uncertain) {
		r.records = append(r.records, r.uncertain...)
	} else if int(seq) == len(r.records)-r.later {
		r.records = r.records[:seq]
	}
	r.uncertain, r.later = nil, 0
	if int(seq) != len(r.records) {
		return "", fmt.Errorf("%d records of %s were committed, the file has %d", len(r.records), model, seq)
	}
	return r.digest()
}

// digest returns the digest of the reference learner after all records.
func (r *record) digest() (string, error) {
	if r.learner == nil || r.learnt > len(r.records) {
		var err error
		if r.learner, err = online.NewLearner(r.plan.learner); err != nil {
			return "", err
		}
		r.learnt = 0
	}
	for ; r.learnt < len(r.records); r.learnt++ {
		r.learner.Add(&r.records[r.learnt].Event)
	}
	return r.learner.Digest(), nil
}

func describe(e *online.Event) string {
	switch e.Kind {
	case online.Observe:
		return fmt.Sprintf("learns %v %s", e.X, e.Label)
	case online.Correct:
		return fmt.Sprintf("corrects %v %s, not %s", e.X, e.Label, e.Name)
	case online.Boundary:
		return "closes a minibatch"
	case online.Merge:
		return fmt.Sprintf("merges %08x", crc32.ChecksumIEEE(e.State))
	}
	return fmt.Sprintf("kind %d %s %s", e.Kind, e.Label, e.Name)
}

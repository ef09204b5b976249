package simulation

import (
	"fmt"

	"edge/online"
)

// truth is what the state file must know: every record that was committed, in
// order. World.mu guards it.
type truth struct {
	world  *world
	models map[string]*record
	cut    bool // the power was cut in the last commit: all of it may be lost
}

// record is what one model was taught.
type record struct {
	plan    *modelPlan
	records []online.Record
	before  int             // length of records before the last commit
	doubted []online.Record // of a commit that has failed, and which a start may find
	learner *online.Learner // undisturbed
	fed     int             // records
}

func newTruth(w *world) *truth {
	t := &truth{world: w, models: map[string]*record{}}
	for i := range w.plan.models {
		m := &w.plan.models[i]
		t.models[m.name] = &record{plan: m}
	}
	return t
}

// committed notes a commit.
func (t *truth) committed(c *online.Commit) {
	if c.Taken != nil {
		t.world.doubt.committed()
	}
	for _, r := range t.models {
		r.before, r.doubted = len(r.records), nil
	}
	for _, e := range c.Records {
		r := t.models[e.Model]
		if e.Seq != uint64(len(r.records)+1) {
			t.world.fail("record %d of %s has number %d", len(r.records)+1, e.Model, e.Seq)
		}
		r.records = append(r.records, e)
		t.world.log("  %s %s", e.Model, describe(&e.Event))
	}
}

// doubted notes a commit that has failed when it was in the file already: the next
// one takes it back, a start that comes first may find it.
func (t *truth) doubted(c *online.Commit) {
	for _, r := range t.models {
		r.doubted = nil
	}
	for _, e := range c.Records {
		r := t.models[e.Model]
		e.Seq = uint64(len(r.records) + len(r.doubted) + 1)
		r.doubted = append(r.doubted, e)
		t.world.log("  %s may know: %s", e.Model, describe(&e.Event))
	}
}

// recovered holds what a start has found against the truth.
func (t *truth) recovered(model string, seq uint64, digest string) error {
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	r := t.models[model]
	if t.cut && int(seq) == r.before {
		r.records = r.records[:r.before]
	}
	if int(seq) == len(r.records)+len(r.doubted) {
		r.records = append(r.records, r.doubted...)
	}
	r.doubted = nil
	if int(seq) != len(r.records) {
		return fmt.Errorf("%d records of %s were committed, the file has %d", len(r.records), model, seq)
	}
	want, err := r.digest()
	if err != nil {
		return err
	}
	if digest != want {
		return fmt.Errorf("after %d records the digest of %s is %s, that of an undisturbed learner %s", seq, model, digest, want)
	}
	return nil
}

// digest returns that of an undisturbed learner.
func (r *record) digest() (string, error) {
	if r.learner == nil || r.fed > len(r.records) {
		var err error
		if r.learner, err = online.NewLearner(r.plan.learner); err != nil {
			return "", err
		}
		r.fed = 0
	}
	for ; r.fed < len(r.records); r.fed++ {
		r.learner.Add(&r.records[r.fed].Event)
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
	}
	return fmt.Sprintf("kind %d %s %s", e.Kind, e.Label, e.Name)
}

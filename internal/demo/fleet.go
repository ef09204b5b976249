package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/internal/timing"
)

// Bounds of Config.Fleet.
const (
	MinFleet = 3 // one that is there from the start, one that comes late, one that lies
	MaxFleet = 16
)

// The fleet's rows come in rounds. All nodes learn the rows of a round before the
// contributions are exchanged, so that the speed of the machine does not matter.
const (
	roundRows    = 48 // of a node: three minibatches, and the labels between publications
	fleetRounds  = 6  // without Config.Length
	fleetTests   = 300
	warmupRounds = 2

	fleetInducing = 25
	fleetPatience = time.Minute      // without progress, before the demo gives up
	exchangeWait  = 20 * time.Second // for the contributions of a round
	fleetPoll     = 50 * time.Millisecond
)

// fleetDemo is a demo of several nodes that learn together. Each honest node has a twin
// that learns the same rows alone, and one device learns the rows of all of them.
type fleetDemo struct {
	*Config
	site
	choose *rand.Rand // labels of the node that lies, and the order of a file
	out    io.Writer
	start  time.Time
	stop   context.CancelCauseFunc

	members []*fleetNode // the last of them lies, the one before comes late
	alone   []*fleetNode // twins of the honest members, in their order
	device  *fleetNode   // all rows of the honest members
	started []*fleetNode
	rows    []dataset.Row
	tests   []dataset.Row
	rounds  int // that were learnt
	late    int // of them, before the last exchange had ended
	refused refusals
}

// runFleet runs the demo of a fleet, and prints its report on out.
func (d *Config) runFleet(ctx context.Context, at site, out, errOut io.Writer) error {
	f := &fleetDemo{Config: d, site: at, choose: rand.New(rand.NewPCG(d.Seed, 3)), out: out, start: time.Now()}
	if d.AsJSON {
		if f.out = errOut; !terminal.IsTerminal(errOut) {
			f.out = io.Discard
		}
	}
	if err := f.read(); err != nil {
		return err
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	f.stop, f.out = stop, &ending{Writer: f.out, end: stop}
	defer context.AfterFunc(ctx, f.announceEnd)()
	r, err := f.play(ctx, running)
	if cause := context.Cause(running); cause != nil { // a node has ended by itself
		err = cause
	}
	stop(nil)
	if err = errors.Join(err, f.end()); err != nil {
		return err
	}
	if d.AsJSON {
		return terminal.PrintJSON(out, r)
	}
	return r.print(out)
}

// read draws the test rows. A data file is read whole and shuffled.
func (f *fleetDemo) read() error {
	row := dataset.Row{}
	next := func() (dataset.Row, error) {
		err := f.sensors.rows.Next(&row)
		return dataset.Row{Number: row.Number, X: slices.Clone(row.X), Label: row.Label}, err
	}
	if f.File == "" {
		for range fleetTests {
			r, err := next()
			if err != nil {
				return err
			}
			f.tests = append(f.tests, r)
		}
		return nil
	}
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if r.Label != "" {
			f.rows = append(f.rows, r)
		}
	}
	f.choose.Shuffle(len(f.rows), func(i, j int) { f.rows[i], f.rows[j] = f.rows[j], f.rows[i] })
	tests := min(fleetTests, len(f.rows)/4)
	f.tests, f.rows = f.rows[:tests], f.rows[tests:]
	if len(f.rows) < (warmupRounds+2)*f.Fleet*roundRows {
		return exit.With(exit.Usage, fmt.Errorf("demo: %s has %d labelled rows, too few for a fleet of %d nodes: each needs %d, beside the test rows", f.File, len(f.rows)+tests, f.Fleet, (warmupRounds+2)*roundRows))
	}
	return nil
}

// next returns the rows of one node for a round; nil at the end of the file.
func (f *fleetDemo) next() []dataset.Row {
	if f.File != "" {
		if len(f.rows) < roundRows {
			return nil
		}
		chunk := f.rows[:roundRows]
		f.rows = f.rows[roundRows:]
		return chunk
	}
	chunk := make([]dataset.Row, roundRows)
	for i := range chunk {
		f.sensors.rows.Next(&chunk[i]) // of machines: never an error
	}
	return chunk
}

// play starts the nodes, deals the rows and returns the report. The nodes run until
// running ends.
func (f *fleetDemo) play(ctx, running context.Context) (*fleetReport, error) {
	for i := range f.Fleet {
		if f.role(i) == roleNewcomer {
			f.members = append(f.members, nil)
			continue
		}
		n, err := f.startNode(running, fmt.Sprintf("node%d", i+1), f.role(i))
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, n)
	}
	for i := range f.Fleet - 2 {
		n, err := f.startNode(running, fmt.Sprintf("alone%d", i+1), roleAlone)
		if err != nil {
			return nil, err
		}
		f.alone = append(f.alone, n)
	}
	device, err := f.startNode(running, "one-device", roleAlone)
	if err != nil {
		return nil, err
	}
	f.device = device
	f.begin()
	if err := f.deal(ctx, running); err != nil {
		return nil, err
	}
	fmt.Fprintf(f.out, "%5.0f s  judging %d rows that no node has learnt\n", time.Since(f.start).Seconds(), len(f.tests))
	for _, n := range f.honest() {
		if err := f.judge(running, n); err != nil {
			return nil, err
		}
	}
	return f.report(), nil
}

// role returns the role of member i.
func (f *fleetDemo) role(i int) role {
	switch i {
	case f.Fleet - 1:
		return roleLiar
	case f.Fleet - 2:
		return roleNewcomer
	}
	return roleMember
}

// honest returns all nodes that learn from right labels.
func (f *fleetDemo) honest() []*fleetNode {
	all := append(slices.Clone(f.members[:f.Fleet-1]), f.alone...)
	return slices.DeleteFunc(append(all, f.device), func(n *fleetNode) bool { return n == nil })
}

// begin announces the demo.
func (f *fleetDemo) begin() {
	fmt.Fprintf(f.out, "edge demo: %s, %d features; a fleet of %d nodes; broker on %s\n", f.sensors.name, len(f.sensors.features), f.Fleet, f.broker)
	fmt.Fprintf(f.out, "node%d joins late, node%d sends random labels; for each other node, one without a fleet learns the same rows\n", f.Fleet-1, f.Fleet)
	if page := f.members[0].daemon.PageURL(); page != "" {
		fmt.Fprintf(f.out, "look at node1: %s    end it: Ctrl-C\n", page)
	}
}

// announceEnd prints the steps that follow Ctrl-C.
func (f *fleetDemo) announceEnd() {
	fmt.Fprintf(f.out, "%5.0f s  ending: the late node learns a round at least, then all are judged; Ctrl-C again ends at once\n", time.Since(f.start).Seconds())
}

// deal deals rows in rounds until their end, or that of ctx. The node that comes late learns
// one round at least.
func (f *fleetDemo) deal(ctx, running context.Context) error {
	for more := true; more; {
		switch late := f.members[f.Fleet-2]; {
		case late == nil && f.joinDue(ctx):
			if err := f.join(running); err != nil {
				return err
			}
		case late != nil && late.sent > 0 && f.over(ctx):
			return nil
		}
		var err error
		if more, err = f.round(running); err != nil {
			return err
		}
	}
	return nil
}

// joinDue reports whether the late node is to come: in the middle, with some contributions
// to find.
func (f *fleetDemo) joinDue(ctx context.Context) bool {
	switch {
	case f.rounds <= warmupRounds:
		return false
	case f.over(ctx), f.File != "" && len(f.rows) < 2*f.Fleet*roundRows:
		return true
	case f.Length > 0:
		return time.Since(f.start) >= f.Length/2
	}
	return f.rounds >= fleetRounds/2
}

// over reports whether no further round is to begin.
func (f *fleetDemo) over(ctx context.Context) bool {
	if f.Length > 0 {
		return ctx.Err() != nil || time.Since(f.start) >= f.Length
	}
	return ctx.Err() != nil || f.rounds >= fleetRounds
}

// join starts the node that comes late, and its twin.
func (f *fleetDemo) join(running context.Context) error {
	i := f.Fleet - 2
	n, err := f.startNode(running, fmt.Sprintf("node%d", i+1), roleNewcomer)
	if err != nil {
		return err
	}
	f.members[i] = n
	twin, err := f.startNode(running, fmt.Sprintf("alone%d", i+1), roleAlone)
	if err != nil {
		return err
	}
	f.alone = append(f.alone, twin)
	fmt.Fprintf(f.out, "%5.0f s  %s joins\n", time.Since(f.start).Seconds(), n.name)
	if !await(running, exchangeWait, func() bool { v, _ := n.view(); return v.Merges > 0 }) {
		f.late++
	}
	return nil
}

// round deals the rows of a round, waits until all have learnt them, and then until
// the members have exchanged their contributions. It reports false at the end of the file.
func (f *fleetDemo) round(running context.Context) (more bool, err error) {
	chunks := map[*fleetNode][]dataset.Row{}
	for i, n := range f.members {
		if n == nil {
			continue
		}
		chunk := f.next()
		if chunk == nil {
			return false, nil
		}
		if n.role == roleLiar {
			chunk = slices.Clone(chunk)
			for j := range chunk {
				chunk[j].Label = f.sensors.classes[f.choose.IntN(len(f.sensors.classes))]
			}
		} else {
			chunks[f.alone[i]] = chunk
			chunks[f.device] = append(chunks[f.device], chunk...)
		}
		chunks[n] = chunk
	}
	for _, n := range append(f.honest(), f.members[f.Fleet-1]) {
		if err := n.publish(running, chunks[n], true); err != nil {
			return false, err
		}
	}
	for n := range chunks {
		if err := f.learnt(running, n); err != nil {
			return false, err
		}
		if n.first == 0 {
			n.first = n.loop.Status().Scores.NLL
		}
	}
	f.rounds++
	if f.rounds >= warmupRounds {
		if !await(running, exchangeWait, f.exchanged) {
			f.late++
		}
		f.refused.count(f.members)
	}
	f.progress()
	return true, context.Cause(running)
}

// learnt waits until a node has learnt all rows that it was sent.
func (f *fleetDemo) learnt(ctx context.Context, n *fleetNode) error {
	last := uint64(0)
	for {
		if await(ctx, fleetPatience, func() bool { s := n.loop.Status().Scores.N; return s >= n.sent || s > last }) {
			if last = n.loop.Status().Scores.N; last >= n.sent {
				return nil
			}
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return fmt.Errorf("demo: %s has learnt %d of %d rows, and none for %v", n.name, last, n.sent, fleetPatience)
	}
}

// await polls until done, and reports false after a time without.
func await(ctx context.Context, within time.Duration, done func() bool) bool {
	for until := time.Now().Add(within); !done(); {
		if time.Now().After(until) || timing.Sleep(ctx, fleetPoll) != nil {
			return false
		}
	}
	return true
}

// exchanged reports whether each member has merged the others' contributions.
func (f *fleetDemo) exchanged() bool {
	newest := map[string]uint64{} // labels, by member
	for _, n := range f.members {
		if n == nil || !n.loop.Status().WarmedUp {
			continue
		}
		v, _ := n.view()
		if newest[n.name] = n.loop.Status().Learned; v.N != newest[n.name] {
			return false
		}
	}
	for _, n := range f.members {
		if n == nil {
			continue
		}
		v, _ := n.view()
		known := 0
		for _, m := range v.Members {
			if m.N != newest[m.Name] || v.MergeAge == nil || *v.MergeAge >= m.Age {
				return false
			}
			known++
		}
		if _, own := newest[n.name]; own {
			known++
		}
		if known != len(newest) {
			return false
		}
	}
	return true
}

// progress prints a line about the members.
func (f *fleetDemo) progress() {
	publish, taken, refused := 0, 0, 0
	for _, n := range f.members {
		if n == nil {
			continue
		}
		v, _ := n.view()
		if v.Sequence > 0 {
			publish++
		}
		if n.role != roleLiar {
			t, r := judged(v)
			taken, refused = taken+t, refused+r
		}
	}
	line := fmt.Sprintf("%5.0f s  %4d rows at node1", time.Since(f.start).Seconds(), f.members[0].sent)
	if publish > 0 {
		line += fmt.Sprintf("; %d nodes publish, those with right labels take %d contributions and refuse %d", publish, taken, refused)
	}
	fmt.Fprintln(f.out, line)
}

package demo

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/daemon"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/online"
	"edge/stream"
	"edge/stream/membership"
)

// role is that of a node in the demo's fleet.
type role string

const (
	roleMember   role = "member"
	roleNewcomer role = "newcomer"
	roleLiar     role = "liar"
	roleAlone    role = "alone" // without a fleet
)

// testPrefix begins the ids of the rows by which a node is judged.
const testPrefix = "test-"

// fleetNode is one daemon.
type fleetNode struct {
	name   string
	role   role
	model  string
	topic  string
	daemon *daemon.Daemon
	loop   *online.Loop
	pub    *broker.Publisher
	served chan error // the end of Run
	sent   uint64     // labelled rows
	first  float64    // log loss of the first round; 0: not known

	mu    sync.Mutex
	tests []dataset.Row
	loss  []float64 // of tests; NaN: not predicted yet
	left  int       // of them
}

// startNode starts a node and waits until it receives messages.
func (f *fleetDemo) startNode(running context.Context, name string, as role) (*fleetNode, error) {
	cfg, err := f.nodeConfig(name, as)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("demo: %w", err))
	}
	n := &fleetNode{name: name, role: as, model: stream.ModelName(f.sensors.name), topic: "sensors/" + name, served: make(chan error, 1)}
	if n.daemon, err = daemon.New(cfg, f.log.With("node", name), n.predicted); err != nil {
		return nil, err
	}
	n.loop = n.daemon.Loop(n.model)
	f.started = append(f.started, n)
	go func() {
		err := n.daemon.Run(running)
		if running.Err() == nil {
			f.stop(fmt.Errorf("demo: %s has ended: %w", name, err))
		}
		n.served <- err
	}()
	if n.pub, err = broker.NewPublisher(running, cfg.MQTT, 1, broker.Listener{}); err != nil {
		return nil, err
	}
	if !await(running, fleetPatience, func() bool { return n.daemon.Stats().Subscribed }) {
		return nil, fmt.Errorf("demo: %s does not reach the broker", name)
	}
	return n, nil
}

// nodeConfig returns the configuration of a node. The minibatches end with the rounds, so
// that the nodes learn the same steps at any speed.
func (f *fleetDemo) nodeConfig(name string, as role) (*config.Config, error) {
	c, err := f.config(f.site)
	if err != nil {
		return nil, err
	}
	of := stream.ModelName(f.sensors.name)
	in, m := c.Streams[of], c.Models[of]
	in.Topics = []string{"sensors/" + name}
	m.Pending.Max = 0
	m.Learner.Temporal = online.TemporalOff // the rows are shuffled
	m.Learner.Inducing, m.Learner.Warmup = fleetInducing, warmupRounds*roundRows
	m.Learner.Batch.MaxSize, m.Learner.Batch.MaxWait = roundRows/3, 0
	if as != roleAlone {
		m.Fleet.Concept, m.Fleet.Every, m.Fleet.Interval, m.Fleet.MergeEvery = of, roundRows, time.Second, time.Second
		m.Fleet.Information = 0
	}
	c.Streams[of], c.Models[of] = in, m
	c.Node, c.Store.Path = name, filepath.Join(f.folder, name+".db")
	if name != "node1" {
		c.HTTP.Listen = ""
	}
	return c, c.Validate()
}

// end stops the nodes, once running has ended, and returns their errors.
func (f *fleetDemo) end() error {
	var first error
	for _, n := range f.started {
		if n.pub != nil {
			n.pub.Close()
		}
		if err := <-n.served; err != nil && !unfinished(err) && first == nil {
			first = fmt.Errorf("demo: %s: %w", n.name, err)
		}
	}
	return first
}

// view describes the node's part in the fleet.
func (n *fleetNode) view() (membership.View, bool) { return n.daemon.Fleet(n.model) }

// publish sends rows to the node, and waits until the broker has them.
func (n *fleetNode) publish(ctx context.Context, rows []dataset.Row, labelled bool) error {
	var p replay.Player
	for i := range rows {
		id, label := testPrefix+strconv.Itoa(i), ""
		if labelled {
			id, label = n.name+"-"+strconv.FormatUint(n.sent, 10), rows[i].Label
			n.sent++
		}
		if err := n.pub.Publish(ctx, n.topic, p.Sample(id, rows[i].X, label)); err != nil {
			return err
		}
	}
	return n.pub.Drain(ctx)
}

// judge lets a node predict the test rows.
func (f *fleetDemo) judge(ctx context.Context, n *fleetNode) error {
	n.mu.Lock()
	n.tests, n.loss, n.left = f.tests, slices.Repeat([]float64{math.NaN()}, len(f.tests)), len(f.tests)
	n.mu.Unlock()
	if err := n.publish(ctx, f.tests, false); err != nil {
		return err
	}
	left := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.left
	}
	if !await(ctx, fleetPatience, func() bool { return left() == 0 }) {
		return fmt.Errorf("demo: %s has not predicted %d of %d rows", n.name, left(), len(f.tests))
	}
	return nil
}

// predicted scores the prediction of a test row. The daemon calls it; it does not wait.
func (n *fleetNode) predicted(p *stream.Prediction) {
	number, ok := strings.CutPrefix(p.ID, testPrefix)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(n.loss) || !math.IsNaN(n.loss[i]) {
		return
	}
	const least = 1e-6 // as in the scores of edge
	prob := least
	if k := slices.Index(p.Classes, n.tests[i].Label); k >= 0 && k < len(p.Probs) {
		prob = max(prob, p.Probs[k])
	}
	n.loss[i] = -math.Log(prob)
	n.left--
}

// nll returns the mean log loss of the test rows.
func (n *fleetNode) nll() float64 {
	sum := 0.
	for _, v := range n.loss {
		sum += v
	}
	return sum / float64(len(n.loss))
}

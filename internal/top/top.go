package top

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/internal/timing"
	"edge/stream/field"
	"edge/stream/mqtt"
)

const (
	lookForNodes = 2 * time.Second // waits for the retained states
	measureEvery = time.Second     // the rates
	sendWithin   = 5 * time.Second // a label or a request
	plainWidth   = 78              // of a layout outside of a terminal
)

// Viewer watches a node over MQTT. Its fields are the flags of `edge top`.
type Viewer struct {
	Node, Model  string
	Interval     time.Duration
	Once, AsJSON bool
}

// Run watches the node until ctx ends or the user quits. Without Node it finds the
// only node of the broker.
func (t *Viewer) Run(ctx context.Context, cfg mqtt.Config, in io.Reader, out io.Writer) error {
	if t.Node == "" {
		var err error
		if t.Node, err = onlyNode(ctx, cfg); err != nil {
			return err
		}
	}
	c := &client{state: newNodeState(cfg.BaseTopic, t.Node)}
	var err error
	c.publisher, err = broker.NewPublisher(ctx, cfg, 1, broker.Listener{Filters: c.state.topics(), Receive: c.state.receive})
	if err != nil {
		return err
	}
	defer c.publisher.Close()
	ctx, cancel := context.WithCancel(ctx)
	var measuring sync.WaitGroup
	measuring.Go(func() { timing.Every(ctx, measureEvery, func() { c.state.tick(time.Now()) }) })
	defer measuring.Wait()
	defer cancel()
	if terminal.IsTerminal(out) && !t.Once && !t.AsJSON {
		return runProgram(ctx, c, t.Model, in, out)
	}
	return t.print(ctx, c, out)
}

// print prints a snapshot at intervals until ctx ends, or once.
func (t *Viewer) print(ctx context.Context, c *client, out io.Writer) error {
	for first := true; ; first = false {
		if err := timing.Sleep(ctx, t.Interval); err != nil {
			return nil
		}
		v := c.snapshot()
		if err := t.printView(v, out, first); err != nil {
			return err
		}
		if !t.Once {
			continue
		}
		if v.State == "" && v.Started == nil && len(v.Models) == 0 {
			return fmt.Errorf("no message came from node %s: is its name right, and may this user read %s/%s/#?", t.Node, c.state.base, t.Node)
		}
		if t.Model != "" && !t.AsJSON && !slices.ContainsFunc(v.Models, func(m modelView) bool { return m.Model == t.Model }) {
			return fmt.Errorf("node %s: no message came from a model %q", t.Node, t.Model)
		}
		return nil
	}
}

// printView prints one snapshot.
func (t *Viewer) printView(v *view, out io.Writer, first bool) error {
	if t.AsJSON {
		return terminal.PrintJSON(out, v)
	}
	var b strings.Builder
	if !first {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\n", v.Time.Format(time.DateTime))
	shown := 0
	for i := range max(len(v.Models), 1) {
		if t.Model != "" && (i >= len(v.Models) || v.Models[i].Model != t.Model) {
			continue
		}
		p := layout{width: plainWidth, model: i}
		lines := p.lines(v)
		if shown > 0 {
			lines = append([]string{""}, lines[1:]...)
		}
		for _, line := range lines {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		shown++
	}
	if shown == 0 && !t.Once {
		fmt.Fprintf(&b, "node %s: no message came from a model %q\n", v.Node, t.Model)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// onlyNode returns the node of a broker with a single one.
func onlyNode(ctx context.Context, cfg mqtt.Config) (string, error) {
	var mu sync.Mutex
	states := map[string]string{}
	const limit = 1000
	p, err := broker.NewPublisher(ctx, cfg, 0, broker.Listener{Filters: []string{cfg.BaseTopic + "/+/state"}, Receive: func(topic string, payload []byte, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimSuffix(strings.TrimPrefix(topic, cfg.BaseTopic+"/"), "/state")
		if len(states) < limit && len(payload) > 0 {
			states[terminal.Plain(name)] = terminal.Plain(string(payload))
		}
	}})
	if err != nil {
		return "", err
	}
	defer p.Close()
	if err := timing.Sleep(ctx, lookForNodes); err != nil {
		return "", err
	}
	mu.Lock()
	defer mu.Unlock()
	names := field.Names(states)
	if len(names) == 1 {
		return names[0], nil
	}
	if len(names) == 0 {
		return "", exit.With(exit.Broker, fmt.Errorf("no node has published its state on %s/+/state: name it with --node, its base topic with --base", cfg.BaseTopic))
	}
	for i, name := range names {
		names[i] = name + " (" + states[name] + ")"
	}
	return "", exit.With(exit.Usage, fmt.Errorf("the broker has %d nodes: name one with --node: %s", len(names), strings.Join(names, ", ")))
}

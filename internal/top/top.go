package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

const (
	lookForNodes = 2 * time.Second // for their retained states
	measureEvery = time.Second     // the rates
	sendWithin   = 5 * time.Second // a label or a request
	plainWidth   = 78              // of a panel that is not on a terminal
)

// Viewer is what the flags of `edge top` ask for.
type Viewer struct {
	Node, Model  string
	Interval     time.Duration
	Once, AsJSON bool
}

// Run watches the node until ctx or the user ends it.
func (t *Viewer) Run(ctx context.Context, cfg mqtt.Config, in io.Reader, out io.Writer) error {
	if t.Node == "" {
		var err error
		if t.Node, err = onlyNode(ctx, cfg); err != nil {
			return err
		}
	}
	w := &watch{board: newBoard(cfg.BaseTopic, t.Node)}
	var err error
	w.publisher, err = broker.NewPublisher(ctx, cfg, 1, w.board.topics(), w.board.hear, func() {})
	if err != nil {
		return err
	}
	defer w.publisher.Close()
	ctx, cancel := context.WithCancel(ctx)
	var measuring sync.WaitGroup
	measuring.Go(func() { every(ctx, measureEvery, func() { w.board.tick(time.Now()) }) })
	defer measuring.Wait()
	defer cancel()
	if terminal.IsTerminal(out) && !t.Once && !t.AsJSON {
		return showScreen(ctx, w, t.Model, in, out)
	}
	return t.print(ctx, w, out)
}

// watch is a board and the connection that it hears and speaks by.
type watch struct {
	board     *board
	publisher *broker.Publisher
	speak     sync.Mutex
}

func (w *watch) look() *boardView { return w.board.look(w.publisher.Connected()) }

// label says what a sample is; the node refuses or teaches it.
func (w *watch) label(ctx context.Context, model string, s boardSample, class string) error {
	id := s.ID
	if id == nil {
		id = "last"
	}
	payload, err := json.Marshal(map[string]any{"id": id, "label": class, "source": "edge top"})
	if err != nil {
		return fmt.Errorf("label: %w", err)
	}
	topic := model + "/label"
	if s.Device != "" {
		topic += "/" + s.Device
	}
	if err := w.send(ctx, topic, payload); err != nil {
		return err
	}
	w.board.labelled(model, s.Seq, class)
	return nil
}

// learn asks for learning to be switched on or off.
func (w *watch) learn(ctx context.Context, model string, on bool) error {
	word := "OFF"
	if on {
		word = "ON"
	}
	return w.send(ctx, "request/learning/"+model, []byte(word))
}

// send publishes below the node's topic and waits for the broker.
func (w *watch) send(ctx context.Context, topic string, payload []byte) error {
	w.speak.Lock()
	defer w.speak.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if err := w.publisher.Publish(ctx, w.board.base+"/"+w.board.node+"/"+topic, payload); err != nil {
		return err
	}
	return w.publisher.Drain(ctx)
}

// print looks at intervals until ctx ends, or once.
func (t *Viewer) print(ctx context.Context, w *watch, out io.Writer) error {
	for first := true; ; first = false {
		if err := sleep(ctx, t.Interval); err != nil {
			return nil
		}
		v := w.look()
		if err := t.printView(v, out, first); err != nil || !t.Once {
			if err != nil {
				return err
			}
			continue
		}
		if v.State == "" && v.Started == nil && len(v.Models) == 0 {
			return fmt.Errorf("nothing was heard of node %s: is its name right, and may this user read %s/%s/#?", t.Node, w.board.base, t.Node)
		}
		return nil
	}
}

func (t *Viewer) printView(v *boardView, out io.Writer, first bool) error {
	if t.AsJSON {
		return json.NewEncoder(out).Encode(v)
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
		p := panel{width: plainWidth, model: i, paint: unpainted}
		lines := p.lines(v)
		if shown > 0 {
			lines = append([]string{""}, lines[1:]...)
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
		shown++
	}
	if shown == 0 {
		fmt.Fprintf(&b, "node %s: nothing heard of a model %q\n", v.Node, t.Model)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// onlyNode finds the node of a broker that has only one.
func onlyNode(ctx context.Context, cfg mqtt.Config) (string, error) {
	var mu sync.Mutex
	states := map[string]string{}
	const most = 1000
	p, err := broker.NewPublisher(ctx, cfg, 0, []string{cfg.BaseTopic + "/+/state"}, func(topic string, payload []byte, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimSuffix(strings.TrimPrefix(topic, cfg.BaseTopic+"/"), "/state")
		if len(states) < most && len(payload) > 0 {
			states[terminal.Plain(name)] = terminal.Plain(string(payload))
		}
	}, func() {})
	if err != nil {
		return "", err
	}
	defer p.Close()
	if err := sleep(ctx, lookForNodes); err != nil {
		return "", err
	}
	mu.Lock()
	defer mu.Unlock()
	names := slices.Sorted(maps.Keys(states))
	if len(names) == 1 {
		return names[0], nil
	}
	if len(names) == 0 {
		return "", exit.With(exit.Broker, fmt.Errorf("no node has said on %s/+/state that it is there: name it with --node, its base topic with --base", cfg.BaseTopic))
	}
	for i, name := range names {
		names[i] = name + " (" + states[name] + ")"
	}
	return "", exit.With(exit.Usage, fmt.Errorf("there are %d nodes: name one with --node: %s", len(names), strings.Join(names, ", ")))
}

const keptEvents = 40 // of the node

// keepLast drops all but the last n, in place.
func keepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}

// every calls f at once and then at intervals, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

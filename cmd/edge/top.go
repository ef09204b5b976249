package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"edge/stream"
	"edge/stream/mqtt"
)

const (
	lookForNodes = 2 * time.Second // for their retained states
	measureEvery = time.Second     // the rates
	sendWithin   = 5 * time.Second // a label or a request
	plainWidth   = 78              // of a panel that is not on a terminal
)

// top is what the flags of `edge top` ask for.
type top struct {
	node, model  string
	interval     time.Duration
	once, asJSON bool
}

func newTopCommand() *cobra.Command {
	var broker brokerFlags
	var t top
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a node at a terminal, over MQTT from any machine",
		Long: `top shows what a node publishes of itself: whether it is online, and of each model
the scores and their course, the last samples, confusion, throughput and events.
It needs the broker's address and no more. Without --node and -c it finds the
node by itself if there is only one.

Keys: q ends it, tab shows the next model, p stops and resumes what is shown, up
and down stop it and choose a sample. On a node with control enabled, l says what
class the chosen sample is (the newest, if none is chosen), a does so for the
newest whose label the node asks for, and s switches learning off and on: all of
it goes over MQTT, so the broker's access list decides who may.

Where the output is no terminal, and with --once, it prints plain text; with
--json an object for each look. A password is read from --password-file or
EDGE_MQTT_PASSWORD_FILE.`,
		Example: `  edge top -c edge.yaml
  edge top --broker mqtt://broker.lan --node pi4-hall
  edge top --broker mqtt://broker.lan --node pi4-hall --once --json`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if t.interval < 100*time.Millisecond {
				return coded(exitUsage, errors.New("--interval: want at least 100ms"))
			}
			mqtt, cfg, err := broker.mqtt(os.Environ())
			if err != nil {
				return err
			}
			if t.node == "" && cfg != nil {
				t.node = cfg.Node
			}
			if t.node != "" && t.node != stream.NodeName(t.node) {
				return coded(exitUsage, fmt.Errorf("--node %s: want a name of [a-z0-9_-]", t.node))
			}
			return t.run(cmd.Context(), mqtt, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	broker.add(cmd)
	f := cmd.Flags()
	f.StringVar(&t.node, "node", "", "`NAME` of the node (default that of -c, else the only one)")
	f.StringVar(&t.model, "model", "", "`NAME` of the model to show first (in plain text: the only one to show)")
	f.DurationVar(&t.interval, "interval", 2*time.Second, "between two looks in plain text and JSON, and until the first")
	f.BoolVar(&t.once, "once", false, "look once")
	f.BoolVar(&t.asJSON, "json", false, "print a JSON object, on a line of its own, for each look")
	return cmd
}

// run watches the node until ctx or the user ends it.
func (t *top) run(ctx context.Context, cfg mqtt.Config, in io.Reader, out io.Writer) error {
	if t.node == "" {
		var err error
		if t.node, err = onlyNode(ctx, cfg); err != nil {
			return err
		}
	}
	w := &watch{board: newBoard(cfg.BaseTopic, t.node)}
	var err error
	w.publisher, err = NewPublisher(ctx, cfg, 1, w.board.topics(), w.board.hear, func() {})
	if err != nil {
		return err
	}
	defer w.publisher.Close()
	ctx, cancel := context.WithCancel(ctx)
	var measuring sync.WaitGroup
	measuring.Go(func() { every(ctx, measureEvery, func() { w.board.tick(time.Now()) }) })
	defer measuring.Wait()
	defer cancel()
	if isTerminal(out) && !t.once && !t.asJSON {
		return showScreen(ctx, w, t.model, in, out)
	}
	return t.print(ctx, w, out)
}

// watch is a board and the connection that it hears and speaks by.
type watch struct {
	board     *board
	publisher *Publisher
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
func (t *top) print(ctx context.Context, w *watch, out io.Writer) error {
	for first := true; ; first = false {
		if err := sleep(ctx, t.interval); err != nil {
			return nil
		}
		v := w.look()
		if err := t.printView(v, out, first); err != nil || !t.once {
			if err != nil {
				return err
			}
			continue
		}
		if v.State == "" && v.Started == nil && len(v.Models) == 0 {
			return fmt.Errorf("nothing was heard of node %s: is its name right, and may this user read %s/%s/#?", t.node, w.board.base, t.node)
		}
		return nil
	}
}

func (t *top) printView(v *boardView, out io.Writer, first bool) error {
	if t.asJSON {
		return json.NewEncoder(out).Encode(v)
	}
	var b strings.Builder
	if !first {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\n", v.Time.Format(time.DateTime))
	shown := 0
	for i := range max(len(v.Models), 1) {
		if t.model != "" && (i >= len(v.Models) || v.Models[i].Model != t.model) {
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
		fmt.Fprintf(&b, "node %s: nothing heard of a model %q\n", v.Node, t.model)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// onlyNode finds the node of a broker that has only one.
func onlyNode(ctx context.Context, cfg mqtt.Config) (string, error) {
	var mu sync.Mutex
	states := map[string]string{}
	const most = 1000
	p, err := NewPublisher(ctx, cfg, 0, []string{cfg.BaseTopic + "/+/state"}, func(topic string, payload []byte, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimSuffix(strings.TrimPrefix(topic, cfg.BaseTopic+"/"), "/state")
		if len(states) < most && len(payload) > 0 {
			states[plainText(name)] = plainText(string(payload))
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
	names := sortedKeys(states)
	if len(names) == 1 {
		return names[0], nil
	}
	if len(names) == 0 {
		return "", coded(exitBroker, fmt.Errorf("no node has said on %s/+/state that it is there: name it with --node, its base topic with --base", cfg.BaseTopic))
	}
	for i, name := range names {
		names[i] = name + " (" + states[name] + ")"
	}
	return "", coded(exitUsage, fmt.Errorf("there are %d nodes: name one with --node: %s", len(names), strings.Join(names, ", ")))
}

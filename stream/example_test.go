package stream_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/online"
	"edge/stream"
	"edge/stream/codec"
)

// memory is a journal that does not survive the process.
type memory struct{ seq uint64 }

func (m *memory) Commit(c *online.Commit) error {
	for i := range c.Records {
		m.seq++
		c.Records[i].Seq = m.seq
	}
	return nil
}

func (m *memory) Seen(model string, key uint64) bool { return false }

func ExampleNewNode() {
	broker := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	tcp := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	if err := broker.AddHook(new(auth.AllowHook), nil); err != nil {
		fmt.Println(err)
		return
	}
	if err := broker.AddListener(tcp); err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()
	if err := broker.Serve(); err != nil {
		fmt.Println(err)
		return
	}

	// A learner of two features, and the loop that owns it.
	learning := online.DefaultConfig()
	learning.Features = []string{"rms", "temperature"}
	learner, err := online.NewLearner(learning)
	if err != nil {
		fmt.Println(err)
		return
	}
	loop := online.NewLoop(learner, online.LoopOptions{Model: "pump"})

	// A node with one stream for it.
	cfg := stream.DefaultConfig()
	cfg.Node, cfg.MQTT.Servers = "pi", []string{"tcp://" + tcp.Address()}
	sensors := codec.DefaultStream()
	sensors.Topics, sensors.Features = []string{"sensors/pump"}, learning.Features
	cfg.Streams["sensors"] = sensors
	node, err := stream.NewNode(cfg, stream.Deps{
		Models:  []stream.ModelConfig{{Name: "pump", Model: loop, Streams: []string{"sensors"}, Classes: learning.Classes, Batch: learning.Batch, Pending: stream.DefaultPending()}},
		Journal: new(memory),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { loop.Run(ctx) })
	wg.Go(func() { node.Run(ctx) })

	// Once the node is online, a labelled sample is answered and learnt.
	states, predictions := make(chan packets.Packet, 10), make(chan packets.Packet, 10)
	into := func(received chan packets.Packet) mochi.InlineSubFn {
		return func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) { received <- p }
	}
	broker.Subscribe("edge/pi/state", 1, into(states))
	fmt.Printf("the node is %s\n", (<-states).Payload)
	broker.Subscribe("edge/pi/pump/prediction", 2, into(predictions))
	broker.Publish("sensors/pump", []byte(`{"rms":0.82,"temperature":41.5,"label":"ok"}`), false, 1)
	p, err := stream.ReadPrediction((<-predictions).Payload)
	fmt.Println("prediction", p.Seq, "of", p.Model, "learnt:", p.Learned, err)
	cancel()
	wg.Wait()
	// Output:
	// the node is online
	// prediction 1 of pump learnt: true <nil>
}

func ExampleReadPrediction() {
	p, err := stream.ReadPrediction([]byte(`{"v":1,"model":"pump","class":"worn","confidence":0.93,"probs":{"ok":0.07,"worn":0.93}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Model, *p.Class, p.Probs["worn"])
	// Output: pump worn 0.93
}

package mqtt_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"edge/internal/broker/embedded"
	"edge/stream/field"
	"edge/stream/mqtt"
)

func ExampleNewClient() {
	broker, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close()

	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{broker.URL()}
	messages := mqtt.NewQueue(100, field.MiB, mqtt.MessageSize)
	counters := new(mqtt.Counters)
	outbox := mqtt.NewOutbox(mqtt.DefaultOutboxConfig(), counters)
	client := mqtt.NewClient(mqtt.Options{
		Config: cfg, ID: "example", Filters: []string{"sensors/#"}, MaxPayload: 1000,
		Queue: messages, Counters: counters, Dropped: new(atomic.Uint64), Log: slog.New(slog.DiscardHandler),
		Serve: func(ctx context.Context, c *mqtt.Conn) { outbox.Serve(ctx, c) }, Event: func(kind, detail string) {},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { client.Run(ctx) })

	outbox.Push(&mqtt.Publication{Topic: "sensors/pump", Payload: []byte("20.5"), QoS: 1})
	<-messages.Ready()
	msg, _ := messages.Pop()
	fmt.Printf("%s: %s\n", msg.Topic, msg.Payload)
	msg.Ack()
	cancel()
	wg.Wait()
	// Output: sensors/pump: 20.5
}

func ExampleNewQueue() {
	q := mqtt.NewQueue(2, field.KiB, func(s string) int { return len(s) })
	any := func(string) bool { return true }
	q.Push("a", any)
	q.Push("b", any)
	_, dropped := q.Push("c", any)
	oldest, _ := q.Pop()
	fmt.Println(dropped, oldest, q.Len())
	// Output: 1 b 1
}

func ExampleNewOutbox() {
	o := mqtt.NewOutbox(mqtt.DefaultOutboxConfig(), new(mqtt.Counters))
	o.Push(&mqtt.Publication{Topic: "edge/pi/state", Payload: []byte("offline"), Retained: true})
	o.Push(&mqtt.Publication{Topic: "edge/pi/state", Payload: []byte("online"), Retained: true})
	p, _ := o.Pop()
	fmt.Printf("%s %d\n", p.Payload, o.Len())
	// Output: online 0
}

func ExampleSecret() {
	s := mqtt.Secret{Env: "EXAMPLE_WITHOUT_A_VALUE"}
	_, err := s.Resolve()
	fmt.Println(err)
	// Output: read secret: environment variable EXAMPLE_WITHOUT_A_VALUE is not set, or empty
}

package broker_test

import (
	"context"
	"fmt"

	"edge/internal/broker"
	"edge/internal/broker/embedded"
	"edge/stream/mqtt"
)

// A client that receives its own message from a broker inside the process.
func ExampleDial() {
	server, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{server.URL()}

	received := make(chan broker.Message, 1)
	ctx := context.Background()
	client, err := broker.Dial(ctx, cfg, broker.Options{Receive: func(m broker.Message) { received <- m }})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	granted, err := client.Subscribe(ctx, "sensors/+", 1)
	fmt.Println(granted, err)
	if err := client.Publish(ctx, "sensors/pump", 1, false, []byte(`{"id":7}`)); err != nil {
		fmt.Println(err)
	}
	m := <-received
	fmt.Printf("%s %s\n", m.Topic, m.Payload)
	// Output:
	// true <nil>
	// sensors/pump {"id":7}
}

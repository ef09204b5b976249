package embedded

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// A broker ends while a client connects: the race detector watches.
func TestCloseBesideConnect(t *testing.T) {
	for range 200 {
		b := start(t)
		if conn, err := net.Dial("tcp", b.addr.String()); err != nil {
			t.Error(err)
		} else {
			defer conn.Close()
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Retained messages and wills arrive and are removed while another client subscribes
// with a wildcard: the race detector watches.
func TestRetainedBesideSubscriptions(t *testing.T) {
	b := start(t)
	defer b.Close()
	var clients sync.WaitGroup
	clients.Go(func() {
		c := connect(t, b, "writer")
		defer c.Disconnect(0)
		for i := range 500 {
			payload := []byte("value")
			if i%7 == 0 {
				payload = nil
			}
			await(t, c.Publish("a/b", byte(i%3), true, payload))
		}
	})
	clients.Go(func() {
		for range 20 {
			dies(t, b)
		}
	})
	clients.Go(func() {
		c := connect(t, b, "reader")
		defer c.Disconnect(0)
		for range 500 {
			await(t, c.Subscribe("a/+", 1, nil))
			await(t, c.Unsubscribe("a/+"))
		}
	})
	clients.Wait()
}

func start(t *testing.T) *Broker {
	t.Helper()
	b, err := Start("127.0.0.1:0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func connect(t *testing.T, b *Broker, id string) mqtt.Client {
	t.Helper()
	c := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(b.URL()).SetClientID(id))
	await(t, c.Connect())
	return c
}

// dies connects a client whose connection ends at once, so that the broker publishes its will.
func dies(t *testing.T, b *Broker) {
	t.Helper()
	var conn net.Conn
	options := mqtt.NewClientOptions().AddBroker(b.URL()).SetClientID("mortal").SetWill("a/c", "gone", 1, true).SetAutoReconnect(false)
	options.SetCustomOpenConnectionFn(func(uri *url.URL, _ mqtt.ClientOptions) (net.Conn, error) {
		var err error
		conn, err = net.Dial("tcp", uri.Host)
		return conn, err
	})
	await(t, mqtt.NewClient(options).Connect())
	conn.Close()
}

func await(t *testing.T, token mqtt.Token) {
	t.Helper()
	if !token.WaitTimeout(time.Minute) {
		t.Error("no answer of the broker")
	} else if token.Error() != nil {
		t.Error(token.Error())
	}
}

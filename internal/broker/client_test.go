package broker_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/broker/embedded"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/test/files"
)

// A listener that says nothing is an error of the broker, in words for a person.
func TestConnectWithoutAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := brokertest.Config("mqtt://" + l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = broker.Connect(ctx, cfg, broker.Options{})
	if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Code != exit.Broker || !strings.Contains(err.Error(), "at "+cfg.Servers[0]+": it has not answered in time") {
		t.Errorf("the error is %v", err)
	}
}

// A broker whose certificate is not trusted is named with the remedy.
func TestConnectToUnknownAuthority(t *testing.T) {
	pair := files.Certificate(t, filepath.Join(t.TempDir(), "broker"), "127.0.0.1", nil, nil)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	cfg := brokertest.Config("mqtts://" + l.Addr().String())
	if _, err = broker.Connect(t.Context(), cfg, broker.Options{}); err == nil || !strings.Contains(err.Error(), "set mqtt.tls.ca") {
		t.Errorf("the error is %v", err)
	}
}

// A connection that the broker ends in place of an answer is named as such.
func TestLostConnection(t *testing.T) {
	cfg := brokertest.Config(brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		if _, ok := p.(*packets.ConnectPacket); !ok {
			runtime.Goexit() // which ends the connection
		}
		send(packets.NewControlPacket(packets.Connack))
	}))
	c, err := broker.Connect(t.Context(), cfg, broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Subscribe(t.Context(), "a", 1); err == nil || err.Error() != "subscribe to a: the connection was lost before the broker answered" {
		t.Errorf("the error is %v", err)
	}
}

// A request that no node would take is refused before a broker is asked.
func TestRefusedRequest(t *testing.T) {
	cfg := config.Default()
	cfg.MQTT.Servers = []string{"mqtt://127.0.0.1:1"}
	for _, c := range []struct{ command, data, want string }{
		{"class_add/m", `{"class": "` + strings.Repeat("x", 4100) + `"}`, "takes 4096 at most"},
		{"freez/m", "", `unknown request "freez": there are checkpoint,`},
		{"ping/m", "", "ping is for the node"},
	} {
		_, err := broker.Ask(t.Context(), &cfg, c.command, []byte(c.data), io.Discard)
		if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Code != exit.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", c.command, err, c.want)
		}
	}
}

// A node whose info says that it carries out no requests is not waited for.
func TestRequestOfANodeWithoutControl(t *testing.T) {
	b, err := embedded.Start(brokertest.FreeAddress(t), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	cfg := config.Default()
	cfg.MQTT.Servers, cfg.Node = []string{b.URL()}, "n1"
	node, err := broker.Connect(t.Context(), cfg.MQTT, broker.Options{ID: "n1", Receive: func(broker.Message) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	if _, err := node.Subscribe(t.Context(), "edge/n1/request/#", 1); err != nil {
		t.Fatal(err)
	}
	for topic, payload := range map[string]string{"edge/n1/state": "online", "edge/n1/info": `{"control":false}`} {
		if err := node.Publish(t.Context(), topic, 1, true, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = broker.Ask(t.Context(), &cfg, "ping", nil, io.Discard)
	if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Code != exit.Broker || !strings.Contains(err.Error(), "control.enabled") {
		t.Errorf("the error is %v", err)
	}
}

// A node that is offline is waited for, and the user is told at once.
func TestRequestOfANodeThatIsOffline(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	b.Retain(t, "edge/n1/state", "offline")
	cfg := config.Default()
	cfg.MQTT, cfg.Node = brokertest.Config(b.URL()), "n1"
	ctx, over := context.WithCancelCause(t.Context())
	var told strings.Builder
	_, err := broker.Ask(ctx, &cfg, "ping", nil, writerFunc(func(p []byte) (int, error) {
		over(context.DeadlineExceeded)
		return told.Write(p)
	}))
	if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Code != exit.Broker || !strings.Contains(err.Error(), "node n1 is not online at "+b.URL()) {
		t.Errorf("the error is %v", err)
	}
	if want := "node n1 is offline: waiting for its daemon to start\n"; told.String() != want {
		t.Errorf("told %q, want %q", &told, want)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A broker may drop a request that this user may not write, without a word: the error names that right, too. The time is over
// once the client has acknowledged another's response, hence read what was sent before: that the broker has the request.
func TestRequestWithoutAnswer(t *testing.T) {
	ctx, over := context.WithCancelCause(t.Context())
	cfg := config.Default()
	cfg.Node = "n1"
	cfg.MQTT = brokertest.Config(brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		publish := func(topic, payload string, qos byte) {
			message := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
			message.TopicName, message.Payload, message.Qos, message.MessageID = topic, []byte(payload), qos, 1
			send(message)
		}
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			send(brokertest.Suback(p, 1))
			if p.Topics[0] == "edge/n1/state" {
				publish("edge/n1/state", "online", 0)
			}
		case *packets.PublishPacket:
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			send(answer)
			publish("edge/n1/response/ping", `{"transaction": "another's"}`, 1)
		case *packets.PubackPacket:
			over(context.DeadlineExceeded)
		}
	}))
	_, err := broker.Ask(ctx, &cfg, "ping", nil, io.Discard)
	if e := (*exit.Error)(nil); !errors.As(err, &e) || e.Code != exit.Broker || !strings.Contains(err.Error(), "may this user write the node's request/#?") {
		t.Errorf("the error is %v", err)
	}
}

// The answer that a client asks for comes behind the retained messages of a subscription, and Receive has taken all of
// them by then. The embedded broker sends them later.
func TestAnswerBehindMessages(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		const messages = 50
		for i := range messages {
			b.Retain(t, fmt.Sprint("kept/", i), "x")
		}
		var taken atomic.Int64
		c, err := broker.Dial(t.Context(), brokertest.Config(b.URL()), broker.Options{Receive: func(broker.Message) { taken.Add(1) }})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if granted, err := c.Subscribe(t.Context(), "kept/+", 0); !granted || err != nil {
			t.Fatal(granted, err)
		}
		if err := c.Answer(t.Context()); err != nil || taken.Load() != messages {
			t.Errorf("%v, after %d of %d messages", err, taken.Load(), messages)
		}
	})
}

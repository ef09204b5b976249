package stream

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/tidwall/gjson"

	"edge/stream/homeassistant"
	"edge/stream/mqtt"
)

// A broker may keep nothing of what comes right after its start: what says who the node is is
// published once more.
func TestInfoIsRepeated(t *testing.T) {
	in("", t, func(t *testing.T) {
		published := map[string]int{}
		var all sync.WaitGroup
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			client, broker := net.Pipe()
			all.Go(func() { takePublished(broker, func(p *packets.PublishPacket) { published[p.TopicName]++ }) })
			return client, nil
		}
		cfg, m := testConfig()
		cfg.MQTT.Servers, cfg.HomeAssistant = []string{"mqtt://broker"}, homeassistant.DefaultConfig()
		cfg.HomeAssistant.Enabled = true
		n := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Dial: dial, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { n.Run(ctx) })
		time.Sleep(2 * mqtt.RepeatAfter)
		stop()
		all.Wait()
		want := map[string]int{"edge/n1/info": 2, "edge/n1/state": 3, "homeassistant/device/edge_n1_bearing/config": 2} // and offline
		for topic, n := range want {
			if got := published[topic]; got != n {
				t.Errorf("%s was published %d times, want %d", topic, got, n)
			}
		}
	})
}

// The info counts the connections before it that were lost within a minute each, as where another process with
// the client_id ends them, until one has lasted for that time.
func TestInfoCountsBriefConnections(t *testing.T) {
	in("", t, func(t *testing.T) {
		const lost, after = 3, 25 * time.Second
		var counts []int64
		var all sync.WaitGroup
		connections := 0
		dial := func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			client, broker := net.Pipe()
			if connections++; connections <= lost {
				time.AfterFunc(after, func() { broker.Close() })
			}
			all.Go(func() {
				takePublished(broker, func(p *packets.PublishPacket) {
					if p.TopicName == "edge/n1/info" {
						counts = append(counts, gjson.GetBytes(p.Payload, "brief_connections").Int())
					}
				})
			})
			return client, nil
		}
		cfg, m := testConfig()
		cfg.MQTT.Servers = []string{"mqtt://broker"}
		n := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Dial: dial, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() { n.Run(ctx) })
		time.Sleep((lost + 2) * mqtt.RepeatAfter)
		stop()
		all.Wait()
		if want := []int64{0, 1, 2, 3, 0}; !slices.Equal(counts, want) {
			t.Errorf("the infos count %v, want %v", counts, want)
		}
	})
}

// takePublished is a broker that passes on the messages of a client.
func takePublished(nc net.Conn, take func(*packets.PublishPacket)) {
	defer nc.Close()
	for {
		p, err := packets.ReadPacket(nc)
		if err != nil {
			return
		}
		switch p := p.(type) {
		case *packets.ConnectPacket:
			io.WriteString(nc, "\x20\x02\x00\x00")
		case *packets.SubscribePacket:
			answer := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
			answer.MessageID, answer.ReturnCodes = p.MessageID, p.Qoss
			answer.Write(nc)
		case *packets.PublishPacket:
			take(p)
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			answer.Write(nc)
		case *packets.PingreqPacket:
			io.WriteString(nc, "\xd0\x00")
		}
	}
}

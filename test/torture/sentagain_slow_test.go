//go:build slow

package torture

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker/brokertest"
)

// What real brokers do with messages that were not acknowledged when a
// connection ended: RELIABILITY.md has the table, and stream's set of
// unconfirmed messages relies on it.
func TestSentAgain(t *testing.T) {
	type repeats struct{ renewed, dup bool } // the identifier of a repeated message, and its flag
	for name, of := range map[string]repeats{
		"mosquitto": {dup: true}, "nats": {dup: true}, "rabbitmq": {renewed: true, dup: true}, "activemq": {dup: true}, "flashmq": {}, "emqx": {dup: true},
	} {
		t.Run(name, func(t *testing.T) {
			broker := brokertest.New(t, brokertest.Servers[name].Start)
			const sent, acknowledged = 8, 3
			first := connectRaw(t, broker.Addr, "edge-again")
			first.subscribe("again")
			publisher := connectRaw(t, broker.Addr, "edge-again-publisher")
			for i := range sent {
				publisher.publish("again", fmt.Sprint(i), uint16(i+1))
			}
			var before []*packets.PublishPacket
			for i := range sent {
				p := first.message()
				before = append(before, p)
				if i < acknowledged {
					first.acknowledge(p)
				}
			}
			first.ping() // its answer shows that the acknowledgements were read
			first.conn.Close()

			second := connectRaw(t, broker.Addr, "edge-again")
			var got, want []string
			for i := acknowledged; i < sent; i++ {
				p := second.message()
				got = append(got, fmt.Sprint(p.MessageID, " ", p.Dup, " ", string(p.Payload)))
				id := before[i].MessageID
				if of.renewed {
					id = uint16(i - acknowledged + 1)
				}
				want = append(want, fmt.Sprint(id, " ", of.dup, " ", i))
			}
			slices.Sort(got) // NATS sends again in any order
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("sent again: %q, want %q", got, want)
			}
		})
	}
}

// Real brokers send a retained message again to a client that is subscribed to it by another
// filter: so a member of a fleet asks for one that was lost.
func TestRetainedSentAgain(t *testing.T) {
	for _, name := range []string{"mosquitto", "nats", "flashmq"} {
		t.Run(name, func(t *testing.T) {
			broker := brokertest.New(t, brokertest.Servers[name].Start)
			publisher := connectRaw(t, broker.Addr, "edge-kept-publisher")
			p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
			p.TopicName, p.Payload, p.Qos, p.MessageID, p.Retain = "kept/a", []byte("it"), 1, 1, true
			publisher.send(p)
			publisher.await(packets.Puback)
			client := connectRaw(t, broker.Addr, "edge-kept")
			for i, filter := range []string{"kept/+", "kept/a", "kept/#"} {
				p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
				p.MessageID, p.Topics, p.Qoss = uint16(i+1), []string{filter}, []byte{0}
				client.send(p)
				if m := client.message(); m.TopicName != "kept/a" || string(m.Payload) != "it" || !m.Retain {
					t.Errorf("for %s came %v", filter, m)
				}
			}
		})
	}
}

// rawClient speaks MQTT packet by packet.
type rawClient struct {
	t    *testing.T
	conn net.Conn
}

func connectRaw(t *testing.T, addr, id string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &rawClient{t, conn}
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.ClientIdentifier, p.Keepalive = "MQTT", 4, id, 600
	c.send(p)
	c.await(packets.Connack)
	return c
}

func (c *rawClient) send(p packets.ControlPacket) {
	c.t.Helper()
	if err := p.Write(c.conn); err != nil {
		c.t.Fatal(err)
	}
}

// await returns the next packet of a kind; others are passed over.
func (c *rawClient) await(kind byte) packets.ControlPacket {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(brokertest.Patience)); err != nil {
		c.t.Fatal(err)
	}
	empty := packets.NewControlPacket(kind)
	for {
		p, err := packets.ReadPacket(c.conn)
		if err != nil {
			c.t.Fatalf("waiting for a %T: %v", empty, err)
		}
		if fmt.Sprintf("%T", p) == fmt.Sprintf("%T", empty) {
			return p
		}
	}
}

func (c *rawClient) subscribe(topic string) {
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	p.MessageID, p.Topics, p.Qoss = 1, []string{topic}, []byte{1}
	c.send(p)
	c.await(packets.Suback)
}

func (c *rawClient) publish(topic, payload string, id uint16) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload, p.Qos, p.MessageID = topic, []byte(payload), 1, id
	c.send(p)
	c.await(packets.Puback)
}

func (c *rawClient) message() *packets.PublishPacket {
	return c.await(packets.Publish).(*packets.PublishPacket)
}

func (c *rawClient) acknowledge(m *packets.PublishPacket) {
	p := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	p.MessageID = m.MessageID
	c.send(p)
}

func (c *rawClient) ping() {
	c.send(packets.NewControlPacket(packets.Pingreq))
	c.await(packets.Pingresp)
}

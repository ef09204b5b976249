package fleetctl

import (
	"bytes"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/stream/mqtt"
)

// A process that stands still for longer than the silence finds the message and the answer of the broker afterwards: what
// has come in that order counts, of the retained messages and of the state of a node.
func TestReadAfterStandstill(t *testing.T) {
	_, data := contribution(t, 1, 2)
	late := func(topic string, payload []byte) (url string) {
		sent := false
		return brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
			switch p := p.(type) {
			case *packets.ConnectPacket:
				send(packets.NewControlPacket(packets.Connack))
			case *packets.SubscribePacket:
				send(brokertest.Suback(p, p.Qoss...))
			case *packets.UnsubscribePacket:
				if !sent {
					sent = true
					kept := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
					kept.Retain, kept.TopicName, kept.Payload = true, topic, payload
					send(kept)
				}
				send(unsuback(p))
			}
		})
	}
	f := &Fleet{MQTT: mqtt.DefaultConfig(), Concept: "c", quiet: 20 * time.Millisecond}
	f.MQTT.Servers = []string{late(f.topics().Contribution("pi3"), data)}
	if all, err := f.Read(within(t), ""); err != nil || len(all.Contributions) != 1 || !bytes.Equal(all.Contributions[0].Data, data) {
		t.Errorf("it reads %+v, %v", described(all), err)
	}
	f.MQTT.Servers = []string{late("edge/pi3/state", []byte("online"))}
	if online, err := f.Online(within(t), "pi3"); !online || err != nil {
		t.Errorf("online %v, %v", online, err)
	}
}

// A connection that ends while messages are awaited is an error: what has come is a part of them.
func TestReadOfLostConnection(t *testing.T) {
	f := &Fleet{MQTT: mqtt.DefaultConfig(), Concept: "c", quiet: 20 * time.Millisecond}
	f.MQTT.Servers = []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			send(brokertest.Suback(p, p.Qoss...))
		case *packets.UnsubscribePacket:
			send(brokertest.Suback(&packets.SubscribePacket{MessageID: p.MessageID + 1}, 0)) // which violates MQTT
		}
	})}
	if all, err := f.Read(within(t), ""); code(err) != exit.Broker {
		t.Errorf("it reads %+v, %v", described(all), err)
	}
}

package probe

import (
	"strings"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/stream/codec"
	"edge/stream/membership"
	"edge/test/files"
)

// Only a trial shows which messages a broker acknowledges and does not deliver: NATS does not
// deliver shared subscriptions, mosquitto drops what its limits and rights forbid.
func TestDeliveryIsTried(t *testing.T) {
	mosquitto := func(settings string) func(*testing.T, string) func() {
		return func(t *testing.T, addr string) func() { return brokertest.MosquittoWith(t, addr, settings) }
	}
	rights := files.Write(t, "acl", "topic readwrite edge/pi1/#\ntopic readwrite mark/#\ntopic read edge/fleet/#\n")
	own := files.Write(t, "acl", "topic readwrite edge/pi1/#\ntopic readwrite mark/#\ntopic read edge/fleet/#\ntopic readwrite edge/fleet/mill/pi1/#\n")
	const shared, kept = "ok shared subscriptions: each message goes to one of the members", "ok fleet mill: the broker keeps contributions of 96.0 KiB"
	blind := files.Write(t, "acl", "topic readwrite edge/pi1/#\ntopic readwrite mark/#\ntopic write edge/fleet/#\n")
	const unheard = "warn fleet mill: the broker sends no contribution, and this node, which only follows, answers by those alone → if members have published (edge fleet ls --kept, as a user who may read edge/fleet/mill/+), let user (none) read it"
	const noWildcards = "fail fleet mill: the broker does not send retained messages to subscriptions with a wildcard: who connects later does not hear of the others → use one that does"
	for name, tc := range map[string]struct {
		start func(*testing.T, string) func()
		topic string
		grade string
		want  []string
	}{
		"embedded":                   {brokertest.Embedded, "$share/g/pump", diagnosis.OK, []string{shared, kept}},
		"mosquitto":                  {brokertest.Mosquitto, "$share/g/pump", diagnosis.OK, []string{shared, kept}},
		"spaces":                     {brokertest.NATS, "hall 1/+", diagnosis.Fail, []string{"fail subscriptions: the broker refuses hall 1/+ → let user (none) read these topics in the broker's access list; NATS allows no topic with a space", kept}},
		"NATS":                       {brokertest.NATS, "$share/g/pump", diagnosis.Fail, []string{"fail shared subscriptions: the broker grants them and delivers nothing; the configuration has $share/g/pump", kept}},
		"size":                       {mosquitto("message_size_limit 20000\n"), "pump", diagnosis.Warn, []string{"warn fleet mill: the broker keeps contributions of 12.0 KiB, and not of 24.0 KiB → set models.bearing.fleet.max_message to 12288"}},
		"packet":                     {mosquitto("max_packet_size 60000\n"), "pump", diagnosis.Warn, []string{"warn fleet mill: the broker keeps contributions of 48.0 KiB, and not of 96.0 KiB"}},
		"least":                      {mosquitto("max_packet_size 5000\n"), "pump", diagnosis.Warn, []string{"warn fleet mill: the broker keeps contributions of 4.0 KiB, and not of 6.0 KiB → set models.bearing.fleet.max_message to 4096"}},
		"too small":                  {mosquitto("message_size_limit 2000\n"), "pump", diagnosis.Fail, []string{"fail fleet mill: the broker keeps no messages of 4.0 KiB, which contributions need: the others would not hear of this node → raise the broker's limit (mosquitto: message_size_limit"}},
		"rights":                     {mosquitto("acl_file " + rights + "\n"), "pump", diagnosis.Fail, []string{"fail fleet mill: what this node publishes below edge/fleet/mill/pi1/ does not come back", "let user (none) write edge/fleet/mill/pi1 and edge/fleet/mill/pi1/#"}},
		"wildcards":                  {(&brokertest.Lacking{Unretained: true}).Start, "pump", diagnosis.Fail, []string{noWildcards}},
		"few":                        {(&brokertest.Lacking{Most: 3}).Start, "pump", diagnosis.Warn, []string{"warn retained messages: of 8 more the broker keeps 2: it limits their number", kept}},
		"follower":                   {(&brokertest.Lacking{Unretained: true}).Start, "pump", diagnosis.Fail, []string{noWildcards}},
		"follower of members":        {brokertest.Mosquitto, "pump", diagnosis.OK, []string{"ok fleet mill: the broker sends contributions of members"}},
		"follower of nobody":         {brokertest.Mosquitto, "pump", diagnosis.Warn, []string{unheard}},
		"follower of unread members": {mosquitto("acl_file " + blind + "\n"), "pump", diagnosis.Warn, []string{unheard}},
		"basis":                      {brokertest.Embedded, "pump", diagnosis.OK, []string{kept, "ok basis of fleet mill: the broker keeps a common basis"}},
		"no basis":                   {mosquitto("acl_file " + own + "\n"), "pump", diagnosis.Warn, []string{kept, "warn basis of fleet mill: what this node publishes below edge/fleet/mill/basis/ does not come back", "let user (none) write edge/fleet/mill/basis"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.New(t, tc.start)
			cfg := config.Default()
			cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
			in, m := codec.DefaultStream(), config.DefaultModel()
			in.Topics, in.Features, m.Streams, m.Fleet.Concept = []string{tc.topic}, []string{"a"}, []string{"pump"}, "mill"
			if strings.HasSuffix(name, "basis") {
				m.Fleet.Basis = membership.BasisShared
			}
			if strings.HasSuffix(name, "members") {
				b.Retain(t, "edge/fleet/mill/pi2", "EFC4")
			}
			if strings.HasPrefix(name, "follower") {
				m.Fleet.Role = membership.RoleFollower
			}
			cfg.Streams["pump"], cfg.Models["bearing"] = in, m
			d := diagnosis.New()
			Delivery(t.Context(), d, &cfg, Patient(1))
			if d.Grade != tc.grade {
				t.Errorf("the grade is %s, want %s:\n%s", d.Grade, tc.grade, d)
			}
			expect(t, d, tc.want...)
			for _, topic := range []string{"edge/fleet/mill/pi1/4096", "edge/fleet/mill/basis/4096"} {
				if left := brokertest.Retained(t, b.URL(), topic); left != "" {
					t.Errorf("a message of %d bytes is left on %s", len(left), topic)
				}
			}
		})
	}
}

// At a broker that allows QoS 0 alone the tests use no other, as a daemon with mqtt.qos: 0.
func TestQoS0(t *testing.T) {
	b := brokertest.New(t, func(t *testing.T, addr string) func() { return brokertest.MosquittoWith(t, addr, "max_qos 0\n") })
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers, cfg.MQTT.QoS = "pi1", []string{b.URL()}, 0
	d := diagnosis.New()
	Delivery(t.Context(), d, &cfg, Patient(1))
	if d.Grade != diagnosis.OK {
		t.Errorf("the grade is %s:\n%s", d.Grade, d)
	}
	expect(t, d, "ok broker: a connection takes", "ok retained messages: kept", "ok shared subscriptions")
}

// A broker whose queue is full of retained messages drops its answer to a subscription with them.
func TestManyRetained(t *testing.T) {
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			if p.Topics[0] != "edge/fleet/mill/+" {
				send(brokertest.Suback(p, 0))
				return
			}
			for range 3 {
				one := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
				one.TopicName, one.Retain = "edge/fleet/mill/pi2", true
				send(one)
			}
		case *packets.UnsubscribePacket:
			answer := packets.NewControlPacket(packets.Unsuback).(*packets.UnsubackPacket)
			answer.MessageID = p.MessageID
			send(answer)
		}
	})}
	m := config.DefaultModel()
	m.Fleet.Concept = "mill"
	cfg.Models["bearing"] = m
	d := diagnosis.New()
	p, in := newProbe(d, &cfg, Patient(1)), &inbox{}
	c, err := p.connect(t.Context(), broker.Options{Receive: in.receive})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.subscriptions(t.Context(), c, in)
	expect(t, d, "no answer within 5s, and 3 messages on edge/fleet/mill/+ → if the broker keeps more messages", "max_queued_messages")
}

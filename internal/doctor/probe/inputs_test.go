package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/stream/codec"
	"edge/stream/field"
)

// expect fails unless the findings of d contain every text of want.
func expect(t *testing.T, d *diagnosis.Diagnosis, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(d.String(), w) {
			t.Errorf("no finding contains %q:\n%s", w, d)
		}
	}
}

// Topics, retained messages and sizes are those of a stream's inputs, where it has them. A size
// below the least that is tried is tried itself.
func TestInputsAreTried(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
	s := codec.DefaultStream()
	small, large := codec.DefaultInput(), codec.DefaultInput()
	small.Name, small.Topics, small.MaxPayload = "small", []string{"small/+"}, 100
	large.Name, large.Topics, large.MaxPayload, large.AllowRetained = "large", []string{"large/+"}, 200, "true"
	s.Raw.Inputs = codec.Inputs{small, large}
	cfg.Streams["pump"] = s
	d := diagnosis.New()
	p := newProbe(d, &cfg, Patient(1))
	if got := strings.Join(p.filters(), " "); got != "small/+ large/+" {
		t.Errorf("filters %s, want those of the inputs", got)
	}
	if got := p.wantsRetained(); !strings.Contains(got, "pump") {
		t.Errorf("no stream takes retained messages: %q", got)
	}
	p.run(t.Context(), func(c *broker.Client, in *inbox) { p.subscriptions(t.Context(), c, in) }, p.payload)
	expect(t, d, "ok subscriptions: the broker grants all 2", "ok largest message: 200 B pass; max_payload allows 200 B")
}

// Sizes that a broker does not let pass are halved, down to the least one.
func TestNothingPasses(t *testing.T) {
	b := brokertest.New(t, func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, "message_size_limit 50\n")
	})
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
	for _, size := range []field.ByteSize{100, 1000} {
		s := codec.DefaultStream()
		s.Topics, s.MaxPayload = []string{"pump"}, size
		cfg.Streams["pump"] = s
		d := diagnosis.New()
		p := newProbe(d, &cfg, Patient(1))
		p.run(t.Context(), func(*broker.Client, *inbox) {}, p.payload)
		expect(t, d, map[field.ByteSize]string{100: "fail largest message: not even 100 bytes pass", 1000: "fail largest message: not even 500 bytes pass"}[size])
	}
}

// A message that the broker does not acknowledge is named with its topic and the time.
func TestUnacknowledged(t *testing.T) {
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		if _, ok := p.(*packets.ConnectPacket); ok {
			send(packets.NewControlPacket(packets.Connack))
		}
	})}
	p := newProbe(diagnosis.New(), &cfg, Patient(1))
	p.within.Step = 10 * time.Millisecond
	var err error
	if p.publisher, err = broker.NewPublisher(t.Context(), cfg.MQTT, 1, broker.Listener{}); err != nil {
		t.Fatal(err)
	}
	defer p.publisher.Close()
	if err := p.publish(t.Context(), "pump", nil); err == nil || err.Error() != "publish on pump: no answer within 10ms" {
		t.Errorf("the error is %v", err)
	}
}

// A large message is tried with the daemon's quality of service: a broker may drop smaller ones of QoS 0.
func TestLargeMessageIsAcknowledged(t *testing.T) {
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{brokertest.Scripted(t, func(p packets.ControlPacket, send func(packets.ControlPacket)) {
		switch p := p.(type) {
		case *packets.ConnectPacket:
			send(packets.NewControlPacket(packets.Connack))
		case *packets.SubscribePacket:
			send(brokertest.Suback(p, p.Qoss...))
			if p.Qoss[0] == 0 {
				return
			}
			back := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
			back.Qos, back.MessageID, back.TopicName = 1, 1, p.Topics[0]
			send(back)
		case *packets.PublishPacket:
			answer := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
			answer.MessageID = p.MessageID
			send(answer)
		}
	})}
	p := newProbe(diagnosis.New(), &cfg, Patient(1))
	if passes, err := p.passes(t.Context(), 8<<10); !passes || err != nil {
		t.Errorf("it passes: %v, %v", passes, err)
	}
}

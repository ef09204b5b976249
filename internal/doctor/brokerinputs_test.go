package doctor

import (
	"strings"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/stream/codec"
)

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
	d := &Diagnosis{Grade: OK, within: patient(1)}
	p := newBrokerProbe(d, &cfg)
	if got := strings.Join(p.filters(), " "); got != "small/+ large/+" {
		t.Errorf("filters %s, want those of the inputs", got)
	}
	if got := p.wantsRetained(); !strings.Contains(got, "pump") {
		t.Errorf("no stream takes retained messages: %q", got)
	}
	p.examine(t.Context(), func(c *broker.Client, in *inbox) { p.subscriptions(t.Context(), c, in) }, p.payload)
	d.expect(t, "ok subscriptions: the broker grants all 2", "ok largest message: 200 B pass; max_payload allows 200 B")
}

// Sizes that a broker does not let pass are halved, down to the least one.
func TestNothingPasses(t *testing.T) {
	b := brokertest.New(t, func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, "message_size_limit 50\n")
	})
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
	for _, size := range []codec.ByteSize{100, 1000} {
		s := codec.DefaultStream()
		s.Topics, s.MaxPayload = []string{"pump"}, size
		cfg.Streams["pump"] = s
		d := &Diagnosis{Grade: OK, within: patient(1)}
		p := newBrokerProbe(d, &cfg)
		p.examine(t.Context(), func(*broker.Client, *inbox) {}, p.payload)
		d.expect(t, map[codec.ByteSize]string{100: "fail largest message: not even 100 bytes pass", 1000: "fail largest message: not even 500 bytes pass"}[size])
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
	p := newBrokerProbe(&Diagnosis{Grade: OK, within: patient(1)}, &cfg)
	if passes, err := p.passes(t.Context(), 8<<10); !passes || err != nil {
		t.Errorf("it passes: %v, %v", passes, err)
	}
}

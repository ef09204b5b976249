package probe

import (
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
)

// A broker that gives the identifier of a message in flight to another one has lost the first.
// One that only sends it again later, as NATS does, has not.
func TestInFlight(t *testing.T) {
	const loses = "fail messages in flight: of 8 messages that were not acknowledged when a connection ended"
	for name, tc := range map[string]struct {
		start func(*testing.T, string) func()
		want  string
	}{
		"lost":      {(&brokertest.Lacking{Unrepeated: true}).Start, loses},
		"embedded":  {brokertest.Embedded, ""},
		"mosquitto": {brokertest.Mosquitto, ""},
		"narrow": {func(t *testing.T, addr string) func() {
			return brokertest.MosquittoWith(t, addr, "max_inflight_messages 5\n")
		}, ""},
		"later": {brokertest.NATS, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Node, cfg.MQTT.Servers = "pi1", []string{brokertest.New(t, tc.start).URL()}
			d := diagnosis.New()
			p := newProbe(d, &cfg, Patient(1))
			p.within.Answer = 10 * time.Second
			p.run(t.Context(), func(*broker.Client, *inbox) {}, p.flight)
			if tc.want == "" && d.Grade != diagnosis.OK {
				t.Errorf("the grade is %s:\n%s", d.Grade, d)
			}
			expect(t, d, tc.want)
		})
	}
}

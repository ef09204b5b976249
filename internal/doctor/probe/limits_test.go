package probe

import (
	"context"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
)

// Messages that came tell of a session, whatever the broker says of it.
func TestJudgeSession(t *testing.T) {
	for name, tc := range map[string]struct {
		n, sent       int
		resumed       bool
		grade, detail string
	}{
		"all":             {3000, 3000, true, diagnosis.OK, "keeps 3000 messages and more"},
		"some":            {500, 3000, true, diagnosis.OK, "keeps 500 messages"},
		"few":             {50, 3000, true, diagnosis.Warn, "keeps 50 messages"},
		"none":            {0, 3000, true, diagnosis.Fail, "forgets a client's session"},
		"no session":      {0, 3000, false, diagnosis.Fail, "forgets a client's session"},
		"hidden session":  {3000, 3000, false, diagnosis.OK, "Session Present is 0"},
		"hidden, and few": {50, 3000, false, diagnosis.Warn, "Session Present is 0"},
	} {
		var d diagnosis.Diagnosis
		(&probe{d: &d}).judgeSession(tc.n, tc.sent, tc.resumed)
		if f := d.Findings[0]; f.Grade != tc.grade || !strings.Contains(f.Detail, tc.detail) || tc.resumed == strings.Contains(f.Detail, "Session Present") && tc.n > 0 {
			t.Errorf("%s: %s: %s", name, f.Grade, f.Detail)
		}
	}
}

// probeOf returns a patient probe of a broker.
func probeOf(b *brokertest.Broker) *probe {
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
	return newProbe(diagnosis.New(), &cfg, Patient(10))
}

// A silence as long as the way to the broker and back is not the end of its messages.
func TestQuietOfSlowBroker(t *testing.T) {
	const late = 50 * time.Millisecond
	p := probeOf(brokertest.New(t, (&brokertest.Lacking{Late: late}).Start))
	p.within.Quiet = time.Millisecond
	if p.run(t.Context(), func(*broker.Client, *inbox) {}); p.within.Quiet < 2*late {
		t.Errorf("messages are at their end after a silence of %v; the way back takes %v:\n%s", p.within.Quiet, late, p.d)
	}
}

// Where the time is over, that is said once, and what has not come by then says nothing.
func TestTimeIsOver(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	p := probeOf(b)
	ctx, end := context.WithCancel(t.Context())
	asked, err := broker.Dial(ctx, p.cfg.MQTT, broker.Options{Receive: func(broker.Message) { end() }})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	p.run(ctx, func(*broker.Client, *inbox) {
		if _, err := asked.Subscribe(ctx, p.owner+"/state", 0); err != nil {
			t.Error(err)
		}
	}, p.names, p.window, p.session)
	if len(p.d.Findings) != 2 || p.d.Grade != diagnosis.Fail {
		t.Errorf("findings\n%s", p.d)
	}
	expect(t, p.d, "ok broker: a connection takes", "fail broker: the time for all tests was over")
}

// A broker that sends a queue slowly leaves time for the other tests.
func TestSlowQueue(t *testing.T) {
	p := probeOf(brokertest.New(t, (&brokertest.Lacking{Queue: 20 * time.Millisecond}).Start))
	p.within.Queue = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	p.run(ctx, func(*broker.Client, *inbox) {}, p.session, p.payload)
	expect(t, p.d, "warn queue while away: of 3000 messages for a client that was away ", "came within 50ms", "ok largest message")
}

// A broker may keep messages and send them without their mark.
func TestUnmarked(t *testing.T) {
	p := probeOf(brokertest.New(t, (&brokertest.Lacking{Unmarked: true}).Start))
	p.run(t.Context(), func(*broker.Client, *inbox) {}, p.retained)
	expect(t, p.d, "warn retained messages: kept, and sent without the mark of a retained message")
}

// A limit of connections is reported once, with its name.
func TestTooFewConnections(t *testing.T) {
	p := probeOf(brokertest.New(t, (&brokertest.Lacking{Clients: 2}).Start))
	p.run(t.Context(), func(*broker.Client, *inbox) {}, p.retained, p.shared, p.payload)
	expect(t, p.d, "ok broker: a connection takes", "(mosquitto: max_connections)")
	if len(p.d.Findings) != 2 {
		t.Errorf("want two findings:\n%s", p.d)
	}
}

// A broker that takes the user name for the client identifier ends one connection for another.
func TestTakenForOne(t *testing.T) {
	p := probeOf(brokertest.New(t, (&brokertest.Lacking{One: true}).Start))
	p.run(t.Context(), func(*broker.Client, *inbox) {}, p.retained)
	expect(t, p.d, "fail broker: it ends a connection when a second one", "use_username_as_clientid")
}

package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
)

// Messages that came tell of a session, whatever the broker says of it.
func TestJudgeSession(t *testing.T) {
	for name, tc := range map[string]struct {
		n, sent       int
		resumed       bool
		grade, detail string
	}{
		"all":             {3000, 3000, true, OK, "keeps 3000 messages and more"},
		"some":            {500, 3000, true, OK, "keeps 500 messages"},
		"few":             {50, 3000, true, Warn, "keeps 50 messages"},
		"none":            {0, 3000, true, Fail, "forgets a client's session"},
		"no session":      {0, 3000, false, Fail, "forgets a client's session"},
		"hidden session":  {3000, 3000, false, OK, "Session Present is 0"},
		"hidden, and few": {50, 3000, false, Warn, "Session Present is 0"},
	} {
		var d Diagnosis
		(&brokerProbe{d: &d}).judgeSession(tc.n, tc.sent, tc.resumed)
		if f := d.Findings[0]; f.Grade != tc.grade || !strings.Contains(f.Detail, tc.detail) || tc.resumed == strings.Contains(f.Detail, "Session Present") && tc.n > 0 {
			t.Errorf("%s: %s: %s", name, f.Grade, f.Detail)
		}
	}
}

// probeOf returns a probe of a broker whose findings are d's.
func probeOf(b *brokertest.Broker, d *Diagnosis) *brokerProbe {
	cfg := config.Default()
	cfg.Node, cfg.MQTT.Servers = "pi1", []string{b.URL()}
	return newBrokerProbe(d, &cfg)
}

// A silence as long as the way to the broker and back is not the end of its messages.
func TestQuietOfSlowBroker(t *testing.T) {
	const late = 50 * time.Millisecond
	d := &Diagnosis{Grade: OK, within: patient(10)}
	d.within.quiet = time.Millisecond
	probeOf(brokertest.New(t, (&brokertest.Lacking{Late: late}).Start), d).examine(t.Context(), func(*broker.Client, *inbox) {})
	if d.within.quiet < 2*late {
		t.Errorf("messages are at their end after a silence of %v; the way back takes %v:\n%s", d.within.quiet, late, d.text())
	}
}

// Where the time is over, that is said once, and what has not come by then says nothing.
func TestTimeIsOver(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	d := &Diagnosis{Grade: OK, within: patient(10)}
	p := probeOf(b, d)
	ctx, end := context.WithCancel(t.Context())
	asked, err := broker.Dial(ctx, p.cfg.MQTT, broker.Options{Receive: func(broker.Message) { end() }})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	p.examine(ctx, func(*broker.Client, *inbox) {
		if _, err := asked.Subscribe(ctx, p.owner+"/state", 0); err != nil {
			t.Error(err)
		}
	}, p.names, p.window, p.session)
	if len(d.Findings) != 2 || d.Grade != Fail {
		t.Errorf("findings\n%s", d.text())
	}
	d.expect(t, "ok broker: a connection takes", "fail broker: the time for all tests was over")
}

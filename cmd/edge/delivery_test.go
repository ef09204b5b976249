package main

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/tidwall/gjson"
)

// lacking makes the embedded broker do less than it grants.
type lacking struct {
	mochi.HookBase
	undelivered bool // shared subscriptions are granted and sent nothing
	everybody   bool // each member of one is sent each message
	unretained  bool // what is retained is not sent to a subscription with a wildcard
}

func (h *lacking) ID() string { return "lacking" }

func (h *lacking) Provides(b byte) bool {
	return b == mochi.OnSelectSubscribers || b == mochi.OnSubscribe
}

func (h *lacking) OnSelectSubscribers(subs *mochi.Subscribers, _ packets.Packet) *mochi.Subscribers {
	if h.everybody {
		for _, members := range subs.Shared {
			for id, s := range members {
				subs.Subscriptions[id] = s
			}
		}
	}
	if h.everybody || h.undelivered {
		subs.Shared = nil
	}
	return subs
}

func (h *lacking) OnSubscribe(_ *mochi.Client, p packets.Packet) packets.Packet {
	const never = 2
	for i := range p.Filters {
		if h.unretained && strings.ContainsAny(p.Filters[i].Filter, "+#") {
			p.Filters[i].RetainHandling = never
		}
	}
	return p
}

// start is a broker that lacks something.
func (h *lacking) start(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := StartBroker(addr, slog.New(slog.DiscardHandler), h)
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}

// check and doctor try by messages what a broker grants: what it does not do is a
// failure where the configuration needs it.
func TestDelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		broker   func(*testing.T, string) func()
		topic    string
		code     int
		shared   string // grade and words
		retained string
	}{
		"mosquitto": {broker: startMosquitto, topic: "$share/g/sensors/waveform", code: exitOK,
			shared: "ok each message goes to one of the members", retained: "ok kept, and sent to subscriptions with a wildcard"},
		"embedded": {broker: startEmbedded, topic: "$share/g/sensors/waveform", code: exitOK,
			shared: "ok each message goes to one of the members", retained: "ok kept, and sent to subscriptions with a wildcard"},
		"granted and not delivered": {broker: (&lacking{undelivered: true}).start, topic: "$share/g/sensors/waveform", code: exitRuntime,
			shared: "fail the broker grants them and delivers nothing; the configuration has $share/g/sensors/waveform", retained: "ok kept"},
		"the same, not needed": {broker: (&lacking{undelivered: true}).start, topic: "sensors/waveform", code: exitOK,
			shared: "ok the broker grants them and delivers nothing; the configuration has none", retained: "ok kept"},
		"delivered to each": {broker: (&lacking{everybody: true}).start, topic: "$share/g/sensors/waveform", code: exitRuntime,
			shared: "fail of 6 messages 2 members were sent 12 together", retained: "ok kept"},
		"not retained for wildcards": {broker: (&lacking{unretained: true}).start, topic: "sensors/+", code: exitOK,
			shared: "ok each message", retained: "warn kept, and not sent to subscriptions with a wildcard: what subscribes to edge/test/# sees state"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestBroker(t, tc.broker)
			config, _ := waveformConfig(t, b.url())
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			config = writeFile(t, "edge.yaml", strings.Replace(string(text), "topics: [sensors/waveform]", "topics: ["+tc.topic+"]", 1))
			code, out, errOut := edge(t, "check", "-c", config, "--connect")
			if code != tc.code {
				t.Errorf("check exits with %d, want %d: %s%s", code, tc.code, out, errOut)
			}
			kinds := map[string]string{gradeOK: "broker  ", gradeWarn: "warning ", gradeFail: "error   "}
			for check, want := range map[string]string{"shared subscriptions": tc.shared, "retained messages": tc.retained} {
				grade, words, _ := strings.Cut(want, " ")
				if line := kinds[grade] + " " + check + ": " + words; !strings.Contains(out, line) {
					t.Errorf("check does not print %q: %s", line, out)
				}
			}
			if kept := retained(t, b.url(), "edge/test/+/kept"); kept != "" {
				t.Errorf("the broker still keeps %q", kept)
			}
			code, out, errOut = doctor(t, config, func(code int, out string) bool {
				return code == tc.code && findingIs(out, "shared subscriptions", tc.shared) && findingIs(out, "retained messages", tc.retained)
			})
			if code != tc.code {
				t.Errorf("doctor exits with %d, want %d: %s%s", code, tc.code, out, errOut)
			}
			for check, want := range map[string]string{"shared subscriptions": tc.shared, "retained messages": tc.retained} {
				f := gjson.Get(out, `findings.#(check=="`+check+`")`)
				if got := f.Get("grade").String() + " " + f.Get("detail").String(); !strings.HasPrefix(got, want) {
					t.Errorf("doctor on %s: %q, want %q", check, got, want)
				}
				if f.Get("grade").String() != gradeOK && f.Get("advice").String() == "" {
					t.Errorf("no advice on %s: %s", check, f)
				}
			}
		})
	}
}

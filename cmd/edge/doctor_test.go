package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/doctor/diagnosis"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// check and doctor test by messages which functions a broker provides: a missing
// one is a failure if the configuration needs it.
func TestDelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		broker   func(*testing.T, string) func()
		topic    string
		code     int
		shared   string // grade and words
		retained string
	}{
		"mosquitto": {broker: brokertest.Mosquitto, topic: "$share/g/sensors/waveform", code: exit.OK,
			shared: "ok each message goes to one of the members", retained: "ok kept, and sent to subscriptions with a wildcard"},
		"embedded": {broker: brokertest.Embedded, topic: "$share/g/sensors/waveform", code: exit.OK,
			shared: "ok each message goes to one of the members", retained: "ok kept, and sent to subscriptions with a wildcard"},
		"granted and not delivered": {broker: (&brokertest.Lacking{Undelivered: true}).Start, topic: "$share/g/sensors/waveform", code: exit.Runtime,
			shared: "fail the broker grants them and delivers nothing; the configuration has $share/g/sensors/waveform", retained: "ok kept"},
		"the same, not needed": {broker: (&brokertest.Lacking{Undelivered: true}).Start, topic: "sensors/waveform", code: exit.OK,
			shared: "ok the broker grants them and delivers nothing; the configuration has none", retained: "ok kept"},
		"delivered to each": {broker: (&brokertest.Lacking{Everybody: true}).Start, topic: "$share/g/sensors/waveform", code: exit.Runtime,
			shared: "fail of 6 messages 2 members were sent 12 together", retained: "ok kept"},
		"not retained for wildcards": {broker: (&brokertest.Lacking{Unretained: true}).Start, topic: "sensors/+", code: exit.OK,
			shared: "ok each message", retained: "warn kept, and not sent to subscriptions with a wildcard: what subscribes to edge/test/# sees state"},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokertest.New(t, tc.broker)
			config, _ := harness.WaveformConfig(t, b.URL())
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			config = files.Write(t, "edge.yaml", strings.Replace(string(text), "topics: [sensors/waveform]", "topics: ["+tc.topic+"]", 1))
			code, out, errOut := edge(t, "check", "-c", config, "--connect")
			if code != tc.code {
				t.Errorf("check exits with %d, want %d: %s%s", code, tc.code, out, errOut)
			}
			kinds := map[string]string{diagnosis.OK: "broker  ", diagnosis.Warn: "warning ", diagnosis.Fail: "error   "}
			for check, want := range map[string]string{"shared subscriptions": tc.shared, "retained messages": tc.retained} {
				grade, words, _ := strings.Cut(want, " ")
				if line := kinds[grade] + " " + check + ": " + words; !strings.Contains(out, line) {
					t.Errorf("check does not print %q: %s", line, out)
				}
			}
			if kept := brokertest.Retained(t, b.URL(), "edge/test/+/kept"); kept != "" {
				t.Errorf("the broker still keeps %q", kept)
			}
			code, out, errOut = harness.DoctorFindings(t, edge, config, func(code int, out string) bool {
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
				if f.Get("grade").String() != diagnosis.OK && f.Get("advice").String() == "" {
					t.Errorf("no advice on %s: %s", check, f)
				}
			}
		})
	}
}

// run and check warn of a secret that any user may read, without printing it.
func TestExposedSecretIsTold(t *testing.T) {
	secret := files.Write(t, "password", "hunter2")
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(harness.Minimal, "servers: [mqtt://broker.lan]", "servers: ['mqtt://127.0.0.1:1'], username: u, password: {file: "+secret+"}", 1)
	config := files.Write(t, "edge.yaml", text+"\nstore: {path: "+filepath.Join(t.TempDir(), "edge.db")+"}\nhttp: {listen: ''}\n")
	_, out, errOut := edge(t, "check", "-c", config)
	if !strings.Contains(out, "any user may read or change the password (chmod o= "+secret) {
		t.Errorf("check prints %s%s", out, errOut)
	}
	_, _, errOut = edge(t, "run", "-c", config, "--for", "10ms")
	if !strings.Contains(errOut, "any user may read or change the password") || strings.Contains(errOut, "hunter2") {
		t.Errorf("run prints %s", errOut)
	}
}

// findingIs reports whether the finding of a check begins with a text, whose first
// word is the grade.
func findingIs(out, check, words string) bool {
	f := gjson.Get(out, `findings.#(check=="`+check+`")`)
	return strings.HasPrefix(f.Get("grade").String()+" "+f.Get("detail").String(), words)
}

// The limits of a broker are found, each with advice.
func TestDoctorFindsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		settings string
		quick    bool // also without the build tag slow
		code     int
		want     map[string]string // grade and words by check
	}{
		"narrow": {
			settings: "max_inflight_messages 5\nmax_queued_messages 50\nmessage_size_limit 5000\n", quick: true,
			want: map[string]string{
				"in-flight window": "warn the broker sends 5 messages", "queue while away": "warn the broker keeps 50 messages",
				"largest message": "warn 4.0 KiB pass, 8.0 KiB do not",
			},
		},
		"wide": {
			settings: "max_inflight_messages 0\nmax_queued_messages 0\n",
			want: map[string]string{
				"in-flight window": "ok the broker sends 128 messages and more", "queue while away": "ok the broker keeps 3000 messages and more", "largest message": "ok 64.0 KiB pass",
			},
		},
		"narrower than the daemon's messages": {
			settings: "max_packet_size 400\n", quick: true, code: exit.Runtime,
			want: map[string]string{"largest message": "fail 256 bytes pass, 512 do not"},
		},
		"forgetful": {
			settings: "retain_available false\nmax_packet_size 20000\n", code: exit.Runtime,
			want: map[string]string{"retained messages": "fail the broker refuses them", "largest message": "warn 16.0 KiB pass"},
		},
		"closed": {
			settings: "acl_file {folder}/acl\n", quick: true, code: exit.Runtime,
			want: map[string]string{"broker": "fail what was published on edge/test/doctor-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !brokertest.Slow && !tc.quick {
				t.Skip("it needs the build tag slow")
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "acl"), []byte("topic read other/#\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b := brokertest.New(t, func(t *testing.T, addr string) func() {
				return brokertest.MosquittoWith(t, addr, strings.ReplaceAll(tc.settings, "{folder}", folder))
			})
			config, _ := harness.WaveformConfig(t, b.URL())
			code, out, errOut := harness.DoctorFindings(t, edge, config, func(code int, out string) bool {
				for check, want := range tc.want {
					if !findingIs(out, check, want) {
						return false
					}
				}
				return code == tc.code
			})
			if code != tc.code {
				t.Errorf("doctor exits with %d, want %d: %s%s", code, tc.code, out, errOut)
			}
			for check, want := range tc.want {
				f := gjson.Get(out, `findings.#(check=="`+check+`")`)
				if !findingIs(out, check, want) {
					t.Errorf("%s: %s, want %q", check, f, want)
				}
				if f.Get("grade").String() != diagnosis.OK && f.Get("advice").String() == "" {
					t.Errorf("%s: no advice: %s", check, f)
				}
			}
		})
	}
}

func TestDoctorWithoutABroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	config, _ := harness.WaveformConfig(t, "mqtt://"+addr)
	code, out, errOut := edge(t, "doctor", "-c", config)
	if code != exit.Runtime || !strings.Contains(out, "fail  broker") || !strings.Contains(errOut, "a check failed") {
		t.Errorf("doctor exits with %d: %s%s", code, out, errOut)
	}
	code, out, _ = edge(t, "doctor", "-c", config, "--offline")
	if code != exit.OK || strings.Contains(out, "broker ") {
		t.Errorf("doctor --offline exits with %d: %s", code, out)
	}
}

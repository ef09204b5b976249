package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The progress tells when a daemon is subscribed, and how far it is.
func TestFollower(t *testing.T) {
	f := newProgress("edge", "gas", nil)
	step := func(topic, payload string, kept, ready bool, last int) {
		t.Helper()
		f.receive(topic, []byte(payload), kept)
		if r, l, _ := f.state(); r != ready || l != last {
			t.Errorf("after %s %s (kept: %v): ready %v, row %d; want %v, %d", topic, payload, kept, r, l, ready, last)
		}
	}
	step("edge/a/info", "{}", true, false, 0) // of an earlier run
	step("edge/a/state", "offline", true, false, 0)
	step("edge/a/state", "online", false, false, 0) // connected, not yet subscribed
	step("edge/a/info", "{}", false, true, 0)
	step("edge/a/gas/prediction", `{"id":"gas-000007"}`, false, true, 7)
	step("edge/a/gas/prediction", `{"id":"gas-000005"}`, false, true, 7)
	step("edge/a/gas/prediction", `{"id":"room-000009"}`, false, true, 7)
	step("edge/a/gas/prediction/p1", `{"id":"gas-000009"}`, false, true, 9)
	step("edge/a/gas/prediction", `{"id":12}`, false, true, 9)
	step("edge/a/gas/prediction", `nonsense`, false, true, 9)
	step("edge/a/state", "offline", false, false, 9)
	step("edge/b/state", "online", true, false, 9)
	step("edge/b/info", "{}", true, true, 9) // was online before
	if got := f.topics("a"); !slices.Contains(got, "edge/a/state") || !slices.Contains(got, "edge/a/info") {
		t.Errorf("topics %q lack those of the node, which some brokers keep from wildcards", got)
	}
	f.reconnected()
	if ready, _, _ := f.state(); ready {
		t.Error("a daemon that the broker before knew is ready")
	}
}

// A daemon whose model has the features of the file in another order is not sent values without their names.
func TestFollowerOfAnotherOrder(t *testing.T) {
	for models, want := range map[string]bool{
		`{"name":"m","features":["rms","peak"]}`:                                     false,
		`{"name":"m","features":["peak","rms"]}`:                                     true,
		`{"name":"n","features":["f0","f1"]},{"name":"m","features":["peak","rms"]}`: true,
		`{"name":"m","features":["peak","rms","x"]}`:                                 false,
	} {
		f := newProgress("edge", "gas", nil)
		f.order = []string{"rms", "peak"}
		f.receive("edge/a/info", []byte(`{"models":[`+models+`]}`), true)
		f.receive("edge/a/state", []byte("offline"), true)
		if _, _, text := f.state(); text != "no daemon is online" {
			t.Errorf("%s, offline: %s", models, text)
		}
		f.receive("edge/a/state", []byte("online"), true)
		if _, _, text := f.state(); (text != "") != want || want && !strings.HasPrefix(text, "model m of node a has the features of the file in another order, and") {
			t.Errorf("%s: %q, want one: %v", models, text, want)
		}
		if f.order = nil; f.reordered("a", []byte(`{"models":[`+models+`]}`)) != "" {
			t.Errorf("%s: an order although names are sent", models)
		}
	}
}

// A daemon whose info does not come is told from one that is away.
func TestAbsence(t *testing.T) {
	f := newProgress("edge", "gas", nil)
	for _, step := range []struct{ state, want string }{
		{"", "no daemon is online"},
		{"online", "no info has come (does the broker drop messages of its size?) of the daemon that is online"},
		{"offline", "no daemon is online"},
	} {
		f.receive("edge/a/state", []byte(step.state), true)
		if _, _, got := f.state(); got != step.want {
			t.Errorf("state %q: %q, want %q", step.state, got, step.want)
		}
	}
}

// Where labels follow their rows, each of them is two messages for the broker.
func TestFollowerOfDelayedLabels(t *testing.T) {
	f := newProgress("edge", "gas", nil)
	f.messages = 2
	f.receive("edge/a/gas/prediction", []byte(`{"id":"gas-000001","version":7}`), false)
	for range maxBehind / 2 {
		f.labelSent()
	}
	if f.behind() {
		t.Errorf("behind with %d messages", maxBehind)
	}
	f.labelSent()
	if !f.behind() {
		t.Errorf("not behind with %d messages", maxBehind+2)
	}
}

// A model with many labels to learn is behind. A model that learns none is not.
func TestFollowerOfALearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newProgress("edge", "gas", nil)
		predict := func(row, version int) {
			f.receive("edge/a/gas/prediction", fmt.Appendf(nil, `{"id":"gas-%06d","version":%d}`, row, version), false)
		}
		teach := func(n int) {
			for range n {
				f.labelSent()
			}
		}
		teach(2 * maxBehind)
		if f.behind() {
			t.Error("a model is behind before the first prediction")
		}
		predict(1, 1000) // it has learnt before
		teach(maxBehind)
		if f.behind() {
			t.Errorf("behind with %d labels", maxBehind)
		}
		teach(1)
		if !f.behind() {
			t.Errorf("not behind with %d labels", maxBehind+1)
		}
		predict(2, 1016)
		if f.behind() {
			t.Error("still behind after a minibatch")
		}
		teach(maxBehind)
		if !f.behind() {
			t.Error("not behind again")
		}
		time.Sleep(idleLearner)
		if f.behind() {
			t.Error("a model that learns nothing is waited for")
		}
		teach(maxBehind)
		predict(3, 10) // it was reset
		if f.behind() {
			t.Error("a model that was reset is behind")
		}
	})
}

// A model is idle until its predictions, or its metrics, show that it has learnt. Metrics of an
// earlier time do not count.
func TestFollowerOfIdleModels(t *testing.T) {
	f := newProgress("edge", "gas", nil)
	f.receive("edge/a/gas/metrics", []byte(`{"version":99}`), true) // before its first prediction
	for _, m := range []string{"a/gas", "a/air", "b/gas", "a/new"} {
		f.receive("edge/"+m+"/prediction", []byte(`{"id":"gas-000001","version":7}`), false)
	}
	f.labelSent()
	f.receive("edge/a/air/prediction", []byte(`{"id":"gas-000002","version":8}`), false)
	f.receive("edge/a/gas/metrics", []byte(`{"version":6}`), true)
	f.receive("edge/a/new/metrics", []byte(`{"version":9}`), false)
	if labels, models := f.idle(); labels != 1 || len(models) != 2 || fmt.Sprint(*models[0], *models[1]) != "{a gas} {b gas}" {
		t.Errorf("%d labels, and idle are %v", labels, models)
	}
}

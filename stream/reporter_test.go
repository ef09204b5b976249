package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream/mqtt"
)

// object returns the last message on a topic of the node's, decoded.
func object(t *testing.T, all []*mqtt.Publication, topic string) map[string]any {
	t.Helper()
	for _, m := range slices.Backward(all) {
		if m.Topic != "edge/n1/"+topic {
			continue
		}
		v := map[string]any{}
		if err := json.Unmarshal(m.Payload, &v); err != nil {
			t.Fatalf("%s: %v", m.Payload, err)
		}
		return v
	}
	t.Fatalf("nothing on %s", topic)
	return nil
}

func count(all []*mqtt.Publication, topic string) (n int) {
	for _, m := range all {
		if m.Topic == "edge/n1/"+topic {
			n++
		}
	}
	return n
}

// collector receives publications.
type collector struct {
	mu  sync.Mutex
	all []*mqtt.Publication
}

func collect(ctx context.Context, o *mqtt.Outbox) *collector {
	c := &collector{}
	go func() {
		for {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return
			}
			c.mu.Lock()
			c.all = append(c.all, drainOutbox(o)...)
			c.mu.Unlock()
		}
	}()
	return c
}

// take returns the publications since the last call.
func (c *collector) take() []*mqtt.Publication {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

func TestReports(t *testing.T) {
	in("at their times", t, func(t *testing.T) {
		r := one(t)
		r.node.report.moreHealth = func() map[string]any { return map[string]any{"store_bytes": 7} }
		go r.node.report.run(t.Context())
		l := collect(t.Context(), r.node.outbox)
		synctest.Wait()
		for i := range 10 {
			r.send(p7, labelled(i))
			time.Sleep(2 * time.Second / 10)
		}
		time.Sleep(100 * time.Millisecond)
		all := l.take()
		if n := count(all, "bearing/latest"); n < 1 || n > 2 {
			t.Errorf("%d times latest in two seconds, want at most one a second", n)
		}
		if got := object(t, all, "info")["models"].([]any)[0].(map[string]any)["classes"]; fmt.Sprint(got) != "[ok]" {
			t.Errorf("info has classes %v, want [ok]: it is published again when a class is new", got)
		}
		if n := count(all, "bearing/metrics"); n != 2 {
			t.Errorf("%d times metrics in two seconds, want 2: the first samples, and twice as many", n)
		}
		time.Sleep(time.Minute)
		all = l.take()
		if n := count(all, "bearing/metrics"); n != 2 {
			t.Errorf("%d times metrics in a minute, want 2", n)
		}
		if m := object(t, all, "bearing/metrics"); m["n"] != 10.0 || m["accuracy"] != 0.75 || m["log_loss"] != 0.0 || fmt.Sprint(m["confusion"]) != "[[10]]" {
			t.Errorf("metrics = %v", m)
		}
		if h := object(t, all, "health"); h["status"] != "ok" || h["received"] != 10.0 || h["learned"] != 10.0 || h["store_bytes"] != 7.0 || h["last_message_age_s"].(float64) < 50 {
			t.Errorf("health = %v", h)
		}
		for i := range 1200 { // more than metrics.samples, in less than metrics.every
			r.send(p7, labelled(i))
			if i%100 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Second)
		if n := count(l.take(), "bearing/metrics"); n != 1 {
			t.Errorf("%d times metrics after 1200 samples, want 1", n)
		}
		r.journal.set(errDiskFull, nil)
		r.send(p7, labelled(1))
		time.Sleep(time.Minute)
		if h := object(t, l.take(), "health"); h["status"] != "degraded" {
			t.Errorf("health = %v", h)
		}
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
	})
}

func TestMetricsBeforeAnything(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	r.node.report.birth()
	all := r.published()
	if m := object(t, all, "bearing/metrics"); m["n"] != 0.0 || m["accuracy"] != nil || m["balanced_accuracy"] != nil {
		t.Errorf("metrics = %v", m)
	}
	if i := object(t, all, "info"); !strings.HasPrefix(i["go"].(string), "go") || i["limits"].(map[string]any)["ring_bytes"] != "4MiB" {
		t.Errorf("info = %v", i)
	}
}

func TestNotify(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	r.node.Notify(online.Notice{Model: "bearing", Kind: "class_added", Detail: "worn <\"'>"})
	if e := object(t, r.published(), "event"); e["event"] != "class_added" || e["model"] != "bearing" || e["detail"] != "worn <\"'>" || e["node"] != "n1" {
		t.Errorf("event = %v", e)
	}
}

// The log has the requests after which a model answers otherwise.
func TestChangesOfAModelAreLogged(t *testing.T) {
	in("by notices and by switching learning", t, func(t *testing.T) {
		r := controlled(t, newFakeJournal(), 0)
		var text lockedBuffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		r.node.log, r.node.committer.log = log, log
		r.send(learningTopic, "OFF", "OFF")
		for _, kind := range []string{online.NoticeReset, online.NoticeRolledBack, online.NoticeClassRemoved, online.NoticeClassRenamed, online.NoticeClassAdded} {
			r.node.Notify(online.Notice{Model: "bearing", Kind: kind})
		}
		time.Sleep(time.Second)
		var events []string
		for _, m := range regexp.MustCompile(`model=bearing event=(\S+)`).FindAllStringSubmatch(string(text.tail(1<<16)), -1) {
			events = append(events, m[1])
		}
		equal(t, "events in the log", slices.Sorted(slices.Values(events)), []string{"class_removed", "class_renamed", "learning_off", "model_reset", "model_rolled_back"})
	})
}

// The refusals of one stream do not hide those of another in the log.
func TestRefusalsAreLoggedByStream(t *testing.T) {
	in("by stream and reason", t, func(t *testing.T) {
		cfg, m := testConfig()
		quiet := cfg.Streams["vibration"]
		quiet.Topics, quiet.TopicTemplate = []string{"quiet/+/vibration"}, "quiet/{device}/vibration"
		cfg.Streams["quiet"], m.Streams = quiet, []string{"vibration", "quiet"}
		var log lockedBuffer
		r := newRig(t, newFakeJournal(), cfg, m)
		r.node.report.log = slog.New(slog.NewTextHandler(&log, nil))
		r.send("factory/a/vibration", `{`, `{`, `{`)
		r.send("quiet/a/vibration", `{`, `{`)
		time.Sleep(time.Second)
		if text := string(log.tail(1 << 16)); strings.Count(text, "message refused") != 2 || !strings.Contains(text, "stream=vibration") || !strings.Contains(text, "stream=quiet") {
			t.Errorf("the log does not have one line for each stream:\n%s", text)
		}
	})
}

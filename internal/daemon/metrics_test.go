package daemon

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
)

// metricNames are the names that dashboards depend on.
var metricNames = []string{
	"edge_messages_received_total", "edge_messages_rejected_total", "edge_messages_dropped_total", "edge_redelivered_total",
	"edge_predictions_total", "edge_learned_total", "edge_learned_samples", "edge_predict_seconds", "edge_learn_seconds", "edge_store_commit_seconds",
	"edge_queue_length", "edge_unacked_messages", "edge_pending_labels", "edge_cholesky_retries_total", "edge_batch_rollbacks_total", "edge_labels_forgotten_total",
	"edge_prequential_accuracy", "edge_log_loss", "edge_ece", "edge_store_bytes", "edge_store_written_bytes_total", "edge_connected",
	"edge_last_message_timestamp_seconds", "edge_build_info", "edge_label_delay_seconds", "edge_label_corrections_total", "edge_features_missing_total",
	"edge_features_clipped_total", "edge_conformal_coverage", "edge_conformal_sets_total", "edge_conformal_sets_covered_total", "edge_queries_total", "edge_drift_level",
}

// The metrics are complete, well named, and agree with the daemon's status.
func TestMetrics(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), nil).ready()
	publish(t, b.URL(), "plant/a/pump", append(pumpSamples(120), "nonsense", `{"id":"u","features":[1,2]}`)...)
	s.await("not all is learnt", "/api/v1/models/wear", func(_ int, a string) bool {
		return gjson.Get(a, "n").Uint() == 120 && gjson.Get(a, "version").Uint() == 120 && gjson.Get(a, "pending").Uint() == 1
	})

	code, text := s.get("/metrics")
	if code != http.StatusOK {
		t.Fatalf("answers %d: %s", code, text)
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	for _, name := range metricNames {
		if !strings.Contains(text, "\n# TYPE "+name+" ") {
			t.Errorf("no %s", name)
		}
	}
	status := s.current().Models[0].Loop.Status()
	store, err := s.store.Stats()
	if err != nil || store.FileBytes == 0 {
		t.Fatal(store, err)
	}
	for _, want := range []string{
		`edge_connected 1`, `edge_subscribed 1`, `edge_degraded 0`,
		`edge_messages_received_total{stream="pump"} 122`,
		`edge_messages_rejected_total{stream="pump",reason="malformed"} 1`,
		`edge_messages_rejected_total{stream="none",reason="unrouted"} 0`,
		`edge_learned_total{model="wear"} 120`, `edge_learned_samples{model="wear",class="ok"} 80`, `edge_learned_samples{model="wear",class="worn"} 40`,
		`edge_pending_labels{model="wear"} 1`, `edge_queue_length{queue="in"} 0`, `edge_unacked_messages 0`,
		`edge_predict_seconds_count{model="wear"} 121`,
		fmt.Sprintf(`edge_prequential_accuracy{model="wear"} %v`, 1-status.Scores.Error),
		fmt.Sprintf(`edge_log_loss{model="wear"} %v`, status.Scores.NLL),
		fmt.Sprintf(`edge_ece{model="wear"} %v`, status.Scores.ECE),
		fmt.Sprintf(`edge_build_info{version=%q,commit=%q,goversion=%q} 1`, s.monitor.Build.Version, s.monitor.Build.Commit, s.monitor.Build.Go),
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
			return
		}
	}
	for _, name := range []string{"edge_store_commit_seconds_count", "edge_learn_seconds_count{model=\"wear\"}", "go_goroutines", "process_resident_memory_bytes"} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` [1-9]`).MatchString(text) {
			t.Errorf("%s is not above 0", name)
		}
	}
	predictions := 0
	for _, found := range regexp.MustCompile(`(?m)^edge_predictions_total\{model="wear",class="[^"]*"\} ([0-9]+)$`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1])
		predictions += n
	}
	if predictions != 121 {
		t.Errorf("%v predictions by class, want 121", predictions)
	}
}

package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/replay"
)

// Delayed labels that nobody reads teach nothing, and a broker takes them all the same: the
// replay says so.
func TestReplayTellsOfLabelsThatNobodyReads(t *testing.T) {
	const want = "model wear of node test has learnt none of 60 labels: does a topic under labels: take plant/a/pump/label? -c edge.yaml checks it"
	path, text := filepath.Join(t.TempDir(), "rows.csv"), "a,b,state\n"
	for i := range 60 {
		text += strconv.Itoa(i) + "," + strconv.Itoa(i%2) + "," + []string{"idle", "run"}[i%2] + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := brokertest.New(t, brokertest.Embedded)
	serve(t, b.URL(), nil).ready()
	mqtt := brokertest.Config(b.URL())
	src := &replay.Source{Path: path}
	p := &replay.Player{Topic: "plant/a/pump", Labels: "delayed", Fraction: 1, Ahead: 20}
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Patience)
	defer cancel()
	var told strings.Builder
	if _, err := replay.File(ctx, src, p, mqtt, nil, &told); err != nil || !strings.Contains(told.String(), want) {
		t.Errorf("told %q, %v; want %q", &told, err, want)
	}
}

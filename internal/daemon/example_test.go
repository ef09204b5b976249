package daemon_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"edge/internal/config"
	"edge/internal/daemon"
)

// A daemon starts without a broker, and saves its state when its context ends.
func ExampleNew() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	cfg, err := config.Parse("edge.yaml", []byte(`
mqtt: {servers: [mqtt://127.0.0.1:1]}
streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis]}}
models: {bearing: {streams: [vibration], classes: {names: [ok, worn]}}}
http: {listen: ""}
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	cfg.Store.Path = filepath.Join(folder, "edge.db")
	d, err := daemon.New(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = d.Run(ctx)
	fmt.Println(d.Loop("bearing").Learner().Config().Features, d.Loop("bearing").Posterior().Classes(), err)
	// Output: [rms kurtosis] [ok worn] <nil>
}

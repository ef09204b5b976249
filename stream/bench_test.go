package stream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"edge/stream/mqtt"
)

// BenchmarkPipeline carries messages through worker and committer, with a model
// and a journal that cost nothing.
func BenchmarkPipeline(b *testing.B) {
	for name, payload := range map[string]func(int) string{
		"unlabelled": func(n int) string { return fmt.Sprintf("[%d,0]", n) },
		"labelled":   labelled,
		"id":         func(n int) string { return fmt.Sprintf(`{"id":"p7-%06d","features":[%d,0]}`, n, n) },
		"refused":    func(n int) string { return fmt.Sprintf("[%d]", n) },
	} {
		b.Run(name, func(b *testing.B) {
			cfg, m := testConfig()
			node, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { node.worker.run(context.Background(), stop) })
			wg.Go(func() { node.committer.run(context.Background(), context.Background()) })
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				msg := &mqtt.Message{Topic: p7, Payload: []byte(payload(n)), QoS: 1, Arrived: time.Now(), Ack: func() {}}
				for taken := false; !taken; {
					if taken, _ = node.ring.Push(msg, nil); !taken {
						time.Sleep(20 * time.Microsecond)
					}
				}
			}
			close(stop)
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

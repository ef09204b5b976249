package main

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"edge/stream"
)

// newRegistry returns the metrics of a daemon, those of its Go runtime and of
// its process.
func newRegistry(m *monitor) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(m), m.predictTime, m.learnTime, m.commitTime, m.predicted,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// collector reads snapshots of a daemon's parts when it is asked.
type collector struct {
	monitor *monitor
	metrics []metric

	build, connected, subscribed, degraded                 metric
	received, rejected, lastMessage                        metric
	dropped, redelivered, reconnects, commitFailures       metric
	queue, unacked                                         metric
	learned, pending, choleskyRetries, rollbacks, silence  metric
	accuracy, logLoss, ece, windowAccuracy, windowLogLoss  metric
	storeBytes, storeFree, storeWritten, storeTransactions metric
	learning, ignored                                      metric
	stateBytes                                             metric
}

// metric is a name with its help and the names of its labels.
type metric struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func newCollector(m *monitor) *collector {
	c := &collector{monitor: m}
	add := func(kind prometheus.ValueType, name, help string, labels []string) metric {
		v := metric{prometheus.NewDesc("edge_"+name, help, labels, nil), kind}
		c.metrics = append(c.metrics, v)
		return v
	}
	counter := func(name, help string, labels ...string) metric {
		return add(prometheus.CounterValue, name, help, labels)
	}
	gauge := func(name, help string, labels ...string) metric {
		return add(prometheus.GaugeValue, name, help, labels)
	}

	c.build = gauge("build_info", "What the program was built from; always 1.", "version", "commit", "goversion")
	c.connected = gauge("connected", "Whether there is a connection to the broker.")
	c.subscribed = gauge("subscribed", "Whether the broker has granted every subscription of this connection.")
	c.degraded = gauge("degraded", "Whether the journal fails, so that nothing is learnt or acknowledged.")
	c.received = counter("messages_received_total", "Messages, by stream; labels on topics of their own count as stream labels.", "stream")
	c.rejected = counter("messages_rejected_total", "Messages and labels that taught nothing; those that no stream asks for count as stream none.", "stream", "reason")
	c.lastMessage = gauge("last_message_timestamp_seconds", "When the last message came.", "stream")
	c.dropped = counter("messages_dropped_total", "What a bounded queue gave up, and by which rule.", "queue", "policy")
	c.redelivered = counter("redelivered_total", "Samples and labels that had been taught already.", "model")
	c.reconnects = counter("reconnects_total", "Connections to the broker that were lost.")
	c.commitFailures = counter("store_commit_failures_total", "Commits to the journal that failed, each attempt.")
	c.queue = gauge("queue_length", "Messages in a queue: in before the prediction, commit before the journal, out before the broker.", "queue")
	c.unacked = gauge("unacked_messages", "Messages of QoS 1 in the node that are not acknowledged yet.")
	c.learned = counter("learned_total", "Samples in the model since it began, by label.", "model", "class")
	c.pending = gauge("pending_labels", "Samples that wait for their label.", "model")
	c.learning = gauge("learning", "Whether labels are learnt: 0 after a request to stop.", "model")
	c.ignored = counter("labels_ignored_total", "Labels that came while learning was switched off.", "model")
	c.choleskyRetries = counter("cholesky_retries_total", "Factorisations that needed more jitter, since the model began.", "model")
	c.rollbacks = counter("batch_rollbacks_total", "Steps that were refused and taken back, since the model began.", "model")
	c.silence = gauge("loop_silence_seconds", "Since the last sign of life of the goroutine that learns.", "model")
	c.accuracy = gauge("prequential_accuracy", "Fraction of all samples whose most probable class was the label.", "model")
	c.logLoss = gauge("log_loss", "Mean negative log probability of the label over all samples, nats.", "model")
	c.ece = gauge("ece", "Expected calibration error over all samples, 15 bins.", "model")
	c.windowAccuracy = gauge("window_accuracy", "As edge_prequential_accuracy, over the last 500 samples.", "model")
	c.windowLogLoss = gauge("window_log_loss", "As edge_log_loss, over the last 500 samples.", "model")
	c.storeBytes = gauge("store_bytes", "Size of the state file.")
	c.storeFree = gauge("store_free_bytes", "Room in the state file that is used again.")
	c.storeWritten = counter("store_written_bytes_total", "Bytes of pages written to the state file since the start.")
	c.storeTransactions = counter("store_transactions_total", "Transactions of the state file since the start, two syncs each.")
	c.stateBytes = gauge("state_bytes", "Size of the model's last checkpoint since the start.", "model")
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	send := func(m metric, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, labels...)
	}
	s := c.monitor.node.Stats()
	b := c.monitor.build
	send(c.build, 1, b.Version, b.Commit, b.Go)
	send(c.connected, oneIf(s.Connected))
	send(c.subscribed, oneIf(s.Subscribed))
	send(c.degraded, oneIf(s.Degraded))
	now := time.Now()
	for name, of := range s.Streams {
		send(c.received, float64(of.Received), name)
		send(c.lastMessage, stamp(now.Add(-of.SinceMessage)), name)
		for reason, n := range of.Rejected {
			send(c.rejected, float64(n), name, string(reason))
		}
	}
	send(c.rejected, float64(s.Rejected[stream.Unrouted]), "none", string(stream.Unrouted))
	send(c.dropped, float64(s.RingDropped), "in", "drop_oldest")
	send(c.dropped, float64(s.LessonsDropped), "commit", "drop_newest")
	send(c.dropped, float64(s.OutboxDropped), "out", "drop_oldest")
	send(c.dropped, float64(s.RejectsDropped), "reject", "rate_limit")
	send(c.dropped, float64(s.PendingEvicted), "pending", "drop_oldest")
	send(c.dropped, float64(s.PendingExpired), "pending", "ttl")
	send(c.dropped, float64(s.ValuesUnused), "join", "incomplete")
	send(c.reconnects, float64(s.Reconnects))
	send(c.commitFailures, float64(s.CommitFailures))
	send(c.queue, float64(s.Ring), "in")
	send(c.queue, float64(s.Commit), "commit")
	send(c.queue, float64(s.Outbox), "out")
	send(c.unacked, float64(s.Unacked))
	if st := c.monitor.store.Load(); st != nil && st.err == nil {
		send(c.storeBytes, float64(st.FileBytes))
		send(c.storeFree, float64(st.FreeBytes))
		send(c.storeWritten, float64(st.WrittenBytes))
		send(c.storeTransactions, float64(st.Transactions))
	}
	for _, m := range c.monitor.models {
		c.collectModel(send, m, s.Models[m.name])
	}
}

func (c *collector) collectModel(send func(metric, float64, ...string), m *servedModel, s stream.ModelStats) {
	status, post := m.loop.Status(), m.loop.Posterior()
	for k, class := range post.Classes() {
		send(c.learned, float64(post.Counts[k]), m.name, metricLabel(class))
	}
	send(c.redelivered, float64(s.Redelivered), m.name)
	send(c.pending, float64(s.Pending), m.name)
	send(c.learning, oneIf(s.Learning), m.name)
	send(c.ignored, float64(s.Frozen), m.name)
	send(c.choleskyRetries, float64(status.Counters.CholeskyRetries), m.name)
	send(c.rollbacks, float64(status.Counters.StepsRefused), m.name)
	send(c.silence, m.loop.Silence().Seconds(), m.name)
	if status.StateBytes > 0 {
		send(c.stateBytes, float64(status.StateBytes), m.name)
	}
	sc := &status.Scores
	if sc.N == 0 {
		return
	}
	send(c.accuracy, 1-sc.Error, m.name)
	send(c.logLoss, sc.NLL, m.name)
	send(c.ece, sc.ECE, m.name)
	send(c.windowAccuracy, 1-sc.Window.Error, m.name)
	send(c.windowLogLoss, sc.Window.NLL, m.name)
}

// oneIf is whether something holds, as the value of a metric.
func oneIf(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// metricLabel is a class as the value of a metric's label, which has to be valid UTF-8.
func metricLabel(class string) string {
	if utf8.ValidString(class) {
		return class
	}
	return strconv.QuoteToASCII(class)
}

// stamp returns t in seconds since 1970, as Prometheus wants its times.
func stamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

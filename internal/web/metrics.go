package web

import (
	"maps"
	"math"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"edge/internal/process"
	"edge/online/score"
	"edge/stream"
	"edge/stream/codec"
)

// collector reads snapshots of a daemon's parts when it is asked.
type collector struct {
	monitor  *Monitor
	samples  []metrics.Sample // of the runtime, without their values
	runtime  []*metric        // of each
	families []*metric

	build, connected, subscribed, degraded                  *metric
	received, rejected, lastMessage                         *metric
	dropped, redelivered, reconnects, commitFailures        *metric
	protocolErrors, idReused, unconfirmed                   *metric
	observed                                                *metric
	queue, unacked                                          *metric
	queries, queriesOpen                                    *metric
	learned, pending, choleskyRetries, rollbacks, silence   *metric
	forgotten                                               *metric
	accuracy, logLoss, ece, windowAccuracy, windowLogLoss   *metric
	balanced, kappa, brier, windowBalanced, windowBrier     *metric
	baselineAccuracy, baselineLogLoss, prevalence           *metric
	labelDelay, driftLevel, drifts, coverage, setSize, kept *metric
	storeBytes, storeFree, storeWritten, storeTransactions  *metric
	learning, ignored                                       *metric
	corrections, missing, clipped                           *metric
	setsJudged, setsCovered                                 *metric
	stateBytes, predictions                                 *metric
	httpOpen, httpRefused                                   *metric
	predictTime, learnTime, commitTime                      *metric
	cpu, resident, anonymous, startTime, openFiles          *metric
}

func newCollector(m *Monitor) *collector {
	c := &collector{monitor: m}
	add := func(kind, name, help string, labels []string) *metric {
		f := &metric{name, help, kind, labels}
		c.families = append(c.families, f)
		return f
	}
	counter := func(name, help string, labels ...string) *metric { return add("counter", "edge_"+name, help, labels) }
	gauge := func(name, help string, labels ...string) *metric { return add("gauge", "edge_"+name, help, labels) }
	seconds := func(name, help string, labels ...string) *metric { return add("histogram", "edge_"+name, help, labels) }

	c.build = gauge("build_info", "What the program was built from; always 1.", "version", "commit", "goversion")
	c.connected = gauge("connected", "Whether there is a connection to the broker.")
	c.subscribed = gauge("subscribed", "Whether the broker has granted every subscription of this connection.")
	c.degraded = gauge("degraded", "Whether the journal fails, so that nothing is learnt or acknowledged.")
	c.received = counter("messages_received_total", "Messages, by stream; labels on topics of their own count as stream labels.", "stream")
	c.rejected = counter("messages_rejected_total", "Messages and labels that taught nothing; those that no stream asks for count as stream none.", "stream", "reason")
	c.lastMessage = gauge("last_message_timestamp_seconds", "When the last message came.", "stream")
	c.dropped = counter("messages_dropped_total", "What a bounded queue gave up, and by which rule.", "queue", "policy")
	c.redelivered = counter("redelivered_total", "Samples and labels that had been taught already.", "model")
	c.observed = counter("observed_total", "Messages that were answered before their turn, while the journal could not be written or the queue was full; they come again.")
	c.reconnects = counter("reconnects_total", "Connections to the broker that were lost.")
	c.protocolErrors = counter("protocol_errors_total", "Connections to the broker, and attempts at one, that ended because it sent a packet which MQTT does not allow.")
	c.idReused = counter("id_reused_total", "Samples that came under the id of another one, with other features: the id may be that of the device.")
	c.commitFailures = counter("store_commit_failures_total", "Commits to the journal that failed, each attempt.")
	c.queue = gauge("queue_length", "Messages in a queue: in before the prediction, commit before the journal, out before the broker.", "queue")
	c.unacked = gauge("unacked_messages", "Messages of QoS 1 in the node that are not acknowledged yet.")
	c.unconfirmed = gauge("unconfirmed_messages", "Messages whose acknowledgement may not have reached the broker, which then sends them again.")
	c.learned = counter("learned_total", "Samples in the model since it began, by label.", "model", "class")
	c.pending = gauge("pending_labels", "Samples that wait for their label.", "model")
	c.queries = counter("queries_total", "Questions for a label: asked, and what became of them.", "model", "what")
	c.queriesOpen = gauge("queries_open", "Questions for a label that are neither answered nor expired.", "model")
	c.learning = gauge("learning", "Whether labels are learnt: 0 after a request to stop.", "model")
	c.ignored = counter("labels_ignored_total", "Labels that came while learning was switched off.", "model")
	c.corrections = counter("label_corrections_total", "Labels that corrected an earlier one of the same sample.", "model")
	c.missing = counter("features_missing_total", "Features that samples lacked.", "model")
	c.clipped = counter("features_clipped_total", "Features that were too far from their mean and were taken to be nearer.", "model")
	c.choleskyRetries = counter("cholesky_retries_total", "Factorisations that needed more jitter, since the model began.", "model")
	c.rollbacks = counter("batch_rollbacks_total", "Steps that were refused and taken back, since the model began.", "model")
	c.forgotten = counter("labels_forgotten_total", "New labels that were not confirmed in time to be classes, since the model began.", "model")
	c.silence = gauge("loop_silence_seconds", "Since the last sign of life of the goroutine that learns.", "model")
	c.accuracy = gauge("prequential_accuracy", "Fraction of all samples whose most probable class was the label.", "model")
	c.logLoss = gauge("log_loss", "Mean negative log probability of the label over all samples, nats.", "model")
	c.ece = gauge("ece", "Expected calibration error over all samples, 15 bins.", "model")
	c.windowAccuracy = gauge("window_accuracy", "As edge_prequential_accuracy, over the last 500 samples.", "model")
	c.windowLogLoss = gauge("window_log_loss", "As edge_log_loss, over the last 500 samples.", "model")
	c.balanced = gauge("balanced_accuracy", "Mean recall of the classes that have occurred, over all samples.", "model")
	c.kappa = gauge("kappa", "Cohen's kappa over all samples.", "model")
	c.brier = gauge("brier", "Mean squared distance of the probabilities from the label over all samples, 0 to 2.", "model")
	c.windowBalanced = gauge("window_balanced_accuracy", "As edge_balanced_accuracy, over the last 500 samples.", "model")
	c.windowBrier = gauge("window_brier", "As edge_brier, over the last 500 samples.", "model")
	c.baselineAccuracy = gauge("baseline_accuracy", "Accuracy of a rule that knows no features, over the last 500 samples.", "model", "baseline")
	c.baselineLogLoss = gauge("baseline_log_loss", "Log loss of a rule that knows no features, over the last 500 samples, nats.", "model", "baseline")
	c.prevalence = gauge("label_prevalence", "Fraction of the last 500 labels.", "model", "class")
	c.labelDelay = gauge("label_delay_seconds", "Median time from a sample to its label, of the latest that came late; 0 if none did.", "model")
	c.driftLevel = gauge("drift_level", "How much the stream has changed of late: 0 none, 1 warning, 2 drift.", "model")
	c.drifts = counter("drifts_total", "Drifts that were found since the model began.", "model")
	c.coverage = gauge("conformal_coverage", "Fraction of the last 500 prediction sets that held the label.", "model")
	c.setSize = gauge("conformal_set_size", "Mean number of classes in the last 500 prediction sets.", "model")
	c.setsJudged = counter("conformal_sets_total", "Published prediction sets whose label is known.", "model")
	c.setsCovered = counter("conformal_sets_covered_total", "Published prediction sets that held the label.", "model")
	c.kept = gauge("predictions_kept", "Fraction of the last 500 predictions that the rule of abstention let pass.", "model")
	c.storeBytes = gauge("store_bytes", "Size of the state file.")
	c.storeFree = gauge("store_free_bytes", "Room in the state file that is used again.")
	c.storeWritten = counter("store_written_bytes_total", "Bytes of pages written to the state file since the start.")
	c.storeTransactions = counter("store_transactions_total", "Transactions of the state file since the start, two syncs each.")
	c.stateBytes = gauge("state_bytes", "Size of the model's last checkpoint since the start.", "model")
	c.predictions = counter("predictions_total", "Predictions, by the most probable class; empty while none is known.", "model", "class")
	c.predictTime = seconds("predict_seconds", "From the arrival of a message to the prediction of a sample in it.", "model")
	c.learnTime = seconds("learn_seconds", "Time of the call that closed a minibatch and learnt it.", "model")
	c.commitTime = seconds("store_commit_seconds", "Time of a commit to the journal that succeeded, with its syncs.")
	c.httpOpen = gauge("http_connections", "Connections to the page, the API and the metrics that are open.")
	c.httpRefused = counter("http_refused_total", "Connections that were closed for new ones, and requests that were refused.", "reason")
	for _, r := range []struct{ kind, name, help, source string }{
		{"gauge", "go_goroutines", "Goroutines that exist.", "/sched/goroutines:goroutines"},
		{"gauge", "go_memlimit_bytes", "Memory that the garbage collector tries to stay within.", "/gc/gomemlimit:bytes"},
		{"counter", "go_gc_cycles_total", "Garbage collections.", "/gc/cycles/total:gc-cycles"},
		{"counter", "go_memstats_mallocs_total", "Objects that were allocated.", "/gc/heap/allocs:objects"},
		{"counter", "go_memstats_alloc_bytes_total", "Bytes of objects that were allocated.", "/gc/heap/allocs:bytes"},
		{"gauge", "go_memstats_heap_objects", "Objects that are allocated.", "/gc/heap/objects:objects"},
		{"gauge", "go_memstats_heap_alloc_bytes", "Bytes of objects that are allocated, garbage not yet swept among them.", "/memory/classes/heap/objects:bytes"},
		{"gauge", "go_memstats_heap_unused_bytes", "Bytes that are set aside for objects and hold none.", "/memory/classes/heap/unused:bytes"},
		{"gauge", "go_memstats_heap_released_bytes", "Bytes that were given back to the system.", "/memory/classes/heap/released:bytes"},
		{"gauge", "go_memstats_stack_inuse_bytes", "Bytes of the stacks of goroutines.", "/memory/classes/heap/stacks:bytes"},
		{"gauge", "go_memstats_sys_bytes", "Bytes that were had from the system and not given back, or not yet.", "/memory/classes/total:bytes"},
	} {
		c.runtime = append(c.runtime, add(r.kind, r.name, r.help, nil))
		c.samples = append(c.samples, metrics.Sample{Name: r.source})
	}
	c.cpu = add("counter", "process_cpu_seconds_total", "Processor time used, user and system.", nil)
	c.resident = add("gauge", "process_resident_memory_bytes", "Resident set, with the pages of the state file that are mapped.", nil)
	c.anonymous = add("gauge", "process_resident_memory_anonymous_bytes", "Resident set without mapped files.", nil)
	c.startTime = add("gauge", "process_start_time_seconds", "When the daemon began.", nil)
	c.openFiles = add("gauge", "process_open_fds", "Open file descriptors.", nil)
	return c
}

// collect takes a snapshot of everything.
func (c *collector) collect() *exposition {
	page := &exposition{families: c.families, lines: map[*metric][]byte{}}
	send := page.send
	s := c.monitor.now().Node.Stats()
	b := c.monitor.Build
	send(c.build, 1, b.Version, b.Commit, b.Go)
	send(c.connected, oneIf(s.Connected))
	send(c.subscribed, oneIf(s.Subscribed))
	send(c.degraded, oneIf(s.Degraded))
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.Streams)) {
		of := s.Streams[name]
		send(c.received, float64(of.Received), name)
		send(c.lastMessage, stamp(now.Add(-of.SinceMessage)), name)
		for _, reason := range slices.Sorted(maps.Keys(of.Rejected)) {
			send(c.rejected, float64(of.Rejected[reason]), name, string(reason))
		}
	}
	for _, reason := range []codec.Reason{codec.Unrouted, codec.BadTopic} {
		send(c.rejected, float64(s.Rejected[reason]), "none", string(reason))
	}
	send(c.dropped, float64(s.RingDropped), "in", "drop_oldest")
	send(c.dropped, float64(s.LessonsDropped), "commit", "drop_newest")
	send(c.dropped, float64(s.OutboxDropped), "out", "drop_oldest")
	send(c.dropped, float64(s.ObservedDropped), "observed", "drop_oldest")
	send(c.dropped, float64(s.RejectsDropped), "reject", "rate_limit")
	send(c.dropped, float64(s.PendingEvicted), "pending", "drop_oldest")
	send(c.dropped, float64(s.PendingExpired), "pending", "ttl")
	send(c.dropped, float64(s.ValuesUnused), "join", "incomplete")
	send(c.dropped, float64(s.UnconfirmedDropped), "unconfirmed", "drop_oldest")
	send(c.observed, float64(s.Observed))
	send(c.reconnects, float64(s.Reconnects))
	send(c.protocolErrors, float64(s.ProtocolErrors))
	send(c.idReused, float64(s.IDReused))
	send(c.commitFailures, float64(s.CommitFailures))
	send(c.queue, float64(s.Ring), "in")
	send(c.queue, float64(s.Commit), "commit")
	send(c.queue, float64(s.Outbox), "out")
	send(c.unacked, float64(s.Unacked))
	send(c.unconfirmed, float64(s.Unconfirmed))
	if st := c.monitor.store.Load(); st != nil && st.err == nil {
		send(c.storeBytes, float64(st.FileBytes))
		send(c.storeFree, float64(st.FreeBytes))
		send(c.storeWritten, float64(st.WrittenBytes))
		send(c.storeTransactions, float64(st.Transactions))
	}
	open, refused := c.monitor.http.snapshot()
	send(c.httpOpen, float64(open))
	for _, reason := range slices.Sorted(maps.Keys(refused)) {
		send(c.httpRefused, float64(refused[reason]), reason)
	}
	for _, m := range c.monitor.now().Models {
		c.collectModel(send, m, s.Models[m.Name])
	}
	c.collectTimes(page)
	c.collectProcess(send)
	return page
}

// collectTimes sends what the monitor has counted itself.
func (c *collector) collectTimes(page *exposition) {
	m := c.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.recent)) {
		r := m.recent[name]
		for _, class := range slices.Sorted(maps.Keys(r.predicted)) {
			page.send(c.predictions, float64(r.predicted[class]), name, metricLabel(class))
		}
		page.sendHistogram(c.predictTime, r.predictTime, name)
		page.sendHistogram(c.learnTime, r.learnTime, name)
	}
	page.sendHistogram(c.commitTime, m.commitTime)
}

// collectProcess sends what the runtime and the system know of this process.
func (c *collector) collectProcess(send func(*metric, float64, ...string)) {
	samples := slices.Clone(c.samples) // scrapes may overlap
	metrics.Read(samples)
	for i, m := range c.runtime {
		if v := samples[i].Value; v.Kind() == metrics.KindUint64 {
			send(m, float64(v.Uint64()))
		}
	}
	send(c.startTime, stamp(c.monitor.started))
	if t := process.CPUTime(); t > 0 {
		send(c.cpu, t.Seconds())
	}
	if rss := process.Memory("VmRSS"); rss > 0 {
		send(c.resident, float64(rss))
		send(c.anonymous, float64(process.Memory("RssAnon")))
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		send(c.openFiles, float64(len(open)))
	}
}

func (c *collector) collectModel(send func(*metric, float64, ...string), m *Model, s stream.ModelStats) {
	status, post := m.Loop.Status(), m.Loop.Posterior()
	for k, class := range post.Classes() {
		send(c.learned, float64(post.Counts[k]), m.Name, metricLabel(class))
	}
	send(c.redelivered, float64(s.Redelivered), m.Name)
	send(c.pending, float64(s.Pending), m.Name)
	send(c.queries, float64(s.Asked), m.Name, "asked")
	send(c.queries, float64(s.Answered), m.Name, "answered")
	send(c.queries, float64(s.Unanswered), m.Name, "unanswered")
	send(c.queriesOpen, float64(s.Open), m.Name)
	send(c.learning, oneIf(s.Learning), m.Name)
	send(c.ignored, float64(s.Frozen), m.Name)
	send(c.corrections, float64(s.Corrected), m.Name)
	send(c.missing, float64(s.Missing), m.Name)
	send(c.clipped, float64(s.Clipped), m.Name)
	if n := float64(s.Sets.N); n > 0 {
		send(c.setsJudged, n, m.Name)
		send(c.setsCovered, math.Round(n*float64(s.Sets.Covered)), m.Name)
	}
	send(c.choleskyRetries, float64(status.Counters.CholeskyRetries), m.Name)
	send(c.rollbacks, float64(status.Counters.StepsRefused), m.Name)
	send(c.forgotten, float64(status.Counters.CandidatesDropped), m.Name)
	send(c.silence, m.Loop.Silence().Seconds(), m.Name)
	if status.StateBytes > 0 {
		send(c.stateBytes, float64(status.StateBytes), m.Name)
	}
	send(c.labelDelay, s.LabelDelay.Seconds(), m.Name)
	send(c.driftLevel, float64(status.Drift), m.Name)
	send(c.drifts, float64(status.Drifts), m.Name)
	sc := &status.Scores
	if sc.N == 0 {
		return
	}
	send(c.accuracy, 1-sc.Error, m.Name)
	send(c.logLoss, sc.NLL, m.Name)
	send(c.ece, sc.ECE, m.Name)
	send(c.windowAccuracy, 1-sc.Window.Error, m.Name)
	send(c.windowLogLoss, sc.Window.NLL, m.Name)
	send(c.balanced, float64(sc.Balanced), m.Name)
	send(c.kappa, float64(sc.Kappa), m.Name)
	send(c.brier, sc.Brier, m.Name)
	send(c.windowBalanced, float64(sc.Window.Balanced), m.Name)
	send(c.windowBrier, sc.Window.Brier, m.Name)
	for name, b := range map[string]*score.Baseline{"class_prior": &sc.Window.Prior, "last_label": &sc.Window.Last} {
		send(c.baselineAccuracy, 1-b.Error, m.Name, name)
		send(c.baselineLogLoss, b.NLL, m.Name, name)
	}
	if sets := sc.Window.Sets; sets != nil {
		send(c.coverage, float64(sets.Covered), m.Name)
		send(c.setSize, float64(sets.Size), m.Name)
	}
	if a := sc.Window.Abstained; a != nil {
		send(c.kept, float64(a.Kept), m.Name)
	}
	for _, k := range sc.Window.PerClass {
		send(c.prevalence, float64(k.Prevalence), m.Name, metricLabel(k.Class))
	}
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

package web

import (
	"math"
	"os"
	"runtime/metrics"

	"edge/internal/process"
	"edge/online/score"
	"edge/persist"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/field"
)

// The tables of the metric families. A row is name, help, kind, labels and the
// function that reads its values.

func nodeMetrics() []metric {
	return []metric{
		{"edge_build_info", "What the program was built from; always 1.", kindGauge, labelled("version", "commit", "goversion"), func(s *scrape, to *values) {
			b := &s.monitor.Build
			to.add(1, b.Version, b.Commit, b.Go)
		}},
		{"edge_connected", "Whether there is a connection to the broker.", kindGauge, nil, single(func(s *scrape) float64 { return oneIf(s.node.Connected) })},
		{"edge_subscribed", "Whether the broker has granted every subscription of this connection.", kindGauge, nil, single(func(s *scrape) float64 { return oneIf(s.node.Subscribed) })},
		{"edge_degraded", "Whether the journal fails, so that nothing is learnt or acknowledged.", kindGauge, nil, single(func(s *scrape) float64 { return oneIf(s.node.Degraded) })},
		{"edge_messages_received_total", "Messages, by stream; labels on topics of their own count as stream labels.", kindCounter, byStream, eachStream(func(of *stream.StreamStats, name string, s *scrape, to *values) {
			to.add(float64(of.Received), name)
		})},
		{"edge_messages_left_out_total", "Messages of which where takes nothing.", kindCounter, byStream, eachStream(func(of *stream.StreamStats, name string, s *scrape, to *values) {
			if of.LeftOut > 0 {
				to.add(float64(of.LeftOut), name)
			}
		})},
		{"edge_messages_rejected_total", "Messages and labels that were refused; those that no stream asks for count as stream none.", kindCounter, labelled("stream", "reason"), readRejected},
		{"edge_last_message_timestamp_seconds", "When the last message came.", kindGauge, byStream, eachStream(func(of *stream.StreamStats, name string, s *scrape, to *values) {
			if !of.Ended {
				to.add(stamp(s.now.Add(-of.SinceMessage)), name)
			}
		})},
		{"edge_messages_dropped_total", "What a bounded queue gave up, and by which rule.", kindCounter, labelled("queue", "policy"), readDropped},
		{"edge_signal_rows_total", "Rows of signals that came.", kindCounter, byStream, eachSignals(func(n *stream.SignalStats, name string, to *values) {
			to.add(float64(n.Rows), name)
		})},
		{"edge_signal_samples_total", "Samples made of rows.", kindCounter, byStream, eachSignals(func(n *stream.SignalStats, name string, to *values) {
			to.add(float64(n.Samples), name)
		})},
		{"edge_signal_events_total", "What happened to rows, windows and devices on the way to samples.", kindCounter, labelled("stream", "what"), eachSignals(readSignalEvents)},
		{"edge_signal_devices", "Devices whose rows are remembered.", kindGauge, byStream, eachStream(func(of *stream.StreamStats, name string, s *scrape, to *values) {
			if of.Signals != nil && !of.Ended {
				to.add(float64(of.Signals.Devices), name)
			}
		})},
		{"edge_redelivered_total", "Samples and labels that had been learnt already.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Redelivered) })},
		{"edge_observed_total", "Messages that were answered before their turn, while the journal could not be written or the queue was full; they come again.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.Observed) })},
		{"edge_connect_failures_total", "Attempts to connect to the broker that failed.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.ConnectFailures) })},
		{"edge_reconnects_total", "Connections to the broker that were lost.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.Reconnects) })},
		{"edge_protocol_errors_total", "Connections to the broker, and attempts at one, that ended because it sent a packet which MQTT does not allow.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.ProtocolErrors) })},
		{"edge_id_reused_total", "Samples that came under the id of another one, with other features: the id may be that of the device.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.IDReused) })},
		{"edge_store_commit_failures_total", "Commits to the journal that failed, each attempt.", kindCounter, nil, single(func(s *scrape) float64 { return float64(s.node.CommitFailures) })},
		{"edge_queue_length", "Messages in a queue: in before the prediction, commit before the journal, out before the broker.", kindGauge, labelled("queue"), func(s *scrape, to *values) {
			to.add(float64(s.node.Ring), "in")
			to.add(float64(s.node.Commit), "commit")
			to.add(float64(s.node.Outbox), "out")
		}},
		{"edge_unacked_messages", "Messages of QoS 1 in the node that are not acknowledged yet.", kindGauge, nil, single(func(s *scrape) float64 { return float64(s.node.Unacked) })},
		{"edge_unconfirmed_messages", "Messages whose acknowledgement may not have reached the broker, which then sends them again.", kindGauge, nil, single(func(s *scrape) float64 { return float64(s.node.Unconfirmed) })},
	}
}

// eachStream reads a family of each stream.
//
//go:noinline
func eachStream(read func(of *stream.StreamStats, name string, s *scrape, to *values)) reader {
	return func(s *scrape, to *values) {
		for _, name := range field.Names(s.node.Streams) {
			of := s.node.Streams[name]
			read(&of, name, s, to)
		}
	}
}

// eachSignals reads the counters of each stream with signals.
//
//go:noinline
func eachSignals(read func(n *stream.SignalStats, name string, to *values)) reader {
	return eachStream(func(of *stream.StreamStats, name string, _ *scrape, to *values) {
		if of.Signals != nil {
			read(of.Signals, name, to)
		}
	})
}

func readSignalEvents(n *stream.SignalStats, name string, to *values) {
	for _, e := range []struct {
		what  string
		count uint64
	}{
		{"late", n.Late}, {"gap", n.Gaps}, {"set_back", n.SetBack}, {"thin", n.Thin}, {"mixed", n.Mixed}, {"crowded", n.Crowded}, {"evicted", n.Evicted}, {"unvalued", n.Unvalued},
	} {
		to.add(float64(e.count), name, e.what)
	}
}

// readRejected reads the rejected messages of each stream, and those outside of
// all streams.
func readRejected(s *scrape, to *values) {
	for _, name := range field.Names(s.node.Streams) {
		rejected := s.node.Streams[name].Rejected
		for _, reason := range field.Names(rejected) {
			to.add(float64(rejected[codec.Reason(reason)]), name, reason)
		}
	}
	for _, reason := range []codec.Reason{codec.Unrouted, codec.BadTopic} {
		n := s.node.Rejected[reason]
		for _, of := range s.node.Streams {
			n -= of.Rejected[reason]
		}
		to.add(float64(n), "none", string(reason))
	}
}

// readDropped reads the losses of each bounded queue.
func readDropped(s *scrape, to *values) {
	n := &s.node
	to.add(float64(n.RingDropped), "in", "drop_oldest")
	to.add(float64(n.ExamplesDropped), "commit", "drop_newest")
	to.add(float64(n.OutboxDropped), "out", "drop_oldest")
	to.add(float64(n.OutboxRefused), "out", "refused")
	to.add(float64(n.ObservedDropped), "observed", "drop_oldest")
	to.add(float64(n.RejectsDropped), "reject", "rate_limit")
	to.add(float64(n.PendingEvicted), "pending", "drop_oldest")
	to.add(float64(n.PendingExpired), "pending", "ttl")
	to.add(float64(n.ValuesUnused), "join", "incomplete")
	to.add(float64(n.UnconfirmedDropped), "unconfirmed", "drop_oldest")
}

func learningMetrics() []metric {
	return []metric{
		{"edge_learned_total", "Labels given to the model since the start, corrections among them.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Learned) })},
		{"edge_learned_samples", "Samples in the model since it began, by label.", kindGauge, labelled("model", "class"), eachModelTo(func(m *modelScrape, to *values) {
			for k, class := range m.posterior.Classes() {
				to.add(float64(m.posterior.Counts[k]), m.Name, metricLabel(class))
			}
		})},
		{"edge_pending_labels", "Samples that wait for their label.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Pending) })},
		{"edge_queries_total", "Questions for a label: asked, and what became of them.", kindCounter, labelled("model", "what"), eachModelTo(func(m *modelScrape, to *values) {
			to.add(float64(m.stats.Asked), m.Name, "asked")
			to.add(float64(m.stats.Answered), m.Name, "answered")
			to.add(float64(m.stats.Unanswered), m.Name, "unanswered")
		})},
		{"edge_queries_open", "Questions for a label that are neither answered nor expired.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Open) })},
		{"edge_learning", "Whether labels are learnt: 0 after a request to stop.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return oneIf(m.stats.Learning) })},
		{"edge_recovering", "Whether the journal of the run before is being learnt; predictions come from an earlier state until then.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return oneIf(m.status.Recovering) })},
		{"edge_recovery_records", "Records of the journal that are yet to be learnt by a model that recovers.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Behind) })},
		{"edge_labels_ignored_total", "Labels that came while learning was switched off.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Frozen) })},
		{"edge_label_corrections_total", "Labels that corrected an earlier one of the same sample.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Corrected) })},
		{"edge_features_missing_total", "Features that samples lacked.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Missing) })},
		{"edge_features_clipped_total", "Features that were too far from their mean and were taken to be nearer.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.stats.Clipped) })},
		{"edge_calibrations_total", "Times that features had moved beyond the reach of the scaling and were calibrated, since the model began.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Counters.Calibrations) })},
		{"edge_cholesky_retries_total", "Factorisations that needed more jitter, since the model began.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Counters.CholeskyRetries) })},
		{"edge_batch_rollbacks_total", "Steps that were refused and taken back, since the model began.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Counters.StepsRefused) })},
		{"edge_labels_forgotten_total", "New labels that were not confirmed in time to be classes, since the model began.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Counters.CandidatesDropped) })},
		{"edge_loop_silence_seconds", "Since the last sign of life of the goroutine that learns.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return m.Loop.Silence().Seconds() })},
	}
}

func scoreMetrics() []metric {
	return []metric{
		{"edge_prequential_accuracy", "Fraction of all samples whose most probable class was the label.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return 1 - sc.Error })},
		{"edge_log_loss", "Mean negative log probability of the label over all samples, nats.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return sc.NLL })},
		{"edge_ece", "Expected calibration error over all samples, 15 bins.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return sc.ECE })},
		{"edge_window_accuracy", "As edge_prequential_accuracy, over the last 500 samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return 1 - sc.Window.Error })},
		{"edge_window_log_loss", "As edge_log_loss, over the last 500 samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return sc.Window.NLL })},
		{"edge_balanced_accuracy", "Mean recall of the classes that have occurred, over all samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return float64(sc.Balanced) })},
		{"edge_kappa", "Cohen's kappa over all samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return float64(sc.Kappa) })},
		{"edge_brier", "Mean squared distance of the probabilities from the label over all samples, 0 to 2.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return sc.Brier })},
		{"edge_window_balanced_accuracy", "As edge_balanced_accuracy, over the last 500 samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return float64(sc.Window.Balanced) })},
		{"edge_window_brier", "As edge_brier, over the last 500 samples.", kindGauge, byModel, eachScore(func(sc *score.Scores) float64 { return sc.Window.Brier })},
		{"edge_baseline_accuracy", "Accuracy of a rule that knows no features, over the last 500 samples.", kindGauge, labelled("model", "baseline"), eachScoreTo(func(sc *score.Scores, model string, to *values) {
			to.add(1-sc.Window.Prior.Error, model, "class_prior")
			to.add(1-sc.Window.Last.Error, model, "last_label")
		})},
		{"edge_baseline_log_loss", "Log loss of a rule that knows no features, over the last 500 samples, nats.", kindGauge, labelled("model", "baseline"), eachScoreTo(func(sc *score.Scores, model string, to *values) {
			to.add(sc.Window.Prior.NLL, model, "class_prior")
			to.add(sc.Window.Last.NLL, model, "last_label")
		})},
		{"edge_label_prevalence", "Fraction of the last 500 labels.", kindGauge, labelled("model", "class"), eachScoreTo(func(sc *score.Scores, model string, to *values) {
			for _, k := range sc.Window.PerClass {
				to.add(float64(k.Prevalence), model, metricLabel(k.Class))
			}
		})},
		{"edge_label_delay_seconds", "Median time from a sample to its label, of the latest that came late; 0 if none did.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return m.stats.LabelDelay.Seconds() })},
		{"edge_drift_level", "How much the stream has changed recently: 0 none, 1 warning, 2 drift.", kindGauge, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Drift) })},
		{"edge_drifts_total", "Drifts that were found since the model began.", kindCounter, byModel, eachModel(func(m *modelScrape) float64 { return float64(m.status.Drifts) })},
		{"edge_conformal_coverage", "Fraction of the last 500 prediction sets that held the label.", kindGauge, byModel, eachScoreTo(func(sc *score.Scores, model string, to *values) {
			if sets := sc.Window.Sets; sets != nil {
				to.add(float64(sets.Covered), model)
			}
		})},
		{"edge_conformal_set_size", "Mean number of classes in the last 500 prediction sets.", kindGauge, byModel, eachScoreTo(func(sc *score.Scores, model string, to *values) {
			if sets := sc.Window.Sets; sets != nil {
				to.add(float64(sets.Size), model)
			}
		})},
		{"edge_conformal_sets_total", "Published prediction sets whose label is known.", kindCounter, byModel, eachModelTo(func(m *modelScrape, to *values) {
			if n := float64(m.stats.Sets.N); n > 0 {
				to.add(n, m.Name)
			}
		})},
		{"edge_conformal_sets_covered_total", "Published prediction sets that held the label.", kindCounter, byModel, eachModelTo(func(m *modelScrape, to *values) {
			if n := float64(m.stats.Sets.N); n > 0 {
				to.add(math.Round(n*float64(m.stats.Sets.Covered)), m.Name)
			}
		})},
		{"edge_predictions_kept", "Fraction of the last 500 predictions that the rule of abstention let pass.", kindGauge, byModel, eachScoreTo(func(sc *score.Scores, model string, to *values) {
			if a := sc.Window.Abstained; a != nil {
				to.add(float64(a.Kept), model)
			}
		})},
	}
}

func storeMetrics() []metric {
	return []metric{
		{"edge_store_bytes", "Size of the state file.", kindGauge, nil, ofStore(func(st *persist.Stats) int64 { return st.FileBytes })},
		{"edge_store_free_bytes", "Room in the state file that is used again.", kindGauge, nil, ofStore(func(st *persist.Stats) int64 { return st.FreeBytes })},
		{"edge_store_written_bytes_total", "Bytes of pages written to the state file since the start.", kindCounter, nil, ofStore(func(st *persist.Stats) int64 { return st.WrittenBytes })},
		{"edge_store_transactions_total", "Commits to the redo log of the state file, one sync each, and transactions, two, since the start.", kindCounter, nil, ofStore(func(st *persist.Stats) int64 { return st.Transactions })},
		{"edge_state_bytes", "Size of the model's last checkpoint since the start.", kindGauge, byModel, eachModelTo(func(m *modelScrape, to *values) {
			if m.status.StateBytes > 0 {
				to.add(float64(m.status.StateBytes), m.Name)
			}
		})},
	}
}

// monitorMetrics are the metrics that the monitor and the web server count.
func monitorMetrics() []metric {
	return []metric{
		{"edge_predictions_total", "Predictions, by the most probable class; empty while none is known.", kindCounter, labelled("model", "class"), func(s *scrape, to *values) {
			for _, m := range s.observed.models {
				for _, class := range field.Names(m.predicted) {
					to.add(float64(m.predicted[class]), m.model, metricLabel(class))
				}
			}
		}},
		{"edge_predict_seconds", "From the arrival of a message to the prediction of a sample in it.", kindHistogram, byModel, func(s *scrape, to *values) {
			for _, m := range s.observed.models {
				to.addHistogram(m.predictTime, m.model)
			}
		}},
		{"edge_learn_seconds", "Time of the call that closed a minibatch and learnt it.", kindHistogram, byModel, func(s *scrape, to *values) {
			for _, m := range s.observed.models {
				to.addHistogram(m.learnTime, m.model)
			}
		}},
		{"edge_store_commit_seconds", "Time of a commit to the journal that succeeded, with its syncs.", kindHistogram, nil, func(s *scrape, to *values) { to.addHistogram(s.observed.commitTime) }},
		{"edge_events_total", "Events that were published, by kind, since the daemon began.", kindCounter, labelled("event"), func(s *scrape, to *values) {
			for _, kind := range field.Names(s.observed.happened) {
				to.add(float64(s.observed.happened[kind]), kind)
			}
		}},
		{"edge_http_connections", "Connections to the page, the API and the metrics that are open.", kindGauge, nil, single(func(s *scrape) float64 {
			open, _ := s.monitor.http.snapshot()
			return float64(open)
		})},
		{"edge_http_refused_total", "Connections that were closed for new ones, and requests that were refused.", kindCounter, labelled("reason"), func(s *scrape, to *values) {
			_, refused := s.monitor.http.snapshot()
			for _, reason := range field.Names(refused) {
				to.add(float64(refused[reason]), reason)
			}
		}},
	}
}

// runtimeMetrics are the metrics of the Go runtime, under the names that
// Prometheus' client library gives them.
func runtimeMetrics() []metric {
	return []metric{
		{"go_goroutines", "Goroutines that exist.", kindGauge, nil, ofRuntime("/sched/goroutines:goroutines")},
		{"go_memlimit_bytes", "Memory that the garbage collector tries to stay within.", kindGauge, nil, ofRuntime("/gc/gomemlimit:bytes")},
		{"go_gc_cycles_total", "Garbage collections.", kindCounter, nil, ofRuntime("/gc/cycles/total:gc-cycles")},
		{"go_memstats_mallocs_total", "Objects that were allocated.", kindCounter, nil, ofRuntime("/gc/heap/allocs:objects")},
		{"go_memstats_alloc_bytes_total", "Bytes of objects that were allocated.", kindCounter, nil, ofRuntime("/gc/heap/allocs:bytes")},
		{"go_memstats_heap_objects", "Objects that are allocated.", kindGauge, nil, ofRuntime("/gc/heap/objects:objects")},
		{"go_memstats_heap_alloc_bytes", "Bytes of objects that are allocated, garbage not yet swept among them.", kindGauge, nil, ofRuntime("/memory/classes/heap/objects:bytes")},
		{"go_memstats_heap_unused_bytes", "Bytes that are set aside for objects and hold none.", kindGauge, nil, ofRuntime("/memory/classes/heap/unused:bytes")},
		{"go_memstats_heap_released_bytes", "Bytes that were given back to the system.", kindGauge, nil, ofRuntime("/memory/classes/heap/released:bytes")},
		{"go_memstats_stack_inuse_bytes", "Bytes of the stacks of goroutines.", kindGauge, nil, ofRuntime("/memory/classes/heap/stacks:bytes")},
		{"go_memstats_sys_bytes", "Bytes that were had from the system and not given back, or not yet.", kindGauge, nil, ofRuntime("/memory/classes/total:bytes")},
	}
}

// ofRuntime reads a metric of package runtime/metrics that is a count.
func ofRuntime(source string) reader {
	return func(_ *scrape, to *values) {
		sample := []metrics.Sample{{Name: source}}
		if metrics.Read(sample); sample[0].Value.Kind() == metrics.KindUint64 {
			to.add(float64(sample[0].Value.Uint64()))
		}
	}
}

// processMetrics are the figures that the operating system keeps of this process.
func processMetrics() []metric {
	ofMemory := func(key string) reader {
		return func(_ *scrape, to *values) {
			if process.Memory("VmRSS") > 0 { // the system reports memory
				to.add(float64(process.Memory(key)))
			}
		}
	}
	return []metric{
		{"process_cpu_seconds_total", "Processor time used, user and system.", kindCounter, nil, func(_ *scrape, to *values) {
			if t := process.CPUTime(); t > 0 {
				to.add(t.Seconds())
			}
		}},
		{"process_resident_memory_bytes", "Resident set, with the pages of the state file that are mapped.", kindGauge, nil, ofMemory("VmRSS")},
		{"process_resident_memory_anonymous_bytes", "Resident set without mapped files.", kindGauge, nil, ofMemory("RssAnon")},
		{"process_start_time_seconds", "When the daemon began.", kindGauge, nil, single(func(s *scrape) float64 { return stamp(s.monitor.began.Time()) })},
		{"process_open_fds", "Open file descriptors.", kindGauge, nil, func(_ *scrape, to *values) {
			if open, err := os.ReadDir("/proc/self/fd"); err == nil {
				to.add(float64(len(open)))
			}
		}},
	}
}

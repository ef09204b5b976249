package stream

import (
	"slices"
	"time"

	"edge/model"
	"edge/stream/codec"
	"edge/stream/topic"
)

// predictReading predicts a reading for every model of the stream. e has what its examples have in
// common; levels are those of its device; row is the row of the sample in the batch, or −1.
func (w *worker) predictReading(it *item, r *codec.Reading, e example, levels []string, row int) {
	src := e.from
	var sample uint64
	if r.ID != "" {
		sample, e.mayRepeat = sampleKey(src.identity, levels, r.ID), true
		if !e.thin {
			e.wait = waitKey(src.identity, levels, r.ID)
		}
	} else if r.Label != "" {
		e.key = it.entryKey(e.entry)
	}
	for _, f := range src.feeds {
		e.to, e.x = f.to, f.inputs(r.X)
		switch {
		case e.own: // whatever was known when the sample was formed
			e.key = exampleKey(sample, nil)
		case r.ID != "":
			e.key = exampleKey(sample, e.x)
		}
		w.predictExample(it, r, &e, row)
	}
}

// predictExample predicts an example of a reading for its model, publishes the prediction, and adds
// the example to the item, unless the model cannot predict it.
func (w *worker) predictExample(it *item, r *codec.Reading, e *example, row int) {
	msg, m := it.msg, e.to
	recovering := m.Model.Status().Recovering // before the posterior, which may be newer
	post := m.Model.Snapshot()
	if err := m.fillMissing(e, post, e.from.impute); err != nil {
		w.report.refuse(e.from, []*modelState{m}, msg, err)
		return
	}
	learned := r.Label != "" && !m.expectedOff() && m.classes.refusal(r.Label) == "" && (msg.QoS > 0 || e.detached || w.hasRoom())
	ahead := 0 // the order of the labels is not known while the model recovers
	if !recovering {
		ahead = m.ahead(e, post, learned)
	}
	probs, novelty, ws, err := w.predict(it.spare(), e.x, m, post, ahead, row)
	if err != nil {
		w.report.refuse(e.from, []*modelState{m}, msg, codec.Refuse(codec.Unpredictable, "model %s: %w", m.Name, err))
		return
	}
	m.clipped.Add(uint64(ws.Clipped()))
	if learned && !e.known && !recovering {
		m.inFlight++
	}
	uncertainty := m.aim.Threshold(*m.Model.Uncertainty())
	e.probs, e.meta = probs, uncertainty.Meta(probs, novelty)
	e.meta.Last, e.meta.Version = post.Pool.Order.Last+1, post.Version()
	e.parts = it.spareParts()
	if r.Label == "" { // the label may come late
		e.parts = ws.AppendParts(e.parts)
	}
	e.epoch = post.Epoch
	m.seq++
	e.seq = m.seq
	p := &w.prediction
	set := p.Set[:0]
	*p = Prediction{
		Node: w.node, Model: m.Name, Device: e.device, ID: r.ID, Seq: m.seq, Version: post.Version(),
		X: e.x, Classes: post.Classes(), Probs: probs, Novelty: novelty, PredictionSet: PredictionSet{set, uncertainty.Coverage},
		Abstain: e.meta.Abstained, Condition: Condition{uncertainty.Drift, recovering}, Label: r.Label, Learned: learned,
		raw: rawReading{id: r.RawID, time: r.RawTime, arrived: msg.Arrived, course: e.course.value()},
	}
	if uncertainty.Coverage > 0 {
		p.Set = uncertainty.AppendSet(set, probs, e.x)
		if k, known := classOf(post, r.Label); learned && known {
			m.aim.JudgeNow(e.meta.Holds(probs, e.x, k), len(p.Set))
		}
	}
	p.judge()
	if post.Fleet != nil {
		p.raw.fleet = w.reportFleet(m, post, ws)
	}
	e.query = w.ask(m, post, p, e, it, ws)
	w.publish(m, p)
	it.examples = append(it.examples, *e)
}

// ahead returns how many labels after the last known one that of a sample comes; 0: it
// is predicted without their order.
func (m *modelState) ahead(e *example, post *model.Posterior, learned bool) int {
	behind := m.behind(post.Pool.Order.Labels)
	switch {
	case e.known: // before the sample: the order would repeat it
	case learned:
		return behind + 1
	case e.wait != 0 && !m.expectedOff() && m.asker == nil: // requested labels have no order
		if lag := m.lag.Load(); lag != nil {
			return lag.Ahead(m.seq+1, post.Record)
		}
	}
	return 0
}

// classOf returns the index of the class of a label; that of the next class for a new
// one; false for a former name of a class.
func classOf(post *model.Posterior, label string) (k int, known bool) {
	if k = slices.Index(post.Classes(), label); k >= 0 {
		return k, true
	}
	_, former := post.Aliases[label]
	return len(post.Classes()), !former
}

// fillMissing counts the missing features of a sample. With impute it replaces them by
// the mean by which the model scales them.
func (m *modelState) fillMissing(e *example, post *model.Posterior, impute bool) *codec.Refusal {
	n := missing(e.x)
	if n == 0 {
		return nil
	}
	m.missing.Add(uint64(n))
	switch {
	case n == len(e.x):
		return codec.Refuse(codec.MissingFeature, "none of the features of model %s has a value", m.Name)
	case !impute || post.Version() == 0: // before the first sample no mean is known
		return nil
	}
	e.x = slices.Clone(e.x) // other models have other means
	for j, v := range e.x {
		if v != v {
			e.x[j] = post.Mean(j)
		}
	}
	return nil
}

// missing returns the number of missing features.
func missing(x []float64) (n int) {
	for _, v := range x {
		if v != v {
			n++
		}
	}
	return n
}

// behind returns the number of labelled samples of which the order of labels in the
// newest posterior, with that many labels, does not know yet. Repetitions are handed over
// and never learnt. The estimate is biased towards 0: late labels count as if they had
// come with their samples.
func (m *modelState) behind(labels uint64) int {
	repeated := m.redelivered.Load()
	m.inFlight -= min(labels-m.labels+repeated-m.repetitions, m.inFlight)
	m.labels, m.repetitions = labels, repeated
	return int(m.inFlight)
}

func (w *worker) publish(m *modelState, p *Prediction) {
	p.Latency = time.Since(p.raw.arrived)
	out := w.outbox.New()
	if m.cbor == nil {
		out.Payload = p.appendJSON(out.Payload)
	} else {
		var err error
		if out.Payload, err = m.cbor.encode(p); err != nil {
			w.report.log.Error("cannot encode a prediction", "model", m.Name, "error", err)
			return
		}
	}
	out.Topic, out.QoS = m.answerTopic(p.Device), w.qos
	w.outbox.Push(out)
	if m.latest.set(p) {
		wake(w.report.changed)
	}
	m.predictions.Add(1)
	w.counts.predictions.Add(1)
	if w.onPrediction != nil {
		w.onPrediction(p)
	}
}

// answerTopic returns the topic of the predictions for a device.
func (m *modelState) answerTopic(device string) string {
	if device == "" {
		return m.predictionTopic
	}
	to, ok := m.answers[device]
	if !ok {
		if to = m.predictionTopic + "/" + device; topic.Check(to) != nil {
			to = m.predictionTopic
		}
		putBounded(&m.answers, device, to)
	}
	return to
}

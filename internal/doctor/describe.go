package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"edge/internal/config"
	"edge/internal/terminal"
	"edge/online"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/membership"
)

// Describe writes a summary of a daemon with this configuration. verbose adds the names of
// the features that stages make.
func Describe(w io.Writer, path string, c *config.Config, verbose bool) {
	own := c.MQTT.BaseTopic + "/" + c.Node
	fmt.Fprintf(w, "%s is valid.\n", path)
	fmt.Fprintf(w, "node     %s: state, info and events on %s/…\n", c.Node, own)
	for _, name := range field.Names(c.Streams) {
		s := c.Streams[name]
		if s.StageConfig().Set() {
			describeSignals(w, name, s, verbose)
			continue
		}
		fmt.Fprintf(w, "stream   %s: %s from %s, as %s\n", name, terminal.Count(len(s.FeatureNames()), "feature"), strings.Join(s.Topics, ", "), format(s))
		describeEntries(w, "", s)
	}
	for _, l := range c.Labels {
		fmt.Fprintf(w, "labels   for %s from %s\n", cmp.Or(l.Model, "every model"), strings.Join(l.Topics, ", "))
	}
	for _, name := range field.Names(c.Models) {
		m := c.Models[name]
		cfg, err := c.Learner(name)
		if err != nil {
			continue // cannot happen: the configuration is valid
		}
		known := max(len(cfg.Classes.Names), 2)
		most := max(known, cfg.Classes.Max)
		fmt.Fprintf(w, "model    %s: %s on %s/%s/prediction, as %s\n", name, work(m.Streams, cfg.Batch, m.Fleet.Follows()), own, name, m.Output)
		fmt.Fprintf(w, "         M = %d, %d horizons, forest %s: state of %s with %d classes, at most %s with %d\n", cfg.Inducing, len(cfg.Horizons), cfg.Experts.Forest,
			terminal.Bytes(cfg.EncodedSize(known)), known, terminal.Bytes(cfg.LargestSize(most)), most)
		describeFleet(w, c, &m.Fleet)
		if a := m.Active; a.Enabled() {
			pace := "as often as that allows"
			if a.PerHour > 0 {
				pace = fmt.Sprintf("%g an hour at most", a.PerHour)
			}
			fmt.Fprintf(w, "         asks for labels by %s on %s/%s/query: of %g %% of the samples with an id, %s\n", a.Strategy, own, name, 100*a.Budget, pace)
		}
	}
	if c.HomeAssistant.Enabled {
		fmt.Fprintf(w, "home     each model is a device of Home Assistant, announced on %s/device/…\n", c.HomeAssistant.DiscoveryPrefix)
	}
	if c.Control.Enabled {
		does := "removes members of the fleets that are followed, and reads the configuration again"
		if learns(c) {
			does = "changes classes, switches learning off and resets models"
		}
		fmt.Fprintf(w, "control  any client that may publish on %s/request/# %s\n", own, does)
	}
	footprintOf(c).describe(w, newHost().memoryBounds(c))
	full, err := c.StorePath()
	if err != nil {
		full = c.Store.Path
	} else if abs, err := filepath.Abs(full); err == nil {
		full = abs
	}
	state := "will be created"
	if info, err := os.Stat(full); err == nil {
		state = "exists, " + terminal.Bytes(uint64(info.Size()))
	} else if !errors.Is(err, fs.ErrNotExist) { // there is a warning
		state = "cannot be looked at"
	}
	describePage(w, c)
	fmt.Fprintf(w, "state    %s (%s), at most %v; checkpoint %s\n", full, state, c.Store.MaxSize, c.Store.Checkpoint)
	if window := c.Stream().LossWindow; window > 0 {
		fmt.Fprintf(w, "loss     durability is relaxed: a crash or a power cut loses the labels and samples of the last %v\n", window)
	}
}

// learns reports whether a model of a configuration learns: the others follow fleets.
func learns(c *config.Config) bool {
	for _, m := range c.Models {
		if !m.Fleet.Follows() {
			return true
		}
	}
	return false
}

// describePage writes where the page is served.
func describePage(w io.Writer, c *config.Config) {
	if c.HTTP.Listen == "" {
		fmt.Fprintln(w, "page     none: http.listen is empty")
		return
	}
	need, labels := "", ""
	if !c.HTTP.Password.IsZero() {
		need = ", with a password"
	}
	if c.Control.Enabled && learns(c) {
		labels = "; labels are taken there"
	}
	fmt.Fprintf(w, "page     %s, metrics and health%s%s\n", c.HTTP.URL(c.HTTP.Listen), need, labels)
}

// work describes the part of a model: learning or prediction, its streams, the topic of its predictions.
func work(streams []string, batch online.Batch, follows bool) string {
	of, wait := strings.Join(streams, ", "), "by count alone"
	if follows {
		return "predicts " + of
	}
	if batch.MaxWait > 0 {
		wait = "or after " + batch.MaxWait.String()
	}
	return fmt.Sprintf("learns %s in minibatches of %d, %s; predicts", of, batch.MaxSize, wait)
}

// describeFleet writes which fleet a model is in.
func describeFleet(w io.Writer, c *config.Config, f *membership.Config) {
	topics := membership.NewTopics(c.MQTT.BaseTopic, f.Concept)
	switch {
	case !f.Enabled():
	case f.Follows():
		fmt.Fprintf(w, "         follows fleet %s by %s: it neither learns nor publishes there\n", f.Concept, topics.Filter())
	default:
		wait := ""
		if f.MaxWait > 0 {
			wait = fmt.Sprintf(", or %v after they came", f.MaxWait)
		}
		fmt.Fprintf(w, "         in fleet %s: reads %s; publishes on %s after %d labels or fewer%s, at most once in %v; basis %s, scale %s\n",
			f.Concept, topics.Filter(), topics.Contribution(c.Node), f.Every, wait, f.Interval, f.Basis, f.Scale)
	}
}

// format describes the payloads of a stream.
func format(s codec.Stream) string {
	text := s.Format
	if d := len(s.FeatureNames()); s.Format == codec.FormatValue && d > 1 && !s.StageConfig().Set() {
		const number, arrival = 8, 24 // bytes
		text += fmt.Sprintf("s that are joined within %v (at most %s wait)", s.Join.Window, terminal.Bytes(uint64(s.Join.Devices)*uint64(d)*(number+arrival)))
	}
	if s.Compression != "none" {
		text += ", compression " + s.Compression
	}
	return text
}

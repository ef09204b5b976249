package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"edge/internal/config"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/membership"
)

// footprint estimates the memory of a daemon, in bytes.
type footprint struct {
	models  uint64   // each with classes.max classes
	growth  uint64   // of the largest, while it learns and classes are added, or while its state is written
	now     uint64   // each with the classes that it has learnt or that the configuration declares
	classes int      // learnt or declared ones; −1 if the state file cannot be read
	queues  uint64   // messages that arrive and leave, and records that wait to be learnt
	pending uint64   // samples that wait for their labels
	windows uint64   // rows of signals, with as many as are usual where the rate is known
	fleets  uint64   // expected members of fleets, with the classes of now
	members []string // describe these, for each fleet
}

const (
	heapBase    = 4 << 20 // of the heap, beside models, queues and pending samples; with samples on their way to the committer
	programBase = 8 << 20 // pages of the program that are in use; the system reclaims the others
	messageRoom = 2 << 20 // for messages that are decoded, of heapBase
	pendingBase = 1 << 10 // of a pending sample, beside its features
	garbage     = 0.15    // garbage that the collector leaves until its next run, of the heap that lasts; less under a goal
)

// expectedMembers is the least number of a fleet's other members, if the configuration has no
// list of them.
const expectedMembers = 16

// footprintOf estimates the memory of a daemon under cfg. It counts the learnt
// classes in the state file if that can be read.
func footprintOf(cfg *config.Config) *footprint {
	f := &footprint{queues: uint64(cfg.MQTT.Ring.MaxBytes) + uint64(cfg.Outbox.MaxBytes) + uint64(len(cfg.Models))*config.LearnQueueBytes}
	learnt, err := modelsLearnt(cfg)
	for _, name := range field.Names(cfg.Models) {
		m, err := cfg.Learner(name)
		if err != nil {
			continue // a valid configuration has none
		}
		classes := max(learnt[name].classes, len(m.Classes.Names))
		f.classes += classes
		f.now += residentSize(m, classes)
		most := max(classes, m.Classes.Max)
		f.models += residentSize(m, most)
		f.growth = max(f.growth, growthSize(m, most), checkpointSize(m, most))
		p := cfg.Models[name].Pending
		f.pending += min(uint64(p.MaxBytes), uint64(p.Max)*uint64(pendingBase+8*len(m.Features)))
		if c := cfg.Models[name].Fleet; c.Enabled() {
			f.expect(&c, m, learnt[name].members, max(classes, 2))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.classes = -1
	}
	largest := uint64(0)
	for _, s := range cfg.Streams {
		for _, in := range s.Sources() {
			largest = max(largest, messageSize(in))
		}
		if stage := s.StageConfig(); stage.Set() {
			size := stage.Size(s.Raw.Rate.Hz)
			rows := size.Rows
			if rows == 0 {
				rows = size.Most
			}
			f.windows += uint64(rows)*uint64(size.RowBytes)*uint64(s.Devices()) + uint64(size.Shared)
		}
	}
	if room := uint64(cfg.MQTT.Ring.MaxBytes) + messageRoom; largest > room {
		f.queues += largest - room
	}
	return f
}

// messageSize estimates the memory of the largest message of a source, and of those like it that are
// decoded, committed and learnt at the same time: for each row 4.5 KiB, and each of its features six
// times. Measured with rows of two features: 3.3 to 4.4 KiB.
func messageSize(in codec.Stream) uint64 {
	names := in.SignalNames()
	if names == nil {
		names = in.FeatureNames()
	}
	bytes, d := uint64(in.MaxPayload), uint64(len(names))
	rows := min(uint64(in.MaxBatch), bytes/(2*d+1))
	size := rows*(4608+48*d) + 4*bytes
	if in.Format == codec.FormatCBOR {
		size = max(size, 64*bytes)
	}
	return size
}

// expect adds the members of a fleet: those that are listed, or those that the state knows,
// at least expectedMembers.
func (f *footprint) expect(c *membership.Config, m online.Config, known, classes int) {
	n := len(c.Members)
	if n == 0 {
		n = max(known, expectedMembers)
	}
	n = min(n, c.MaxMembers)
	each, all := m.FleetMemory(n, classes)
	most := max(classes, m.Classes.Max)
	_, full := m.FleetMemory(n, most)
	f.fleets += all
	f.members = append(f.members, fmt.Sprintf("%s for %d members of fleet %s with %d classes, %s with %d: a contribution takes up to %s, all of them at most %d MiB, messages that wait to be read at most %d MiB",
		terminal.Bytes(all), n, c.Concept, classes, terminal.Bytes(full), most, terminal.Bytes(each), membership.MaxHeld>>20, membership.MaxWaiting>>20))
}

// most returns the memory when every queue and every model is full, with the expected
// members of fleets, and the garbage of the heap unless there is a goal for it.
func (f *footprint) most(goal bool) uint64 {
	n := f.lasting() + f.growth
	if !goal {
		n += uint64(garbage * float64(n))
	}
	return n + programBase + f.queues + f.pending + f.windows
}

// lasting returns the part of the heap that never shrinks.
func (f *footprint) lasting() uint64 { return heapBase + f.models + f.fleets }

// String describes the footprint.
func (f *footprint) String() string { return f.join("; ") }

// join is String with a separator before the members of each fleet.
func (f *footprint) join(separator string) string {
	now := fmt.Sprintf(" (%s with the %d classes of now)", terminal.Bytes(f.now), f.classes)
	if f.classes < 0 {
		now = ""
	}
	windows := ""
	if f.windows > 0 {
		windows = fmt.Sprintf("%s for windows of signals, ", terminal.Bytes(f.windows))
	}
	others := f.most(false) - f.models - f.growth - f.fleets - f.queues - f.pending - f.windows
	all := fmt.Sprintf("at most %s: %s for the models with classes.max%s, %s while it learns, adds classes or writes its state, %s for messages that arrive and leave, %s for samples that wait for labels, %s%s for the program and garbage",
		terminal.Bytes(f.most(false)), terminal.Bytes(f.models), now, terminal.Bytes(f.growth), terminal.Bytes(f.queues), terminal.Bytes(f.pending), windows, terminal.Bytes(others))
	return strings.Join(append([]string{all}, f.members...), separator)
}

// learntModel has the counts of a model's state.
type learntModel struct{ classes, members int }

// modelsLearnt counts the classes of each model in the state file, and the members of its
// fleet. It cannot be read while a daemon has it open. A model without state has neither.
func modelsLearnt(cfg *config.Config) (map[string]learntModel, error) {
	store, err := statefile.Of(cfg)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	counts := map[string]learntModel{}
	for name := range cfg.Models {
		learner, _, _, err := statefile.Restore(store, name, nil)
		switch {
		case err == nil:
			of := learntModel{classes: len(learner.Posterior().Classes())}
			if f := learner.Posterior().Fleet; f != nil {
				of.members = f.Members
			}
			counts[name] = of
		case !errors.Is(err, persist.ErrModel):
			return nil, err
		}
	}
	return counts, nil
}

// residentSize estimates the largest memory of a model with C classes: the factors of the posterior
// with its sites, H·C·M², three times (the learner's and two snapshots); half of that for the sites
// that a refused step restores; the buffers, the scratch of a step, and the forest.
func residentSize(cfg online.Config, classes int) uint64 {
	h, c, m := uint64(len(cfg.Horizons)), uint64(classes), uint64(cfg.Inducing)
	n, d := uint64(max(cfg.Window, cfg.Batch.MaxSize)+cfg.Batch.MaxSize), uint64(len(cfg.Features))
	kernels := uint64(1)
	if cfg.Kernel == online.PerClass {
		kernels = max(c, 1)
	}
	return 8*(7*h*c*(m*m+m)/2+n*(8*d+8*h*c)+kernels*(4*n*m+12*(m*d+d)+4*m*m)+9*m*m) + cfg.ForestMemory(classes)
}

// checkpointSize estimates the memory that the checkpoint of a model with C classes has for a while:
// the state, the pages of its transaction, and the former value if the map of the file has to grow.
func checkpointSize(cfg online.Config, classes int) uint64 { return 3 * cfg.LargestSize(classes) }

// growthSize estimates the memory that a model with C classes has for a while: for posteriors
// with fewer classes while labels add one after the other, H·C·M² two and a half times; and
// for the samples of a gradient, H·C·M each, which all models share.
func growthSize(cfg online.Config, classes int) uint64 {
	const samples = 56
	h, c, m := uint64(len(cfg.Horizons)), uint64(classes), uint64(cfg.Inducing)
	return 8 * (5*h*c*(m*m+m)/2 + samples*h*c*m)
}

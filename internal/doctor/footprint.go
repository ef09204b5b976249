package doctor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"edge/internal/config"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
	"edge/stream/codec"
)

// footprint is what a daemon may take in memory, in bytes.
type footprint struct {
	models  uint64 // each with classes.max classes
	now     uint64 // each with the classes that it has learnt or that are declared
	classes int    // that there are now; −1 if the state file cannot be read
	queues  uint64 // messages that arrive and that leave
	waiting uint64 // samples that wait for their labels
}

const (
	heapBase    = 8 << 20 // of the heap, besides models, queues and waiting samples
	programBase = 8 << 20 // pages of the program that are in use; it has more, which the system takes back
	waitingBase = 1 << 10 // of a sample that waits, besides its features
)

// footprintOf reckons what a daemon under cfg may take. The classes of now are those of the
// state file, where it can be read.
func footprintOf(cfg *config.Config) footprint {
	f := footprint{queues: uint64(cfg.MQTT.Ring.MaxBytes) + uint64(cfg.Outbox.MaxBytes)}
	learnt, err := classesLearnt(cfg)
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		m, err := cfg.Learner(name)
		if err != nil {
			continue // a valid configuration has none
		}
		classes := max(learnt[name], len(m.Classes.Names))
		f.classes += classes
		f.now += residentSize(m, classes)
		f.models += residentSize(m, max(classes, m.Classes.Max))
		p := cfg.Models[name].Pending
		f.waiting += min(uint64(p.MaxBytes), uint64(p.Max)*uint64(waitingBase+8*len(m.Features)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.classes = -1
	}
	return f
}

// most is what the daemon takes when everything is full.
func (f footprint) most() uint64 { return f.lasting() + programBase + f.queues + f.waiting }

// lasting is the part of the heap that nothing makes smaller again.
func (f footprint) lasting() uint64 { return heapBase + f.models }

// String says it in words.
func (f footprint) String() string {
	now := fmt.Sprintf(" (%s with the %d classes of now)", terminal.Bytes(f.now), f.classes)
	if f.classes < 0 {
		now = ""
	}
	return fmt.Sprintf("at most %s: %s for the models with classes.max%s, %s for messages that arrive and leave, %s for samples that wait for labels, %s for the program",
		terminal.Bytes(f.most()), terminal.Bytes(f.models), now, terminal.Bytes(f.queues), terminal.Bytes(f.waiting), terminal.Bytes(heapBase+programBase))
}

// classesLearnt counts the classes of each model in the state file, which cannot be
// read while a daemon has it open. A model that is not in it has none.
func classesLearnt(cfg *config.Config) (map[string]int, error) {
	store, err := statefile.Open(cfg.StorePath())
	if err != nil {
		return nil, err
	}
	defer store.Close()
	counts := map[string]int{}
	for name := range cfg.Models {
		learner, _, _, err := statefile.Restore(store, name, nil)
		switch {
		case err == nil:
			counts[name] = len(learner.Posterior().Classes())
		case !errors.Is(err, persist.ErrModel):
			return nil, err
		}
	}
	return counts, nil
}

// residentSize is about what a model with C classes takes in memory at most: the
// sites one and a half times (a refused step gives the old ones back), the factors
// of the posterior thrice (the learner's and two snapshots), each H·C·M², and its
// buffers.
func residentSize(cfg online.Config, classes int) uint64 {
	h, c, m := uint64(len(cfg.Horizons)), uint64(classes), uint64(cfg.Inducing)
	n, d := uint64(max(cfg.Window, cfg.Batch.MaxSize)+cfg.Batch.MaxSize), uint64(len(cfg.Features))
	kernels := uint64(1)
	if cfg.Kernel == online.PerClass {
		kernels = max(c, 1)
	}
	return 8 * (9*h*c*(m*m+m)/2 + n*(8*d+8*h*c) + kernels*(4*n*m+12*(m*d+d)+8*m*m))
}

// memoryBound is a limit of a daemon's memory.
type memoryBound struct {
	bytes uint64
	by    string // that allows it
	goal  bool   // of the heap, which exceeds it rather than fail
}

// memoryBounds finds the limits under which a daemon with this configuration
// would run: of machine, control groups and the unit of the service manager.
func (h Host) memoryBounds(cfg *config.Config) (bounds []memoryBound) {
	if limit, by := h.memoryLimit(); limit > 0 {
		bounds = append(bounds, memoryBound{bytes: limit, by: by})
	}
	goal := func(text, by string) bool {
		var n codec.ByteSize
		if n.UnmarshalText([]byte(text)) != nil || n <= 0 {
			return false
		}
		bounds = append(bounds, memoryBound{uint64(n), by, true})
		return true
	}
	unit := h.unit("edge.service")
	if n, ok := unitSize(unit["MemoryMax"]); ok {
		bounds = append(bounds, memoryBound{bytes: n, by: "MemoryMax of edge.service"})
	}
	if cfg.MemoryLimit > 0 {
		goal(cfg.MemoryLimit.String(), "memory_limit")
	} else if !goal(os.Getenv("GOMEMLIMIT"), "the environment variable GOMEMLIMIT") {
		goal(unit["GOMEMLIMIT"], "GOMEMLIMIT of edge.service")
	}
	return bounds
}

// unit returns the settings that a unit of systemd and its drop-in files make, by
// their names, and the environment that they set. Later ones replace earlier ones.
func (h Host) unit(name string) map[string]string {
	settings := map[string]string{}
	read := func(path string) {
		for line := range strings.SplitSeq(h.read(path), "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if key == "Environment" {
				for word := range strings.FieldsSeq(value) {
					k, v, _ := strings.Cut(strings.Trim(word, `"'`), "=")
					settings[k] = v
				}
				continue
			}
			settings[key] = value
		}
	}
	folders := []string{"usr/lib/systemd/system", "lib/systemd/system", "etc/systemd/system"}
	for _, folder := range slices.Backward(folders) { // the first one that there is counts
		if path := folder + "/" + name; h.read(path) != "" {
			read(path)
			break
		}
	}
	for _, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(h.root, folder, name+".d", "*.conf")) // sorted; only the pattern could be wrong
		for _, file := range files {
			read(strings.TrimPrefix(file, h.root))
		}
	}
	return settings
}

// unitSize reads a size as systemd writes it; not a percentage, nor infinity.
func unitSize(text string) (uint64, bool) {
	digits := strings.TrimRight(text, "KMGT")
	n, err := strconv.ParseUint(digits, 10, 64)
	shift := 0
	if len(digits) < len(text) {
		shift = 10 * (1 + strings.IndexByte("KMGT", text[len(digits)]))
	}
	if err != nil || n == 0 || len(text)-len(digits) > 1 || n > 1<<20 && shift > 0 && n > 1<<(62-shift) {
		return 0, false
	}
	return n << shift, true
}

// excess returns the limits that the footprint may exceed, in words, with advice.
func (f footprint) excess(bounds []memoryBound) (found []string, advice string) {
	for _, b := range bounds {
		switch {
		case b.goal && f.lasting() > b.bytes:
			found = append(found, fmt.Sprintf("%s of the heap last, and %s allows %s: collecting garbage would take up most of the processor", terminal.Bytes(f.lasting()), b.by, terminal.Bytes(b.bytes)))
		case !b.goal && f.most() > b.bytes:
			found = append(found, fmt.Sprintf("%s may be needed, and %s allows %s", terminal.Bytes(f.most()), b.by, terminal.Bytes(b.bytes)))
		}
	}
	return found, "lower classes.max, inducing or the number of horizons, or raise the limit (MemoryMax and GOMEMLIMIT in the unit file)"
}

// describe writes the footprint, and a warning for each limit that it may exceed.
func (f footprint) describe(w io.Writer, bounds []memoryBound) {
	fmt.Fprintf(w, "memory   %s\n", f)
	found, advice := f.excess(bounds)
	for _, words := range found {
		fmt.Fprintf(w, "warning  memory: %s (%s)\n", words, advice)
	}
}

package doctor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
	"edge/stream/field"
)

// memoryBound is a limit of a daemon's memory.
type memoryBound struct {
	bytes uint64
	by    string // the origin of the limit
	goal  bool   // for the heap, which exceeds it rather than fail
}

// memoryBounds returns the limits under which a daemon with this configuration
// would run: those of the machine, of control groups and of the systemd unit.
func (h host) memoryBounds(cfg *config.Config) (bounds []memoryBound) {
	if limit, by := h.memoryLimit(); limit > 0 {
		bounds = append(bounds, memoryBound{bytes: limit, by: by})
	}
	goal := func(text, by string) bool {
		var n field.ByteSize
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

// memoryLimit returns the smallest of the machine's memory and the limits of control
// groups, and the origin of that limit; 0 if it is unknown.
func (h host) memoryLimit() (limit uint64, by string) {
	consider := func(n uint64, from string) {
		if n > 0 && (limit == 0 || n < limit) {
			limit, by = n, from
		}
	}
	for line := range strings.SplitSeq(h.read("proc/meminfo"), "\n") {
		var kB uint64
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kB); n == 1 {
			consider(kB<<10, "the machine's memory")
		}
	}
	own := []string{"/system.slice/edge.service"} // where the daemon runs, if systemd runs it
	for line := range strings.SplitSeq(h.read("proc/self/cgroup"), "\n") {
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 && (parts[1] == "" || parts[1] == "memory") {
			own = append(own, parts[2])
		}
	}
	for _, group := range own {
		for ; ; group = filepath.Dir(group) {
			for _, file := range []string{"sys/fs/cgroup" + group + "/memory.max", "sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes"} {
				if n, err := strconv.ParseUint(h.read(file), 10, 64); err == nil {
					consider(n, "the control group "+group)
				}
			}
			if group == "/" || group == "." || group == "" {
				break
			}
		}
	}
	return limit, by
}

// examineMemory compares the memory that the daemon may need with the limits.
func examineMemory(d *diagnosis.Diagnosis, cfg *config.Config, h host) {
	f, bounds := footprintOf(cfg), h.memoryBounds(cfg)
	figure := map[string]uint64{"need_bytes": f.most(false), "now_bytes": f.now}
	for _, b := range bounds {
		if b.goal {
			figure["goal_bytes"] = b.bytes
		} else if figure["limit_bytes"] == 0 || b.bytes < figure["limit_bytes"] {
			figure["limit_bytes"] = b.bytes
		}
	}
	found, advice := f.excess(bounds)
	if len(found) > 0 {
		d.Add("memory", diagnosis.Warn, f.String()+"; "+strings.Join(found, "; "), advice, figure)
		return
	}
	detail := f.String()
	for _, b := range bounds {
		detail += fmt.Sprintf("; %s allows %s", b.by, terminal.Bytes(b.bytes))
	}
	d.Add("memory", diagnosis.OK, detail, "", figure)
}

// excess describes the limits that the footprint may exceed, with advice.
func (f *footprint) excess(bounds []memoryBound) (found []string, advice string) {
	goal := slices.ContainsFunc(bounds, func(b memoryBound) bool { return b.goal })
	for _, b := range bounds {
		switch {
		case b.goal && f.lasting() > b.bytes:
			found = append(found, fmt.Sprintf("%s of the heap last, and %s allows %s: collecting garbage would take up most of the processor", terminal.Bytes(f.lasting()), b.by, terminal.Bytes(b.bytes)))
		case !b.goal && f.most(goal) > b.bytes:
			found = append(found, fmt.Sprintf("%s may be needed, and %s allows %s", terminal.Bytes(f.most(goal)), b.by, terminal.Bytes(b.bytes)))
		}
	}
	return found, "lower classes.max, inducing, the number of horizons, fleet.max_members, window.devices and window.max_rows, or max_batch and max_payload, or raise the limit (MemoryMax and GOMEMLIMIT in the unit file)"
}

// describe writes the footprint, and a warning for each limit that it may exceed.
func (f *footprint) describe(w io.Writer, bounds []memoryBound) {
	fmt.Fprintf(w, "memory   %s\n", f.join("\n         "))
	found, advice := f.excess(bounds)
	for _, words := range found {
		fmt.Fprintf(w, "warning  memory: %s (%s)\n", words, advice)
	}
}

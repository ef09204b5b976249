package doctor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/stream/field"
	"edge/test/harness"
)

// Limits come from machine, unit and environment, and the unit's files are read as
// systemd reads them.
func TestMemoryBounds(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	unit := "[Service]\nMemoryMax=64M\nEnvironment=A=b \"GOMEMLIMIT=45MiB\"\n"
	for name, tc := range map[string]struct {
		files map[string]string
		goal  string
		limit field.ByteSize
		want  []memoryBound
	}{
		"none":      {},
		"machine":   {files: map[string]string{"proc/meminfo": "MemTotal: 1024 kB\n"}, want: []memoryBound{{1 << 20, "the machine's memory", false}}},
		"unit":      {files: map[string]string{"etc/systemd/system/edge.service": unit}, want: []memoryBound{{64 << 20, "MemoryMax of edge.service", false}, {45 << 20, "GOMEMLIMIT of edge.service", true}}},
		"two units": {files: map[string]string{"etc/systemd/system/edge.service": unit, "usr/lib/systemd/system/edge.service": "MemoryMax=1G\n"}, want: []memoryBound{{64 << 20, "MemoryMax of edge.service", false}, {45 << 20, "GOMEMLIMIT of edge.service", true}}},
		"drop-in": {files: map[string]string{"lib/systemd/system/edge.service": unit, "etc/systemd/system/edge.service.d/memory.conf": "[Service]\nMemoryMax=128M\n"},
			want: []memoryBound{{128 << 20, "MemoryMax of edge.service", false}, {45 << 20, "GOMEMLIMIT of edge.service", true}}},
		"no limit":      {files: map[string]string{"etc/systemd/system/edge.service": "MemoryMax=infinity\n"}},
		"environment":   {files: map[string]string{"etc/systemd/system/edge.service": unit}, goal: "30MiB", want: []memoryBound{{64 << 20, "MemoryMax of edge.service", false}, {30 << 20, "the environment variable GOMEMLIMIT", true}}},
		"configuration": {goal: "30MiB", limit: 20 << 20, want: []memoryBound{{20 << 20, "memory_limit", true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.goal)
			cfg := harness.Parsed(t, harness.Minimal)
			cfg.MemoryLimit = tc.limit
			got := fakeHost(t, tc.files).memoryBounds(cfg)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(memoryBound{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for text, want := range map[string]uint64{"64M": 64 << 20, "1073741824": 1 << 30, "2G": 2 << 30, "10%": 0, "infinity": 0, "": 0, "M": 0, "1MM": 0, "99999999999T": 0} {
		if got, _ := unitSize(text); got != want {
			t.Errorf("%q is %d bytes, want %d", text, got, want)
		}
	}
}

// Check reports the largest and the present memory, and warns if a limit is
// smaller.
func TestFootprint(t *testing.T) {
	two := "mqtt: {servers: [mqtt://broker.lan]}\nstreams: {s: {topics: [s], dimension: 8}}\nmodels: {a: {streams: [s]}, b: {streams: [s]%s}}\n"
	allowed := []memoryBound{{64 << 20, "MemoryMax", false}, {45 << 20, "GOMEMLIMIT", true}} // of the unit
	for more, warnings := range map[string]int{"": 0, ", classes: {max: 64}": 1, ", classes: {max: 250}": 2} {
		var out bytes.Buffer
		f := footprintOf(harness.Parsed(t, fmt.Sprintf(two, more)))
		f.describe(&out, allowed)
		if n := strings.Count(out.String(), "warning  memory"); n != warnings || !strings.Contains(out.String(), "with the 0 classes of now") {
			t.Errorf("models%s: %d warnings, want %d: %s", more, n, warnings, out.String())
		}
	}
	const one = "mqtt: {servers: [mqtt://broker.lan]}\nstreams: {s: {topics: [s], dimension: %s}}\nmodels: {m: {streams: [s]%s}}\n"
	small := footprintOf(harness.Parsed(t, fmt.Sprintf(one, "2", ""))).most(false) >> 20
	for _, c := range []struct {
		stream, model string
		measured      uint64 // MiB without the pages of files
	}{
		{"10000", ", inducing: 20", 260}, // when the state was written
		{"2, max_payload: 16MiB, max_batch: 100000", "", 391},
		{"2, max_payload: 16MiB, compression: auto", "", 77},
		{"30", "", small},
	} {
		f := footprintOf(harness.Parsed(t, fmt.Sprintf(one, c.stream, c.model)))
		if got := f.most(false) >> 20; got < c.measured || got > 2*c.measured {
			t.Errorf("dimension: %s%s took %d MiB: %s", c.stream, c.model, c.measured, f)
		}
	}
	const fleet = ", inducing: %d, fleet: {concept: c%s}"
	for more, want := range map[string]string{
		fmt.Sprintf(fleet, 50, ""):                     "for 16 members of fleet c with 2 classes",
		fmt.Sprintf(fleet, 50, ", max_members: 9"):     "for 9 members of fleet c",
		fmt.Sprintf(fleet, 50, ", members: [a, b, d]"): "for 3 members of fleet c",
		fmt.Sprintf(fleet, 50, ", role: follower"):     "all of them at most 64 MiB, messages that wait to be read at most 32 MiB\n",
		fmt.Sprintf(fleet, 100, "}, classes: {max: 2"): "MiB with 2: a contribution takes up to 103.2 KiB",
		fmt.Sprintf(fleet, 100, ", max_members: 300, members: ["+strings.Repeat("a, ", 300)+"]}, classes: {max: 2"): "warning  memory: ",
	} {
		var out bytes.Buffer
		f := footprintOf(harness.Parsed(t, fmt.Sprintf(two, more)))
		f.describe(&out, allowed)
		if warned := strings.Contains(out.String(), "warning"); !strings.Contains(out.String(), want) || warned != strings.HasPrefix(want, "warning") {
			t.Errorf("models%s: want %q: %s", more, want, out.String())
		}
	}
	if unit, err := os.ReadFile(filepath.Join("..", "..", "configs", "edge.service")); err != nil ||
		!strings.Contains(string(unit), "MemoryMax=64M\nEnvironment=GOMEMLIMIT=45MiB") {
		t.Errorf("the unit has other limits than this test, %v", err)
	}
}

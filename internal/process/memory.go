package process

import (
	"os"
	"strconv"
	"strings"
)

// PeakRSS is the largest resident set of this process so far, in bytes; 0
// where there is no /proc.
func PeakRSS() uint64 { return Memory("VmHWM") }

// Memory is a figure of /proc/self/status, in bytes; 0 if there is none.
func Memory(name string) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}

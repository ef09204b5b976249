package process

import (
	"os"
	"strconv"
	"strings"
)

// PeakRSS returns the largest resident set of this process so far, in bytes; 0 on
// systems without /proc.
func PeakRSS() uint64 { return Memory("VmHWM") }

// Memory returns a field of /proc/self/status, such as RssAnon, in bytes; 0 if it
// is absent.
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

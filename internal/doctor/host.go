package doctor

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

// Host is the machine, seen through the files by which Linux describes it.
// Where there are none, as on other systems, little is known of it.
type Host struct {
	root     string // of those files; "/" but in tests
	pageSize int
	clock    func() (synchronised, known bool)
	space    func(path string) (free, total uint64, ok bool)
	now      func() time.Time
}

func NewHost() Host {
	return Host{root: "/", pageSize: os.Getpagesize(), clock: clockSynchronised, space: diskSpace, now: time.Now}
}

// read returns a small file's content without spaces around it; "" if there is none.
func (h Host) read(path string) string {
	data, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// mount is a mounted file system.
type mount struct {
	point, kind, source string
	device              string   // major:minor
	flags               string   // of this mount
	options             []string // flags, and those of the file system
}

// has reports whether it is mounted with an option.
func (m *mount) has(option string) bool { return slices.Contains(m.options, option) }

// mountOf finds the file system that holds a path, which must be absolute and
// without symbolic links; nil if that cannot be told.
func (h Host) mountOf(path string) *mount {
	var best *mount
	for line := range strings.SplitSeq(h.read("proc/self/mountinfo"), "\n") {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		point := unescapeMount(l[4])
		inside := point == "/" || path == point || strings.HasPrefix(path, point+"/")
		if !inside || best != nil && len(point) < len(best.point) {
			continue
		}
		best = &mount{point, r[0], r[1], l[2], l[5], append(strings.Split(l[5], ","), strings.Split(r[2], ",")...)}
	}
	return best
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return regexp.MustCompile(`\\[0-7]{3}`).ReplaceAllStringFunc(s, func(e string) string {
		n, err := strconv.ParseUint(e[1:], 8, 8)
		if err != nil {
			return e
		}
		return string(rune(n))
	})
}

// kernelVersion is the running kernel's version; zeros if unknown.
func (h Host) kernelVersion() (version [3]int, text string) {
	text = h.read("proc/sys/kernel/osrelease")
	fmt.Sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2])
	return version, text
}

// memoryLimit is the least of what the machine has and what control groups
// allow, and where that is said; 0 if unknown.
func (h Host) memoryLimit() (limit uint64, by string) {
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

// examineMachine looks at kernel, clock and memory.
func examineMachine(d *Diagnosis, cfg *config.Config, h Host) {
	version, release := h.kernelVersion()
	switch {
	case release == "":
		d.ok("kernel", "%s/%s, pages of %s", runtime.GOOS, runtime.GOARCH, terminal.Bytes(uint64(h.pageSize)))
	default:
		d.ok("kernel", "Linux %s, %s, pages of %s; the state's pages are 4.0 KiB on every kernel", release, runtime.GOARCH, terminal.Bytes(uint64(h.pageSize)))
	}
	if machine := h.read("proc/sys/kernel/arch"); machine == "aarch64" && runtime.GOARCH == "arm" {
		d.warn("kernel", "a program for 32 bits on a kernel of 64", "the arm64 binary is faster, if the system's own programs are of 64 bits too (dpkg --print-architecture)")
	}
	if release != "" && (version[0] < 3 || version[0] == 3 && version[1] < 2) {
		d.fail("kernel", "Linux "+release+" is older than Go's programs can use", "upgrade to Linux 3.2 or newer")
	}
	if governor := h.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); governor == "powersave" {
		d.warn("processor", "runs at its lowest frequency (governor powersave)", "echo schedutil | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
	}
	examinePower(d, h)
	examineClock(d, cfg, h)
	examineMemory(d, cfg, h)
}

// examinePower asks a Raspberry Pi whether its supply is too weak.
func examinePower(d *Diagnosis, h Host) {
	const now, since = 1, 1 << 16
	bits, err := strconv.ParseUint(h.read("sys/devices/platform/soc/soc:firmware/get_throttled"), 16, 32)
	if err != nil {
		return
	}
	advice := "use the power supply and cable that belong to the board: a voltage that is too low corrupts SD cards"
	switch {
	case bits&now != 0:
		d.fail("power", "the voltage is too low at this moment", advice)
	case bits&since != 0:
		d.warn("power", "the voltage has been too low since the start", advice)
	default:
		d.ok("power", "the voltage has been right since the start")
	}
}

// examineClock looks at the wall clock, which TLS and the times in what is
// published depend on; learning does not.
func examineClock(d *Diagnosis, cfg *config.Config, h Host) {
	const builtIn = 2025 // no clock that is right is before
	rtc := h.read("sys/class/rtc/rtc0/name")
	now := h.now()
	advice := "let systemd-timesyncd, chrony or ntpd set it (timedatectl set-ntp true)"
	synchronised, known := h.clock()
	switch {
	case now.Year() < builtIn && encrypted(cfg):
		d.fail("clock", "says "+now.Format(time.DateTime)+": no certificate is valid yet, and the broker cannot be reached", advice)
	case now.Year() < builtIn:
		d.warn("clock", "says "+now.Format(time.DateTime)+"; times in what is published will be wrong, learning does not depend on it", advice)
	case !known:
		d.ok("clock", "says %s; whether it is synchronised cannot be told here", now.Format(time.DateTime))
	case !synchronised:
		d.warn("clock", "says "+now.Format(time.DateTime)+" and is not synchronised; learning does not depend on it, times in what is published do", advice)
	default:
		d.ok("clock", "synchronised")
	}
	switch {
	case rtc != "":
		d.ok("clock at power-on", "kept by a battery clock (%s)", rtc)
	case h.read("proc/sys/kernel/osrelease") == "":
	case encrypted(cfg):
		d.warn("clock at power-on", "there is no battery clock: after a power cut the time is wrong until the network sets it, and until then TLS fails; the daemon goes on trying", "nothing needs to be done; a battery clock shortens the wait")
	default:
		d.ok("clock at power-on", "no battery clock: the time is wrong until the network sets it, which learning does not mind")
	}
}

// encrypted reports whether a server is reached by TLS.
func encrypted(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.MQTT.Servers, mqtt.Encrypted)
}

// examineMemory compares what the daemon may need with what there is.
func examineMemory(d *Diagnosis, cfg *config.Config, h Host) {
	f, bounds := footprintOf(cfg), h.memoryBounds(cfg)
	figure := map[string]uint64{"need_bytes": f.most(), "now_bytes": f.now}
	for _, b := range bounds {
		if b.goal {
			figure["goal_bytes"] = b.bytes
		} else if figure["limit_bytes"] == 0 || b.bytes < figure["limit_bytes"] {
			figure["limit_bytes"] = b.bytes
		}
	}
	found, advice := f.excess(bounds)
	if len(found) > 0 {
		d.add("memory", Warn, f.String()+"; "+strings.Join(found, "; "), advice, figure)
		return
	}
	detail := f.String()
	for _, b := range bounds {
		detail += fmt.Sprintf("; %s allows %s", b.by, terminal.Bytes(b.bytes))
	}
	d.add("memory", OK, detail, "", figure)
}

// loopbackServer reports whether a server's address is this machine's own.
func loopbackServer(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

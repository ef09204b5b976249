package doctor

import (
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

// examineMachine examines kernel, processor, power supply, clock and memory.
func examineMachine(d *diagnosis.Diagnosis, cfg *config.Config, h host) {
	version, release := h.kernelVersion()
	if release == "" {
		d.OK("kernel", "%s/%s, pages of %s", runtime.GOOS, runtime.GOARCH, terminal.Bytes(uint64(h.pageSize)))
	} else {
		d.OK("kernel", "Linux %s, %s, pages of %s; the state's pages are 4.0 KiB on every kernel", release, runtime.GOARCH, terminal.Bytes(uint64(h.pageSize)))
	}
	if machine := h.read("proc/sys/kernel/arch"); machine == "aarch64" && runtime.GOARCH == "arm" {
		d.Warn("kernel", "a program for 32 bits on a kernel of 64", "the arm64 binary is faster if the system's own programs have 64 bits (dpkg --print-architecture)")
	}
	if release != "" && (version[0] < 3 || version[0] == 3 && version[1] < 2) {
		d.Fail("kernel", "Linux "+release+" is older than Go's programs can use", "upgrade to Linux 3.2 or newer")
	}
	if governor := h.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); governor == "powersave" {
		d.Warn("processor", "runs at its lowest frequency (governor powersave)", "echo schedutil | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
	}
	examinePower(d, h)
	examineClock(d, cfg, h)
	examineMemory(d, cfg, h)
}

// examinePower reads the under-voltage bits of a Raspberry Pi.
func examinePower(d *diagnosis.Diagnosis, h host) {
	const now, since = 1, 1 << 16
	bits, err := strconv.ParseUint(h.read("sys/devices/platform/soc/soc:firmware/get_throttled"), 16, 32)
	if err != nil {
		return
	}
	advice := "use the power supply and cable that belong to the board: a voltage that is too low corrupts SD cards"
	switch {
	case bits&now != 0:
		d.Fail("power", "the voltage is too low at this moment", advice)
	case bits&since != 0:
		d.Warn("power", "the voltage has been too low since the start", advice)
	default:
		d.OK("power", "the voltage has been right since the start")
	}
}

// examineClock examines the wall clock. TLS and the times in published messages
// depend on it; learning does not.
func examineClock(d *diagnosis.Diagnosis, cfg *config.Config, h host) {
	const builtIn = 2025 // a correct clock is not before
	rtc := h.read("sys/class/rtc/rtc0/name")
	now := h.now()
	advice := "let systemd-timesyncd, chrony or ntpd set it (timedatectl set-ntp true)"
	synchronised, known := h.clock()
	switch {
	case now.Year() < builtIn && encrypted(cfg):
		d.Fail("clock", "says "+now.Format(time.DateTime)+": no certificate is valid yet, and the broker cannot be reached", advice)
	case now.Year() < builtIn:
		d.Warn("clock", "says "+now.Format(time.DateTime)+"; times in published messages will be wrong, learning does not depend on it", advice)
	case !known:
		d.OK("clock", "says %s; whether it is synchronised cannot be told here", now.Format(time.DateTime))
	case !synchronised:
		d.Warn("clock", "says "+now.Format(time.DateTime)+" and is not synchronised; learning does not depend on it, times in published messages do", advice)
	default:
		d.OK("clock", "synchronised")
	}
	switch {
	case rtc != "":
		d.OK("clock at power-on", "kept by a battery clock (%s)", rtc)
	case h.read("proc/sys/kernel/osrelease") == "":
	case encrypted(cfg):
		d.Warn("clock at power-on", "there is no battery clock: after a power cut the time is wrong until the network sets it, and until then TLS fails; the daemon goes on trying", "nothing needs to be done; a battery clock shortens the wait")
	default:
		d.OK("clock at power-on", "no battery clock: the time is wrong until the network sets it; learning does not depend on it")
	}
}

// encrypted reports whether a server of the configuration is reached by TLS.
func encrypted(cfg *config.Config) bool {
	return slices.ContainsFunc(cfg.MQTT.Servers, mqtt.Encrypted)
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

package doctor

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/online"
	"edge/persist"
	"edge/stream/mqtt"
	"edge/test/files"
	"edge/test/harness"
)

// fakeHost returns a machine with these files.
func fakeHost(t *testing.T, files map[string]string) host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return host{
		root: root, pageSize: 16384,
		clock: func() (bool, bool) { return true, true },
		space: func(string) (uint64, uint64, bool) { return 8 << 30, 32 << 30, true },
		now:   func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
	}
}

// expect fails unless the findings of d contain every text of want.
func expect(t *testing.T, d *diagnosis.Diagnosis, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(d.String(), w) {
			t.Errorf("no finding contains %q:\n%s", w, d)
		}
	}
}

func TestMountOf(t *testing.T) {
	h := fakeHost(t, map[string]string{"proc/self/mountinfo": `22 1 179:2 / / rw,noatime shared:1 - ext4 /dev/mmcblk0p2 rw,errors=remount-ro
23 22 0:21 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=99m
24 22 8:1 / /mnt/big\040disk rw,relatime - ext4 /dev/sda1 rw
25 24 0:22 / /mnt/big\040disk/inner ro - overlay overlay rw,lowerdir=/x
nonsense
`})
	for path, want := range map[string]string{
		"/var/lib/edge": "ext4 /dev/mmcblk0p2 179:2", "/run/edge": "tmpfs tmpfs 0:21", "/running": "ext4 /dev/mmcblk0p2 179:2", "/run": "tmpfs tmpfs 0:21",
		"/mnt/big disk/a": "ext4 /dev/sda1 8:1", "/mnt/big disk/inner/a": "overlay overlay 0:22", "/": "ext4 /dev/mmcblk0p2 179:2",
	} {
		m := h.mountOf(path)
		if m == nil {
			t.Errorf("%s: no mount was found", path)
			continue
		}
		if got := m.kind + " " + m.source + " " + m.device; got != want {
			t.Errorf("%s is on %s, want %s", path, got, want)
		}
	}
	if m := fakeHost(t, nil).mountOf("/"); m != nil {
		t.Errorf("without mountinfo / is on %+v", m)
	}
}

func TestMountsAreJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		mount string // kind, source, options
		files map[string]string
		grade string
		want  string
	}{
		"usual":           {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: diagnosis.OK, want: "ext4 (/dev/mmcblk0p2), mounted rw,noatime"},
		"memory":          {mount: "tmpfs tmpfs rw,relatime", grade: diagnosis.Warn, want: "lost at the next start"},
		"layer":           {mount: "overlay overlay rw,relatime", grade: diagnosis.Warn, want: "lost with the layer"},
		"read-only":       {mount: "ext4 /dev/mmcblk0p2 ro,noatime", grade: diagnosis.Fail, want: "mounted read-only"},
		"failed":          {mount: "ext4 /dev/mmcblk0p2 rw,noatime,emergency_ro", grade: diagnosis.Fail, want: "read-only by the kernel"},
		"synchronous":     {mount: "ext4 /dev/mmcblk0p2 rw,noatime,sync", grade: diagnosis.Warn, want: "mounted with sync"},
		"reads write":     {mount: "ext4 /dev/mmcblk0p2 rw", grade: diagnosis.Warn, want: "strictatime"},
		"no barriers":     {mount: "ext4 /dev/sda1 rw,noatime,nobarrier", grade: diagnosis.Fail, want: "without barriers"},
		"card of cameras": {mount: "vfat /dev/sda1 rw,relatime", grade: diagnosis.Warn, want: "without rights of files"},
		"network":         {mount: "nfs4 server:/x rw,relatime", grade: diagnosis.Warn, want: "network file system"},
		"fast commit": {mount: "ext4 /dev/sda1 rw,noatime", grade: diagnosis.Fail, want: "ext4 with fast_commit is faulty",
			files: map[string]string{"proc/sys/kernel/osrelease": "5.15.16-v8+\n", "proc/fs/ext4/sda1/options": "rw\nfast_commit\n"}},
		"fast commit, unknown": {mount: "ext4 /dev/sda1 rw,noatime", grade: diagnosis.Warn, want: "dumpe2fs",
			files: map[string]string{"proc/sys/kernel/osrelease": "5.10.93"}},
		"no fast commit":      {mount: "ext4 /dev/sda1 rw,noatime", grade: diagnosis.OK, files: map[string]string{"proc/sys/kernel/osrelease": "5.10.93", "proc/fs/ext4/sda1/options": "rw\n"}},
		"fast commit, mended": {mount: "ext4 /dev/sda1 rw,noatime", grade: diagnosis.OK, files: map[string]string{"proc/sys/kernel/osrelease": "5.10.94"}},
		"fast commit, newer":  {mount: "ext4 /dev/sda1 rw,noatime", grade: diagnosis.OK, files: map[string]string{"proc/sys/kernel/osrelease": "6.1.21", "proc/fs/ext4/sda1/options": "fast_commit\n"}},
		"eMMC, young":         {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: diagnosis.OK, want: "at most 20 %", files: map[string]string{"sys/dev/block/8:1/device/life_time": "0x01 0x02\n"}},
		"eMMC, old":           {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: diagnosis.Warn, want: "at most 100 %", files: map[string]string{"sys/dev/block/8:1/device/life_time": "0x0a 0x03\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			f := strings.Fields(tc.mount)
			files := map[string]string{"proc/self/mountinfo": fmt.Sprintf("22 1 8:1 / / %s shared:1 - %s %s rw\n", f[2], f[0], f[1])}
			for path, text := range tc.files {
				files[path] = text
			}
			cfg := config.Default()
			cfg.Store.Path = filepath.Join(folder, "edge.db")
			d := diagnosis.New()
			examineDisk(d, &cfg, fakeHost(t, files))
			if d.Grade != tc.grade {
				t.Errorf("the grade is %s, want %s:\n%s", d.Grade, tc.grade, d)
			}
			expect(t, d, tc.want)
		})
	}
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "none", "edge.db")
	d := diagnosis.New()
	examineDisk(d, &cfg, fakeHost(t, nil))
	expect(t, d, "fail file system: the folder of the state cannot be used")
	cfg.Store.Path = "${EDGE_NOT_SET}/edge.db" // not /, which is another folder
	d = diagnosis.New()
	examineDisk(d, &cfg, fakeHost(t, nil))
	expect(t, d, "fail file system: the folder of the state cannot be used: store.path: ${EDGE_NOT_SET} is not set here")
}

// The own certificate, too, is told before it ends.
func TestOwnCertificateIsJudged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client")
	cfg := harness.Parsed(t, harness.Minimal)
	cfg.MQTT.TLS.Cert, cfg.MQTT.TLS.Key = path+".pem", path+".key"
	c := files.Certificate(t, path, "edge", nil, nil).Leaf // for an hour
	d := diagnosis.New()
	examineRights(d, cfg, "")
	expect(t, d, "warn own certificate: the certificate in mqtt.tls.cert is valid until "+c.NotAfter.Format(time.DateOnly)+" → renew it")
	d = diagnosis.New()
	cfg.HTTP.Listen, cfg.HTTP.TLS.Cert, cfg.HTTP.TLS.Key = "127.0.0.1:0", path+".pem", path+".key"
	examineRights(d, cfg, "")
	expect(t, d, "warn page's certificate: the certificate in http.tls.cert is valid until "+c.NotAfter.Format(time.DateOnly)+" → renew it")
	c.NotAfter = time.Now().Add(-time.Hour)
	d.Certificate("own certificate", "valid", c)
	expect(t, d, "fail own certificate")
	d, c.NotAfter, c.NotBefore = diagnosis.New(), time.Now().Add(1000*time.Hour), time.Now().Add(time.Hour)
	d.Certificate("own certificate", "valid", c)
	expect(t, d, "fail own certificate: valid from "+c.NotBefore.Format(time.DateOnly)+" until", "check the clock")
}

func TestSpaceIsJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		free uint64
		want string
	}{
		"plenty": {1 << 30, "ok free space"}, "less than max_size": {100 << 20, "warn free space"}, "none": {100 << 10, "fail free space"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := harness.Parsed(t, harness.Minimal)
			h := fakeHost(t, nil)
			h.space = func(string) (uint64, uint64, bool) { return tc.free, 32 << 30, true }
			d := diagnosis.New()
			examineSpace(d, cfg, t.TempDir(), h)
			expect(t, d, tc.want)
		})
	}
}

func TestMachineIsJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*config.Config, *host)
		want   string
	}{
		"pages":           {files: map[string]string{"proc/sys/kernel/osrelease": "6.12.1-rpi-2712"}, want: "ok kernel: Linux 6.12.1-rpi-2712, "},
		"pages of 16 KiB": {files: map[string]string{"proc/sys/kernel/osrelease": "6.12.1-rpi-2712"}, want: "pages of 16.0 KiB; the state's pages are 4.0 KiB"},
		"no Linux":        {want: "ok kernel: "},
		"ancient":         {files: map[string]string{"proc/sys/kernel/osrelease": "2.6.32"}, want: "fail kernel"},
		"slow processor":  {files: map[string]string{"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"}, want: "warn processor"},
		"weak supply":     {files: map[string]string{"sys/devices/platform/soc/soc:firmware/get_throttled": "50000\n"}, want: "warn power: the voltage has been too low"},
		"too weak, now":   {files: map[string]string{"sys/devices/platform/soc/soc:firmware/get_throttled": "50005\n"}, want: "fail power"},
		"good supply":     {files: map[string]string{"sys/devices/platform/soc/soc:firmware/get_throttled": "0\n"}, want: "ok power"},
		"clock":           {want: "ok clock: synchronised"},
		"clock wanders":   {change: func(_ *config.Config, h *host) { h.clock = func() (bool, bool) { return false, true } }, want: "warn clock: says 2026-11-21 12:00:00 and is not synchronised"},
		"clock of 1970":   {change: func(_ *config.Config, h *host) { h.now = func() time.Time { return time.Unix(9, 0).UTC() } }, want: "warn clock: says 1970-01-01 00:00:09"},
		"1970 with TLS": {change: func(c *config.Config, h *host) {
			h.now = func() time.Time { return time.Unix(9, 0).UTC() }
			c.MQTT.Servers = []string{"mqtts://broker.lan"}
		}, want: "fail clock: says 1970"},
		"battery clock":   {files: map[string]string{"sys/class/rtc/rtc0/name": "rtc-ds1307 1-0068"}, want: "kept by a battery clock (rtc-ds1307 1-0068)"},
		"no battery":      {files: map[string]string{"proc/sys/kernel/osrelease": "6.1.0"}, want: "ok clock at power-on: no battery clock"},
		"no battery, TLS": {files: map[string]string{"proc/sys/kernel/osrelease": "6.1.0"}, change: func(c *config.Config, _ *host) { c.MQTT.Servers = []string{"wss://broker.lan"} }, want: "warn clock at power-on"},
		"memory":          {files: map[string]string{"proc/meminfo": "MemTotal:  900000 kB\nMemFree: 1 kB\n"}, want: "ok memory: at most "},
		"unit's memory":   {files: map[string]string{"proc/meminfo": "MemTotal: 900000 kB\n", "sys/fs/cgroup/system.slice/edge.service/memory.max": "20971520\n"}, want: "the control group /system.slice/edge.service allows 20.0 MiB"},
		"container":       {files: map[string]string{"proc/self/cgroup": "0::/docker/x\n", "sys/fs/cgroup/docker/memory.max": "10485760", "sys/fs/cgroup/docker/x/memory.max": "max"}, want: "warn memory"},
		"older container": {files: map[string]string{"proc/self/cgroup": "9:cpu:/\n8:memory:/docker/x\n", "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "10485760"}, want: "the control group /docker/x allows 10.0 MiB"},
		"memory, unknown": {want: "ok memory"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, h := harness.Parsed(t, harness.Minimal), fakeHost(t, tc.files)
			if tc.change != nil {
				tc.change(cfg, &h)
			}
			d := diagnosis.New()
			examineMachine(d, cfg, h)
			expect(t, d, tc.want)
		})
	}
}

// The bytes of a day, against a calculation by hand.
func TestEnduranceOfADay(t *testing.T) {
	cfg := harness.Parsed(t, harness.Minimal) // one stream; checkpoints every 5m or 5000 samples
	for _, tc := range []struct {
		rate    float64
		commits float64 // a day
		points  float64
	}{
		{0, 0, 0},
		{1, 86400, 288},
		{20, 864000, 345.6},
		{1000, 5400000, 17280},
	} {
		e := Endurance{Rate: tc.rate, CommitBytes: 10000, CheckpointBytes: 1e6, samples: 5000}
		e.perDay(cfg)
		want := tc.commits*10000 + tc.points*1e6
		if math.Abs(e.BytesADay-want) > 1e-6*want || math.Abs(e.CheckpointsADay-tc.points) > 1e-9*tc.points {
			t.Errorf("at %v a second: %v bytes and %v checkpoints a day, want %v and %v", tc.rate, e.BytesADay, e.CheckpointsADay, want, tc.points)
		}
	}
}

// The measured bytes are those of a daemon's store: more for larger states. No file
// is left.
func TestEnduranceIsMeasured(t *testing.T) {
	measure := func(inducing string) Endurance {
		cfg := harness.Parsed(t, strings.Replace(harness.Minimal, "streams: [vibration]", "streams: [vibration], inducing: "+inducing, 1))
		folder := t.TempDir()
		w, err := MeasureEndurance(t.Context(), cfg, folder, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		return w
	}
	small, large := measure("20"), measure("100")
	learner, err := harness.Parsed(t, strings.Replace(harness.Minimal, "streams: [vibration]", "streams: [vibration], inducing: 100", 1)).Learner("")
	if err != nil {
		t.Fatal(err)
	}
	if least := float64(learner.EncodedSize(3)); large.CheckpointBytes < least || large.CheckpointBytes > 2*least {
		t.Errorf("a checkpoint of %v bytes writes %v", least, large.CheckpointBytes)
	}
	if small.CheckpointBytes >= large.CheckpointBytes || small.CommitBytes < 4096 || small.BytesADay <= 0 {
		t.Errorf("M = 20: %+v, M = 100: %+v", small, large)
	}
}

// The kernel's folder of a partition is in that of its disk, which has the wear.
func TestCardOfAPartition(t *testing.T) {
	h := fakeHost(t, map[string]string{"sys/devices/mmc/block/mmcblk0/device/life_time": "0x0a 0x03\n", "sys/devices/mmc/block/mmcblk0/mmcblk0p2/partition": "2\n"})
	links := filepath.Join(h.root, "sys/dev/block")
	if err := os.MkdirAll(links, 0o700); err != nil {
		t.Fatal(err)
	}
	for device, target := range map[string]string{"179:0": "mmcblk0", "179:2": "mmcblk0/mmcblk0p2"} {
		if err := os.Symlink("../../devices/mmc/block/"+target, filepath.Join(links, device)); err != nil {
			t.Fatal(err)
		}
		d := diagnosis.New()
		judgeCard(d, &mount{device: device}, h)
		expect(t, d, "warn wear of the eMMC: the eMMC reports that at most 100 % of its life are used")
	}
}

// The life of a small card is short; a file system in memory has none.
func TestMemoryDoesNotWear(t *testing.T) {
	for kind, want := range map[string]string{"ext4": "warn wear: ", "tmpfs": "ok wear: "} {
		h := fakeHost(t, map[string]string{"proc/self/mountinfo": "22 1 179:2 / / rw - " + kind + " none rw\n"})
		h.space = func(string) (uint64, uint64, bool) { return 1 << 29, 1 << 29, true }
		cfg := harness.Parsed(t, harness.Minimal)
		cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
		d := diagnosis.New()
		examineEndurance(t.Context(), d, cfg, 1000, h, patient(1).writing)
		expect(t, d, want)
		if lasts := strings.Contains(d.String(), "lasts about"); lasts != (kind == "ext4") {
			t.Errorf("%s: %s", kind, d)
		}
	}
}

func TestSpeedIsMeasured(t *testing.T) {
	learner, err := harness.Parsed(t, harness.Minimal).Learner("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := measureSpeed(t.Context(), learner, time.Minute)
	if err != nil || s.Steps == 0 || s.PredictMicros <= 0 || s.StepMicros <= s.PredictMicros || s.Inducing != 50 || s.Features != 3 || s.Classes != 3 {
		t.Errorf("measured %+v, %v", s, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := measureSpeed(ended, learner, time.Minute); err != nil || s.Steps != 0 {
		t.Errorf("after its end it measures %+v, %v", s, err)
	}
}

// Servers that are encrypted or on this machine are distinguished from others.
func TestServers(t *testing.T) {
	for server, want := range map[string]bool{"mqtts://a": true, "ssl://a": true, "wss://a": true, "tls://a": true, "mqtt://a": false, "ws://a": false, "tcp://a": false} {
		if mqtt.Encrypted(server) != want {
			t.Errorf("%s is encrypted: %v", server, !want)
		}
	}
	if !slices.Equal([]bool{loopbackServer("mqtt://127.0.0.1"), loopbackServer("mqtt://localhost:1"), loopbackServer("mqtt://broker.lan")}, []bool{true, true, false}) {
		t.Error("loopback servers are not distinguished from others")
	}
}

// TestUnusedState examines a state file whose model has another name in the configuration, and a damaged one.
func TestUnusedState(t *testing.T) {
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	store, err := persist.Open(cfg.Store.Path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load("first", online.DefaultConfig().Shape()); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	d := diagnosis.New()
	examineState(d, &cfg)
	expect(t, d, "warn state: the state file also holds model first, which no model of the configuration continues → call a model first")
	if err := os.Truncate(cfg.Store.Path, 5000); err != nil {
		t.Fatal(err)
	}
	d = diagnosis.New()
	examineState(d, &cfg)
	expect(t, d, "warn state: persist: open "+cfg.Store.Path+" to read: state file is damaged")
}

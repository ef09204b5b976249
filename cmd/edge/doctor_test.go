package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"edge/stream/mqtt"
)

// fakeHost is a machine whose files are these.
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

// said is all that was found, a line each.
func (d *diagnosis) said() string {
	var b strings.Builder
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%s %s: %s → %s\n", f.Grade, f.Check, f.Detail, f.Advice)
	}
	return b.String()
}

// expect fails unless what was found says all of want.
func (d *diagnosis) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(d.said(), w) {
			t.Errorf("nothing says %q:\n%s", w, d.said())
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
		"usual":           {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: gradeOK, want: "ext4 (/dev/mmcblk0p2), mounted rw,noatime"},
		"memory":          {mount: "tmpfs tmpfs rw,relatime", grade: gradeWarn, want: "lost at the next start"},
		"layer":           {mount: "overlay overlay rw,relatime", grade: gradeWarn, want: "lost with the layer"},
		"read-only":       {mount: "ext4 /dev/mmcblk0p2 ro,noatime", grade: gradeFail, want: "mounted read-only"},
		"synchronous":     {mount: "ext4 /dev/mmcblk0p2 rw,noatime,sync", grade: gradeWarn, want: "mounted with sync"},
		"reads write":     {mount: "ext4 /dev/mmcblk0p2 rw", grade: gradeWarn, want: "strictatime"},
		"no barriers":     {mount: "ext4 /dev/sda1 rw,noatime,nobarrier", grade: gradeFail, want: "without barriers"},
		"card of cameras": {mount: "vfat /dev/sda1 rw,relatime", grade: gradeWarn, want: "without rights of files"},
		"network":         {mount: "nfs4 server:/x rw,relatime", grade: gradeWarn, want: "network file system"},
		"fast commit": {mount: "ext4 /dev/sda1 rw,noatime", grade: gradeFail, want: "ext4 with fast_commit is faulty",
			files: map[string]string{"proc/sys/kernel/osrelease": "5.15.16-v8+\n", "proc/fs/ext4/sda1/options": "rw\nfast_commit\n"}},
		"fast commit, who knows": {mount: "ext4 /dev/sda1 rw,noatime", grade: gradeWarn, want: "dumpe2fs",
			files: map[string]string{"proc/sys/kernel/osrelease": "5.10.93"}},
		"no fast commit":      {mount: "ext4 /dev/sda1 rw,noatime", grade: gradeOK, files: map[string]string{"proc/sys/kernel/osrelease": "5.10.93", "proc/fs/ext4/sda1/options": "rw\n"}},
		"fast commit, mended": {mount: "ext4 /dev/sda1 rw,noatime", grade: gradeOK, files: map[string]string{"proc/sys/kernel/osrelease": "5.10.94"}},
		"fast commit, newer":  {mount: "ext4 /dev/sda1 rw,noatime", grade: gradeOK, files: map[string]string{"proc/sys/kernel/osrelease": "6.1.21", "proc/fs/ext4/sda1/options": "fast_commit\n"}},
		"eMMC, young":         {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: gradeOK, want: "at most 20 %", files: map[string]string{"sys/dev/block/8:1/device/life_time": "0x01 0x02\n"}},
		"eMMC, old":           {mount: "ext4 /dev/mmcblk0p2 rw,noatime", grade: gradeWarn, want: "at most 100 %", files: map[string]string{"sys/dev/block/8:1/device/life_time": "0x0a 0x03\n"}},
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
			cfg := DefaultConfig()
			cfg.Store.Path = filepath.Join(folder, "edge.db")
			d := &diagnosis{Grade: gradeOK}
			examineDisk(d, &cfg, fakeHost(t, files))
			if d.Grade != tc.grade {
				t.Errorf("the grade is %s, want %s:\n%s", d.Grade, tc.grade, d.said())
			}
			d.expect(t, tc.want)
		})
	}
	cfg := DefaultConfig()
	cfg.Store.Path = filepath.Join(t.TempDir(), "none", "edge.db")
	d := &diagnosis{Grade: gradeOK}
	examineDisk(d, &cfg, fakeHost(t, nil))
	d.expect(t, "fail file system: the folder of the state cannot be used")
}

func TestSpaceIsJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		free uint64
		want string
	}{
		"plenty": {1 << 30, "ok free space"}, "less than max_size": {100 << 20, "warn free space"}, "none": {100 << 10, "fail free space"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parsed(t, minimal)
			h := fakeHost(t, nil)
			h.space = func(string) (uint64, uint64, bool) { return tc.free, 32 << 30, true }
			d := &diagnosis{Grade: gradeOK}
			examineSpace(d, cfg, t.TempDir(), h)
			d.expect(t, tc.want)
		})
	}
}

// parsed is a configuration whose state is in a folder of its own.
func parsed(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := parseConfig("edge.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	return cfg
}

func TestMachineIsJudged(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*Config, *host)
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
		"clock wanders":   {change: func(_ *Config, h *host) { h.clock = func() (bool, bool) { return false, true } }, want: "warn clock: says 2026-11-21 12:00:00 and is not synchronised"},
		"clock of 1970":   {change: func(_ *Config, h *host) { h.now = func() time.Time { return time.Unix(9, 0).UTC() } }, want: "warn clock: says 1970-01-01 00:00:09"},
		"1970 with TLS": {change: func(c *Config, h *host) {
			h.now = func() time.Time { return time.Unix(9, 0).UTC() }
			c.MQTT.Servers = []string{"mqtts://broker.lan"}
		}, want: "fail clock: says 1970"},
		"battery clock":     {files: map[string]string{"sys/class/rtc/rtc0/name": "rtc-ds1307 1-0068"}, want: "kept by a battery clock (rtc-ds1307 1-0068)"},
		"no battery":        {files: map[string]string{"proc/sys/kernel/osrelease": "6.1.0"}, want: "ok clock at power-on: no battery clock"},
		"no battery, TLS":   {files: map[string]string{"proc/sys/kernel/osrelease": "6.1.0"}, change: func(c *Config, _ *host) { c.MQTT.Servers = []string{"wss://broker.lan"} }, want: "warn clock at power-on"},
		"memory":            {files: map[string]string{"proc/meminfo": "MemTotal:  900000 kB\nMemFree: 1 kB\n"}, want: "ok memory: at most "},
		"unit's memory":     {files: map[string]string{"proc/meminfo": "MemTotal: 900000 kB\n", "sys/fs/cgroup/system.slice/edge.service/memory.max": "20971520\n"}, want: "the control group /system.slice/edge.service allows 20.0 MiB"},
		"container":         {files: map[string]string{"proc/self/cgroup": "0::/docker/x\n", "sys/fs/cgroup/docker/memory.max": "10485760", "sys/fs/cgroup/docker/x/memory.max": "max"}, want: "warn memory"},
		"older container":   {files: map[string]string{"proc/self/cgroup": "9:cpu:/\n8:memory:/docker/x\n", "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "10485760"}, want: "the control group /docker/x allows 10.0 MiB"},
		"memory, who knows": {want: "ok memory"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, h := parsed(t, minimal), fakeHost(t, tc.files)
			if tc.change != nil {
				tc.change(cfg, &h)
			}
			d := &diagnosis{Grade: gradeOK}
			examineMachine(d, cfg, h)
			d.expect(t, tc.want)
		})
	}
}

func TestExposures(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, mode fs.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		config, password, key, state, folder fs.FileMode
		want                                 []string
	}{
		"as it should be":             {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o755},
		"a group is trusted":          {config: 0o664, password: 0o640, key: 0o640, state: 0o600, folder: 0o775},
		"everybody reads a password":  {config: 0o644, password: 0o644, key: 0o600, state: 0o600, folder: 0o755, want: []string{"password: everybody may read or change the password"}},
		"everybody reads a key":       {config: 0o644, password: 0o600, key: 0o604, state: 0o600, folder: 0o755, want: []string{"key: everybody may read or change the private key"}},
		"everybody configures":        {config: 0o646, password: 0o600, key: 0o600, state: 0o600, folder: 0o755, want: []string{"config: everybody may change the configuration"}},
		"others read the state":       {config: 0o644, password: 0o600, key: 0o600, state: 0o640, folder: 0o755, want: []string{"state: others may read what the model was taught"}},
		"everybody replaces it":       {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o777, want: []string{": everybody may put another file in the place of the state"}},
		"everybody, but not replaces": {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o777 | fs.ModeSticky},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.MQTT.Password.File, cfg.MQTT.TLS.Key = file("password", tc.password), file("key", tc.key)
			cfg.Store.Path = file("state", tc.state)
			if err := os.Chmod(folder, tc.folder); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(folder, 0o700)
			var got []string
			for _, e := range cfg.exposures(file("config", tc.config)) {
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(e.Path, folder), "/")+": "+e.Reason)
				if e.Advice == "" {
					t.Errorf("no advice on %s", e.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
	if found := parsed(t, minimal).exposures(filepath.Join(folder, "none")); len(found) > 0 {
		t.Errorf("files that are not there are exposed: %v", found)
	}
}

// run and check say of a secret that everybody may read, and not what it is.
func TestExposedSecretIsTold(t *testing.T) {
	secret := writeFile(t, "password", "hunter2")
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(minimal, "servers: [mqtt://broker.lan]", "servers: ['mqtt://127.0.0.1:1'], username: u, password: {file: "+secret+"}", 1)
	config := writeFile(t, "edge.yaml", text+"\nstore: {path: "+filepath.Join(t.TempDir(), "edge.db")+"}\nhttp: {listen: ''}\n")
	_, out, errOut := edge(t, "check", "-c", config)
	if !strings.Contains(out, "everybody may read or change the password (chmod o= "+secret) {
		t.Errorf("check says %s%s", out, errOut)
	}
	_, _, errOut = edge(t, "run", "-c", config, "--for", "10ms")
	if !strings.Contains(errOut, "everybody may read or change the password") || strings.Contains(errOut, "hunter2") {
		t.Errorf("run says %s", errOut)
	}
}

// What a day writes, against a calculation by hand.
func TestWearOfADay(t *testing.T) {
	cfg := parsed(t, minimal) // one stream; 250ms, 16; checkpoints every 5m or 5000 samples
	for _, tc := range []struct {
		rate    float64
		group   int
		commits float64 // a day
		points  float64
	}{
		{0, 1, 0, 0},
		{1, 1, 86400 + 86400/1.25, 288},
		{20, 2, 864000 + 86400/0.3, 345.6},
		{1000, 16, 5400000, 17280}, // minibatches fill by themselves
	} {
		w := wear{Rate: tc.rate, Group: tc.group, CommitBytes: 10000, CheckpointBytes: 1e6, samples: 5000}
		w.aDay(cfg)
		want := tc.commits*10000 + tc.points*1e6
		if math.Abs(w.BytesADay-want) > 1e-6*want || math.Abs(w.CheckpointsADay-tc.points) > 1e-9*tc.points {
			t.Errorf("at %v a second: %v bytes and %v checkpoints a day, want %v and %v", tc.rate, w.BytesADay, w.CheckpointsADay, want, tc.points)
		}
	}
}

// What is measured is what a store of the daemon writes: more for larger states,
// and nothing is left behind.
func TestWearIsMeasured(t *testing.T) {
	measure := func(inducing string) wear {
		cfg := parsed(t, strings.Replace(minimal, "streams: [vibration]", "streams: [vibration], inducing: "+inducing, 1))
		folder := t.TempDir()
		w, err := measureWear(t.Context(), cfg, folder, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		return w
	}
	small, large := measure("20"), measure("100")
	learner, err := parsed(t, strings.Replace(minimal, "streams: [vibration]", "streams: [vibration], inducing: 100", 1)).Learner("")
	if err != nil {
		t.Fatal(err)
	}
	if least := float64(stateSize(learner, 3)); large.CheckpointBytes < least || large.CheckpointBytes > 2*least {
		t.Errorf("a checkpoint of %v bytes writes %v", least, large.CheckpointBytes)
	}
	if small.CheckpointBytes >= large.CheckpointBytes || small.CommitBytes < 4096 || small.BytesADay <= 0 {
		t.Errorf("M = 20: %+v, M = 100: %+v", small, large)
	}
}

func TestSpeedIsMeasured(t *testing.T) {
	learner, err := parsed(t, minimal).Learner("")
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

// folderContent is the content of every file in a folder.
func folderContent(t *testing.T, folder string) map[string]string {
	t.Helper()
	content := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		content[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// doctor runs the command, with --json, until what it prints is good. Each run has
// more patience than the one before: on a loaded machine a broker answers later.
func doctor(t *testing.T, config string, good func(code int, out string) bool) (code int, out, errOut string) {
	t.Helper()
	for _, times := range []string{"1", "4", "16"} {
		if code, out, errOut = edge(t, "doctor", "-c", config, "--json", "--patience", times); good(code, out) {
			break
		}
	}
	return code, out, errOut
}

// findingIs reports whether the doctor's finding on a check begins with these
// words, the first of which is its grade.
func findingIs(out, check, words string) bool {
	f := gjson.Get(out, `findings.#(check=="`+check+`")`)
	return strings.HasPrefix(f.Get("grade").String()+" "+f.Get("detail").String(), words)
}

// The doctor finds a healthy pair of broker and configuration well, beside a
// daemon that runs, and leaves neither file, nor message, nor session behind.
func TestDoctor(t *testing.T) {
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, store := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		d.await("connected to the broker")
		awaitOnline(t, b)
		before := folderContent(t, filepath.Dir(store))
		code, out, errOut := doctor(t, config, func(code int, _ string) bool { return code == exitOK })
		if code != exitOK {
			t.Fatalf("doctor exits with %d: %s%s", code, out, errOut)
		}
		for _, want := range []string{"rights", "file system", "free space", "kernel", "clock", "memory", "speed of waveform", "writing", "wear", "broker", "subscriptions", "retained messages", "shared subscriptions", "in-flight window", "queue while away", "largest message"} {
			if f := gjson.Get(out, `findings.#(check=="`+want+`")`); !f.Exists() || f.Get("grade").String() == gradeFail {
				t.Errorf("%s: %s", want, f)
			}
		}
		if diff := cmp.Diff(before, folderContent(t, filepath.Dir(store))); diff != "" {
			t.Errorf("the folder of the state has changed: %s", diff)
		}
		if kept := retained(t, b.url(), "edge/test/+/kept"); kept != "" {
			t.Errorf("the broker still keeps %q", kept)
		}
		d.stop()
	})
}

// Limits of a broker are found, and each comes with advice.
func TestDoctorFindsLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		settings string
		quick    bool // also without the build tag slow
		code     int
		want     map[string]string // grade and words by check
	}{
		"narrow": {
			settings: "max_inflight_messages 5\nmax_queued_messages 50\nmessage_size_limit 5000\n", quick: true,
			want: map[string]string{
				"in-flight window": "warn the broker sends 5 messages", "queue while away": "warn the broker keeps 50 messages",
				"largest message": "warn 4.0 KiB pass, 8.0 KiB do not",
			},
		},
		"wide": {
			settings: "max_inflight_messages 0\nmax_queued_messages 0\n",
			want: map[string]string{
				"in-flight window": "ok the broker sends 128 messages and more", "queue while away": "ok the broker keeps 3000 messages and more", "largest message": "ok 64.0 KiB pass",
			},
		},
		"forgetful": {
			settings: "retain_available false\nmax_packet_size 20000\n", code: exitRuntime,
			want: map[string]string{"retained messages": "fail the broker refuses them", "largest message": "warn 16.0 KiB pass"},
		},
		"closed": {
			settings: "acl_file {folder}/acl\n", quick: true, code: exitRuntime,
			want: map[string]string{"broker": "fail what was published on edge/test/doctor-"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !slow && !tc.quick {
				t.Skip("it needs the build tag slow")
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "acl"), []byte("topic read other/#\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newTestBroker(t, func(t *testing.T, addr string) func() {
				return startMosquittoWith(t, addr, strings.ReplaceAll(tc.settings, "{folder}", folder))
			})
			config, _ := waveformConfig(t, b.url())
			code, out, errOut := doctor(t, config, func(code int, out string) bool {
				for check, want := range tc.want {
					if !findingIs(out, check, want) {
						return false
					}
				}
				return code == tc.code
			})
			if code != tc.code {
				t.Errorf("doctor exits with %d, want %d: %s%s", code, tc.code, out, errOut)
			}
			for check, want := range tc.want {
				f := gjson.Get(out, `findings.#(check=="`+check+`")`)
				if !findingIs(out, check, want) {
					t.Errorf("%s: %s, want %q", check, f, want)
				}
				if f.Get("grade").String() != gradeOK && f.Get("advice").String() == "" {
					t.Errorf("%s: no advice: %s", check, f)
				}
			}
		})
	}
}

func TestDoctorWithoutABroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	config, _ := waveformConfig(t, "mqtt://"+addr)
	code, out, errOut := edge(t, "doctor", "-c", config)
	if code != exitRuntime || !strings.Contains(out, "fail  broker") || !strings.Contains(errOut, "a check failed") {
		t.Errorf("doctor exits with %d: %s%s", code, out, errOut)
	}
	code, out, _ = edge(t, "doctor", "-c", config, "--offline")
	if code != exitOK || strings.Contains(out, "broker ") {
		t.Errorf("doctor --offline exits with %d: %s", code, out)
	}
}

// A diagnosis reads the same for people and for programs.
func TestDiagnosis(t *testing.T) {
	d := &diagnosis{V: 1, Grade: gradeOK, Seconds: 1}
	d.ok("clock", "right")
	d.warn("disk", "small", "buy another")
	d.fail("broker", "gone", "look for it")
	d.ok("power", "on")
	var b bytes.Buffer
	if err := d.print(&b); err != nil {
		t.Fatal(err)
	}
	want := `ok    clock   right
warn  disk    small
              → buy another
fail  broker  gone
              → look for it
ok    power   on
2 well, 1 to know about, 1 failed; 1.0 s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if d.Grade != gradeFail {
		t.Errorf("the grade of all is %s", d.Grade)
	}
	text, err := json.Marshal(d)
	if err != nil || gjson.GetBytes(text, "findings.1.advice").String() != "buy another" {
		t.Errorf("JSON is %s, %v", text, err)
	}
}

func TestOpenToNetwork(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:9107": false, "[::1]:9107": false, "localhost:9107": false, ":9107": true, "0.0.0.0:9107": true, "192.168.1.4:9107": true, "": false} {
		if _, open := openToNetwork(listen); open != want {
			t.Errorf("%q is open: %v", listen, open)
		}
	}
	for server, want := range map[string]bool{"mqtts://a": true, "ssl://a": true, "wss://a": true, "tls://a": true, "mqtt://a": false, "ws://a": false, "tcp://a": false} {
		if mqtt.Encrypted(server) != want {
			t.Errorf("%s is encrypted: %v", server, !want)
		}
	}
	if !slices.Equal([]bool{loopbackServer("mqtt://127.0.0.1"), loopbackServer("mqtt://localhost:1"), loopbackServer("mqtt://broker.lan")}, []bool{true, true, false}) {
		t.Error("loopback servers are not told from others")
	}
}

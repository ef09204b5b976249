package doctor

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
	"edge/stream"
)

// What is assumed of the flash memory under a state, to say how long it lasts.
const (
	flashCycles   = 500 // times that each cell of a card (TLC) can be written
	amplification = 10  // bytes that a card writes for one byte of small, scattered writes
	shortLife     = 5   // years
)

// What the doctor writes beside a state.
const (
	doctorFolder = ".edge-doctor-"
	doctorStore  = "trial.db"
)

// stateFolder is the real folder that the state is or will be in.
func stateFolder(cfg *config.Config) (folder string, err error) {
	path, err := filepath.Abs(cfg.StorePath())
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.EvalSymlinks(filepath.Dir(path))
}

// examineDisk looks at the file system under the state, and its space.
func examineDisk(d *Diagnosis, cfg *config.Config, h Host) {
	const name = "file system"
	folder, err := stateFolder(cfg)
	if err != nil {
		d.fail(name, fmt.Sprintf("the folder of the state cannot be used: %v", err), "make it, owned by the daemon's user, or set store.path; for systemd, StateDirectory=edge makes it")
		return
	}
	m := h.mountOf(folder)
	if m == nil {
		d.ok(name, "%s; how it is mounted cannot be told here", folder)
	} else {
		judgeMount(d, m, folder)
		judgeFastCommit(d, m, h)
		judgeCard(d, m, h)
	}
	examineSpace(d, cfg, folder, h)
}

// judgeMount says what the kind of a file system and its options mean.
func judgeMount(d *Diagnosis, m *mount, folder string) {
	const name = "file system"
	where := fmt.Sprintf("%s is on %s (%s)", folder, m.kind, m.source)
	good := true
	warn := func(detail, advice string) {
		d.warn(name, where+": "+detail, advice)
		good = false
	}
	switch m.kind {
	case "tmpfs", "ramfs":
		warn("in memory, so that everything that was learnt is lost at the next start of the machine", "set store.path to a folder on a disk, unless that is meant")
	case "overlay", "aufs", "squashfs":
		warn("a layer over another: in a container, or with a read-only root, what is written is lost with the layer", "mount a volume, or a partition of its own, and set store.path to it")
	case "nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs":
		warn("a network file system: locks and syncs may not hold, and nothing is learnt while the network is away", "set store.path to a local disk")
	case "vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk":
		warn("without rights of files and, mostly, without a journal: a power cut may damage it", "use ext4 or f2fs")
	case "btrfs", "zfs":
		warn("copies what is written, so that small writes wear the disk several times as much", "chattr +C on the folder before the state is made, or ext4")
	}
	if m.has("ro") {
		d.fail(name, where+", mounted read-only", "remount it (mount -o remount,rw "+m.point+"); if the kernel did it, dmesg says why: mostly a card that dies")
		good = false
	}
	if m.has("nobarrier") || m.has("barrier=0") {
		d.fail(name, where+", mounted without barriers: a power cut may lose what was acknowledged", "mount it with barriers")
		good = false
	}
	if m.has("sync") || m.has("dirsync") {
		warn("mounted with sync: each write of any program goes to the disk alone, and wears it", "mount it without sync; edge syncs what has to be")
	}
	if !m.has("noatime") && !m.has("relatime") && !m.has("ro") && strings.HasPrefix(m.kind, "ext") {
		warn("mounted with strictatime: each read writes", "mount it with noatime")
	}
	if good {
		d.ok(name, "%s, mounted %s", where, m.flags)
	}
}

// judgeFastCommit knows of the kernels whose ext4 may damage a database when
// fast_commit is on: before 5.10.94, and 5.11 to 5.15.16 (bbolt's README).
func judgeFastCommit(d *Diagnosis, m *mount, h Host) {
	v, release := h.kernelVersion()
	before := func(major, minor, patch int) bool {
		return v[0] < major || v[0] == major && (v[1] < minor || v[1] == minor && v[2] < patch)
	}
	affected := !before(5, 10, 0) && before(5, 10, 94) || !before(5, 11, 0) && before(5, 15, 17)
	if m.kind != "ext4" || release == "" || !affected {
		return
	}
	advice := "upgrade the kernel; or tune2fs -O ^fast_commit " + m.source
	switch options := h.read("proc/fs/ext4/" + filepath.Base(m.source) + "/options"); {
	case strings.Contains(options, "fast_commit"):
		d.fail("kernel", "Linux "+release+" may damage the state: ext4 with fast_commit is faulty in it", advice)
	case options == "":
		d.warn("kernel", "Linux "+release+" may damage the state if the file system has fast_commit (dumpe2fs -h "+m.source+" | grep fast_commit)", advice)
	}
}

// judgeCard tells what an eMMC says of its own wear.
func judgeCard(d *Diagnosis, m *mount, h Host) {
	device := "sys/dev/block/" + m.device
	life := ""
	for _, up := range []string{"/device", "/../device"} { // of the disk; of the partition's disk
		if life == "" {
			life = h.read(device + up + "/life_time")
		}
	}
	var a, b int
	if n, _ := fmt.Sscanf(life, "0x%x 0x%x", &a, &b); n != 2 || a == 0 && b == 0 {
		return
	}
	const tenth, used = 10, 8 // per cent each; from 80 % on it should be known
	detail := fmt.Sprintf("the eMMC says that at most %d %% of its life are used", tenth*max(a, b))
	if max(a, b) > used {
		d.warn("wear of the eMMC", detail, "replace it before it is read-only; a copy of the state file of a stopped daemon, saves what was learnt")
		return
	}
	d.ok("wear of the eMMC", "%s", detail)
}

// examineSpace compares the free space with what the state may need.
func examineSpace(d *Diagnosis, cfg *config.Config, folder string, h Host) {
	const name = "free space"
	free, total, ok := h.space(folder)
	if !ok {
		d.ok(name, "cannot be told here")
		return
	}
	have := uint64(0)
	if info, err := os.Stat(cfg.StorePath()); err == nil {
		have = uint64(info.Size())
	}
	largest := uint64(cfg.Store.MaxSize)
	var soon uint64 // two generations of each model, and one more when the file is compacted
	for _, model := range slices.Sorted(maps.Keys(cfg.Models)) {
		if learner, err := cfg.Learner(model); err == nil {
			soon += 3 * learner.EncodedSize(max(len(learner.Classes.Names), 3))
		}
	}
	detail := fmt.Sprintf("%s of %s; the state takes %s, at most %s (store.max_size)", terminal.Bytes(free), terminal.Bytes(total), terminal.Bytes(have), terminal.Bytes(largest))
	figure := map[string]uint64{"free_bytes": free, "total_bytes": total, "state_bytes": have, "max_bytes": largest}
	switch {
	case have+free < soon:
		d.add(name, Fail, detail, "make room: what is learnt cannot be written soon", figure)
	case free < largest-min(have, largest):
		d.add(name, Warn, detail, "make room, or lower store.max_size: a full disk stops learning until there is room again", figure)
	default:
		d.add(name, OK, detail, "", figure)
	}
}

// wear is what a configuration writes, measured here with a store of its own.
type wear struct {
	Rate            float64 `json:"rate"`         // labelled samples a second of each model
	Group           int     `json:"group"`        // of them share a commit
	CommitBytes     float64 `json:"commit_bytes"` // written for one commit
	CommitMicros    float64 `json:"commit_us"`    // median
	CommitsADay     float64 `json:"commits_per_day"`
	CheckpointBytes float64 `json:"checkpoint_bytes"`    // for one of each model
	CheckpointsADay float64 `json:"checkpoints_per_day"` // of each model
	BytesADay       float64 `json:"bytes_per_day"`
	Years           float64 `json:"years,omitempty"` // of the disk's life

	samples uint64 // of the model with the largest, after which a checkpoint is due; 0: never by count or size
}

// MeasureWear writes a store beside the state as the daemon would, and counts.
func MeasureWear(ctx context.Context, cfg *config.Config, folder string, rate float64, within time.Duration) (w wear, err error) {
	left, _ := filepath.Glob(filepath.Join(folder, doctorFolder+"*", doctorStore))
	for _, file := range left { // by a doctor that was killed
		if persist.RemoveUnlocked(file) == nil {
			_ = os.RemoveAll(filepath.Dir(file))
		}
	}
	dir, err := os.MkdirTemp(folder, doctorFolder)
	if err != nil {
		return w, err
	}
	defer os.RemoveAll(dir)
	store, err := persist.Open(filepath.Join(dir, doctorStore), persist.Options{Dedupe: cfg.Store.Dedupe})
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	names := slices.Sorted(maps.Keys(cfg.Models))
	learners := map[string]online.Config{}
	for _, name := range names {
		if learners[name], err = cfg.Learner(name); err != nil {
			return w, err
		}
		if _, err := store.Load(name, learners[name].Shape()); err != nil {
			return w, err
		}
	}
	w.Rate, w.samples = rate, cfg.Store.Checkpoint.Samples
	if size := uint64(cfg.Store.Checkpoint.Size); size > 0 {
		for _, name := range names {
			record := online.Event{X: make([]float64, len(learners[name].Features)), Label: "class"}
			if n := max(size/uint64(record.Size()), 1); w.samples == 0 || n < w.samples {
				w.samples = n
			}
		}
	}
	// The first label waits for those that come within journal_flush.
	w.Group = int(min(math.Round(1+rate*cfg.Store.JournalFlush.Seconds()), float64(cfg.MQTT.InflightWindow)))
	if window := cfg.Stream().LossWindow; window > 0 {
		w.Group = int(min(math.Round(1+rate*window.Seconds()), stream.MaxGroup))
	}
	seqs := map[string]uint64{}
	// What a stream teaches goes to all of its models in one commit.
	lesson := func(stream string, n int) *online.Commit {
		c := &online.Commit{}
		for range n {
			for _, name := range names {
				if !slices.Contains(cfg.Models[name].Streams, stream) {
					continue
				}
				seqs[name]++
				c.Records = append(c.Records, online.Record{Model: name, Event: online.Event{
					Kind: online.Observe, Key: seqs[name], X: make([]float64, len(learners[name].Features)), Label: "class"}})
			}
		}
		return c
	}
	written := func() float64 {
		s, e := store.Stats()
		err = errors.Join(err, e)
		return float64(s.WrittenBytes)
	}

	// A journal as it is half way between two checkpoints: a commit to a long one
	// writes more pages.
	const longest, counted = 5000, 40
	every := w.samples
	if t := uint64(rate * cfg.Store.Checkpoint.Every.Seconds()); cfg.Store.Checkpoint.Every > 0 && (every == 0 || t < every) {
		every = t
	}
	streams := usedStreams(cfg)
	for _, stream := range streams {
		if c := lesson(stream, int(min(every/2, longest))); len(c.Records) > 0 {
			if err := store.Commit(c); err != nil {
				return w, err
			}
		}
	}
	var times []time.Duration
	before, deadline := written(), time.Now().Add(within)
	for len(times) < counted && ctx.Err() == nil && (len(times) == 0 || time.Now().Before(deadline)) {
		for _, stream := range streams {
			began := time.Now()
			if err := store.Commit(lesson(stream, w.Group)); err != nil {
				return w, err
			}
			times = append(times, time.Since(began))
		}
	}
	if len(times) == 0 {
		return w, ctx.Err()
	}
	w.CommitBytes = (written() - before) / float64(len(times))
	w.CommitMicros = medianMicros(times)
	before = written()
	for _, name := range names {
		state := make([]byte, learners[name].EncodedSize(max(len(learners[name].Classes.Names), 3)))
		for i := 0; i+8 <= len(state); i += 8 {
			binary.LittleEndian.PutUint64(state[i:], uint64(i))
		}
		if err := store.Checkpoint(name, seqs[name], state); err != nil {
			return w, err
		}
	}
	w.CheckpointBytes = written() - before
	w.aDay(cfg)
	return w, err
}

// usedStreams are the names of the streams that feed a model.
func usedStreams(c *config.Config) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Streams)), func(name string) bool {
		for _, m := range c.Models {
			if slices.Contains(m.Streams, name) {
				return false
			}
		}
		return true
	})
}

// aDay reckons the bytes of a day.
func (w *wear) aDay(cfg *config.Config) {
	const day = 86400.0
	every := cfg.Store.Checkpoint
	if every.Every > 0 && w.Rate > 0 {
		w.CheckpointsADay = day / every.Every.Seconds()
	}
	if w.samples > 0 {
		w.CheckpointsADay = max(w.CheckpointsADay, day*w.Rate/float64(w.samples))
	}
	for _, stream := range usedStreams(cfg) {
		w.CommitsADay += day * w.Rate / float64(w.Group)
		// A minibatch that is closed by time is a commit, too: once for the models
		// of a stream that wait equally long; where a commit waits as long for
		// company it is none.
		waits := map[time.Duration]bool{}
		for _, m := range cfg.Models {
			b := m.Learner.Batch
			if slices.Contains(m.Streams, stream) && b.MaxWait > cmp.Or(cfg.Stream().LossWindow, cfg.Store.JournalFlush) && w.Rate > 0 && w.Rate*b.MaxWait.Seconds() < float64(b.MaxSize-1) {
				waits[b.MaxWait] = true
			}
		}
		for wait := range waits {
			w.CommitsADay += day / (wait.Seconds() + 1/w.Rate)
		}
	}
	w.BytesADay = w.CommitsADay*w.CommitBytes + w.CheckpointsADay*w.CheckpointBytes
}

// examineWear measures what is written, and says how long a card lasts.
func examineWear(ctx context.Context, d *Diagnosis, cfg *config.Config, rate float64, h Host) {
	const name = "writing"
	folder, err := stateFolder(cfg)
	if err != nil {
		return // told already
	}
	w, err := MeasureWear(ctx, cfg, folder, rate, d.Within.wear)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		d.fail(name, "this user cannot write beside the state: "+err.Error(), "run doctor as the daemon's user; then chown the folder to it")
		return
	case err != nil:
		d.fail(name, "a trial beside the state failed: "+err.Error(), "see free space and file system")
		return
	}
	const slowCommit = 200e3 // µs
	detail := fmt.Sprintf("a commit takes %.1f ms and writes %s", w.CommitMicros/1e3, terminal.Bytes(uint64(w.CommitBytes)))
	if w.CommitMicros > slowCommit {
		d.add(name, Warn, detail, "the disk is slow to sync: labels are acknowledged late; use a faster card (A1, A2), or raise store.journal_flush so that more share a commit", w)
	} else {
		d.add(name, OK, detail, "", w)
	}
	detail = fmt.Sprintf("%s a day at %g labelled messages a second of each stream (%s in checkpoints)", terminal.Bytes(uint64(w.BytesADay)), rate, terminal.Bytes(uint64(w.CheckpointsADay*w.CheckpointBytes)))
	_, total, ok := h.space(folder)
	if !ok || w.BytesADay == 0 {
		d.add("wear", OK, detail, "", w)
		return
	}
	w.Years = float64(total) * flashCycles / (amplification * w.BytesADay * 365)
	detail += fmt.Sprintf("; a card of %s lasts about %s, with %d writes of each cell and %d times as much written inside", terminal.Bytes(total), yearsText(w.Years), flashCycles, amplification)
	if w.Years < shortLife {
		d.add("wear", Warn, detail, "raise batch.max_wait and store.journal_flush, so that labels share commits, and store.checkpoint.every; use a larger or an industrial card, or a disk", w)
		return
	}
	d.add("wear", OK, detail, "", w)
}

func yearsText(years float64) string {
	switch {
	case years > 100:
		return "more than 100 years"
	case years >= 2:
		return fmt.Sprintf("%.0f years", years)
	}
	return fmt.Sprintf("%.0f months", years*12)
}

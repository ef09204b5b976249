package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
	"edge/stream/field"
)

// stateFolder returns the folder of the state file, without symbolic links.
func stateFolder(cfg *config.Config) (folder string, err error) {
	path, err := cfg.StorePath()
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.EvalSymlinks(filepath.Dir(path))
}

// examineDisk examines the file system under the state and its free space.
func examineDisk(d *diagnosis.Diagnosis, cfg *config.Config, h host) {
	const name = "file system"
	folder, err := stateFolder(cfg)
	if err != nil {
		d.Fail(name, fmt.Sprintf("the folder of the state cannot be used: %v", err), "make it, owned by the daemon's user, or set store.path; for systemd, StateDirectory=edge makes it")
		return
	}
	m := h.mountOf(folder)
	if m == nil {
		d.OK(name, "%s; how it is mounted is unknown on this system", folder)
	} else {
		judgeMount(d, m, folder)
		judgeFastCommit(d, m, h)
		judgeCard(d, m, h)
	}
	examineSpace(d, cfg, folder, h)
}

// judgeMount grades the kind and the options of a file system.
func judgeMount(d *diagnosis.Diagnosis, m *mount, folder string) {
	const name = "file system"
	where := fmt.Sprintf("%s is on %s (%s)", folder, m.kind, m.source)
	good := true
	warn := func(detail, advice string) {
		d.Warn(name, where+": "+detail, advice)
		good = false
	}
	switch m.kind {
	case "tmpfs", "ramfs":
		warn("in memory, so that all learning is lost at the next start of the machine", "set store.path to a folder on a disk, unless that is meant")
	case "overlay", "aufs", "squashfs":
		warn("a layer over another: in a container, or with a read-only root, what is written is lost with the layer", "mount a volume, or a partition of its own, and set store.path to it")
	case "nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs":
		warn("a network file system: locks and syncs may not hold, and nothing is learnt while the network is away", "set store.path to a local disk")
	case "vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk":
		warn("without rights of files and usually without a journal: a power cut may damage it", "use ext4 or f2fs")
	case "btrfs", "zfs":
		warn("copies what is written, so that small writes wear the disk several times as much", "chattr +C on the folder before the state is made, or ext4")
	}
	if m.has("ro") {
		d.Fail(name, where+", mounted read-only", "remount it (mount -o remount,rw "+m.point+"); if the kernel did it, see dmesg: usually the card is failing")
		good = false
	} else if m.has("emergency_ro") { // ext4 from Linux 6.15 on, whose flag remains rw
		d.Fail(name, where+", made read-only by the kernel, after an error", "see dmesg: usually the card is failing; copy the state to another disk (edge backup), and start the machine anew")
		good = false
	}
	if m.has("nobarrier") || m.has("barrier=0") {
		d.Fail(name, where+", mounted without barriers: a power cut may lose what was acknowledged", "mount it with barriers")
		good = false
	}
	if m.has("sync") || m.has("dirsync") {
		warn("mounted with sync: each write of any program goes to the disk alone, and wears it", "mount it without sync; edge syncs what has to be")
	}
	if !m.has("noatime") && !m.has("relatime") && !m.has("ro") && strings.HasPrefix(m.kind, "ext") {
		warn("mounted with strictatime: each read writes", "mount it with noatime")
	}
	if good {
		d.OK(name, "%s, mounted %s", where, m.flags)
	}
}

// judgeFastCommit reports kernels whose ext4 may damage a database when fast_commit
// is on: 5.10 before 5.10.94, and 5.11 to 5.15.16 (bbolt's README).
func judgeFastCommit(d *diagnosis.Diagnosis, m *mount, h host) {
	v, release := h.kernelVersion()
	before := func(version ...int) bool { return slices.Compare(v[:], version) < 0 }
	affected := !before(5, 10, 0) && before(5, 10, 94) || !before(5, 11, 0) && before(5, 15, 17)
	if m.kind != "ext4" || release == "" || !affected {
		return
	}
	advice := "upgrade the kernel; or tune2fs -O ^fast_commit " + m.source
	switch options := h.read("proc/fs/ext4/" + filepath.Base(m.source) + "/options"); {
	case strings.Contains(options, "fast_commit"):
		d.Fail("kernel", "Linux "+release+" may damage the state: ext4 with fast_commit is faulty in it", advice)
	case options == "":
		d.Warn("kernel", "Linux "+release+" may damage the state if the file system has fast_commit (dumpe2fs -h "+m.source+" | grep fast_commit)", advice)
	}
}

// judgeCard reports the wear that an eMMC measures itself.
func judgeCard(d *diagnosis.Diagnosis, m *mount, h host) {
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
	const tenth, used = 10, 8 // steps of 10 per cent; above 80 % the user should know
	detail := fmt.Sprintf("the eMMC reports that at most %d %% of its life are used", tenth*max(a, b))
	if max(a, b) > used {
		d.Warn("wear of the eMMC", detail, "replace it before it is read-only; a copy of the state file of a stopped daemon saves what was learnt")
		return
	}
	d.OK("wear of the eMMC", "%s", detail)
}

// examineSpace compares the free space with the largest size of the state.
func examineSpace(d *diagnosis.Diagnosis, cfg *config.Config, folder string, h host) {
	const name = "free space"
	free, total, ok := h.space(folder)
	if !ok {
		d.OK(name, "unknown on this system")
		return
	}
	have := uint64(0)
	if path, err := cfg.StorePath(); err == nil {
		if info, err := os.Stat(path); err == nil {
			have = uint64(info.Size())
		}
	}
	largest := uint64(cfg.Store.MaxSize)
	var soon uint64 // two generations of each model, and one more when the file is compacted
	for _, model := range field.Names(cfg.Models) {
		if learner, err := cfg.Learner(model); err == nil {
			soon += 3 * learner.EncodedSize(max(len(learner.Classes.Names), 3))
		}
	}
	detail := fmt.Sprintf("%s of %s; the state takes %s, at most %s (store.max_size)", terminal.Bytes(free), terminal.Bytes(total), terminal.Bytes(have), terminal.Bytes(largest))
	figure := map[string]uint64{"free_bytes": free, "total_bytes": total, "state_bytes": have, "max_bytes": largest}
	switch {
	case have+free < soon:
		d.Add(name, diagnosis.Fail, detail, "make room: the next checkpoints do not fit", figure)
	case free < largest-min(have, largest):
		d.Add(name, diagnosis.Warn, detail, "make room, or lower store.max_size: a full disk stops learning until there is room again", figure)
	default:
		d.Add(name, diagnosis.OK, detail, "", figure)
	}
}

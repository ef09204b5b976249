package doctor

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// host reads the properties of the machine from the files by which Linux describes
// it. On other systems most properties are unknown.
type host struct {
	root     string // of those files; "/" except in tests
	pageSize int
	clock    func() (synchronised, known bool)
	space    func(path string) (free, total uint64, ok bool)
	now      func() time.Time
}

// newHost returns the machine that the program runs on.
func newHost() host {
	return host{root: "/", pageSize: os.Getpagesize(), clock: clockSynchronised, space: diskSpace, now: time.Now}
}

// read returns a small file's content without spaces around it, "" without the file.
func (h host) read(path string) string {
	data, err := os.ReadFile(h.root + "/" + path) // not joined: .. is the folder above a link's target
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

// has reports whether the file system is mounted with an option.
func (m *mount) has(option string) bool { return slices.Contains(m.options, option) }

// inMemory reports whether the file system is on no disk, so that nothing wears.
func (m *mount) inMemory() bool { return m.kind == "tmpfs" || m.kind == "ramfs" }

// mountOf returns the file system that holds a path, nil if it is unknown. The path
// must be absolute and without symbolic links.
func (h host) mountOf(path string) *mount {
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

// kernelVersion returns the running kernel's version, zeros if it is unknown.
func (h host) kernelVersion() (version [3]int, text string) {
	text = h.read("proc/sys/kernel/osrelease")
	fmt.Sscanf(text, "%d.%d.%d", &version[0], &version[1], &version[2])
	return version, text
}

package process

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// UnmapProgram takes the pages of the program's file out of the resident memory, of which
// a start needs many. They stay in the system's cache, and the next access maps them again.
func UnmapProgram() {
	if program, err := os.Readlink("/proc/self/exe"); err == nil {
		unmapPages(program)
	}
}

// unmapPages unmaps the pages of a file that is mapped for reading. The mappings must not
// end meanwhile: the addresses could be those of other memory then, which would be
// cleared.
func unmapPages(file string) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range unwritten(file, string(maps), smaps) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(m.from), uintptr(m.to-m.from), syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ from, to uint64 }

// unwritten returns the mappings of a file that are for reading, by /proc/self/smaps. One with
// a page of its own, as by a dynamic linker, is left out, and one that differs in
// /proc/self/maps: an emulator of user programs, such as qemu-arm, passes on
// smaps with the addresses of its own memory.
func unwritten(file, maps string, smaps io.Reader) (all []mapping) {
	known := map[string]bool{}
	for line := range strings.Lines(maps) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	var m mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		if at := strings.IndexByte(line, ' '); at > 0 && line[at-1] != ':' { // from-to rwxp offset device inode path
			f := strings.Fields(line)
			start, end, _ := strings.Cut(f[0], "-")
			m = mapping{}
			if len(f) >= 6 && f[1][1] == '-' && strings.HasSuffix(line, " "+file) && known[line] {
				m.from, _ = strconv.ParseUint(start, 16, 64)
				m.to, _ = strconv.ParseUint(end, 16, 64)
			}
		} else if m.from < m.to && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			all = append(all, m)
		}
	}
	return all
}

package process

import (
	"bufio"
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
// cleared. A mapping with a page of its own, such as what a dynamic linker wrote, is left
// alone.
func unmapPages(file string) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	var from, to uint64
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		if at := strings.IndexByte(line, ' '); at > 0 && line[at-1] != ':' { // from-to rwxp offset device inode path
			f := strings.Fields(line)
			start, end, _ := strings.Cut(f[0], "-")
			from, to = 0, 0
			if len(f) >= 6 && f[1][1] == '-' && strings.HasSuffix(line, " "+file) {
				from, _ = strconv.ParseUint(start, 16, 64)
				to, _ = strconv.ParseUint(end, 16, 64)
			}
		} else if from < to && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED)
		}
	}
}

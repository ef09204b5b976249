package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// UnmapFilePages takes the pages of files that are mapped for reading out of the resident
// memory: those of the program, of which a start needs many, and of state files. They stay in the
// system's cache, and the next access maps them again. A mapping with a page of its
// own, such as what a dynamic linker wrote, is left alone.
func UnmapFilePages() {
	smaps, _ := os.ReadFile("/proc/self/smaps")
	var from, to uint64
	for line := range strings.Lines(string(smaps)) {
		f := strings.Fields(line)
		if start, end, found := strings.Cut(f[0], "-"); found { // from-to rwxp offset device inode path
			from, to = 0, 0
			if len(f) >= 6 && f[1][1] == '-' && f[5][0] == '/' {
				from, _ = strconv.ParseUint(start, 16, 64)
				to, _ = strconv.ParseUint(end, 16, 64)
			}
		} else if f[0] == "Anonymous:" && f[1] == "0" && from < to {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED)
		}
	}
}

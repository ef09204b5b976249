package process

import (
	"bufio"
	"bytes"
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
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	var from, to uint64
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Bytes()
		if space := bytes.IndexByte(line, ' '); space > 0 && line[space-1] != ':' { // from-to rwxp offset device inode path
			f := strings.Fields(string(line))
			start, end, _ := strings.Cut(f[0], "-")
			from, to = 0, 0
			if len(f) >= 6 && f[1][1] == '-' && f[5][0] == '/' {
				from, _ = strconv.ParseUint(start, 16, 64)
				to, _ = strconv.ParseUint(end, 16, 64)
			}
		} else if from < to && bytes.HasPrefix(line, []byte("Anonymous:")) && bytes.HasSuffix(line, []byte(" 0 kB")) {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED)
		}
	}
}

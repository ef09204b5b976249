package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// letProgramGo takes the pages of the program's file that only its start has
// needed, some 4 MB, out of the resident set. They stay in the system's page
// cache, which may use the memory for something else from now on; what is needed
// again is mapped again, without reading it if it is still there.
func letProgramGo() {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // then they stay: nothing but memory is lost
	}
	defer smaps.Close()
	for _, m := range cleanMappings(smaps) {
		syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a part of the address space.
type mapping struct{ from, to uintptr }

// cleanMappings returns those of /proc/PID/smaps that map a file privately,
// cannot be written to, and hold nothing but what is in the file.
func cleanMappings(smaps io.Reader) (clean []mapping) {
	var now mapping
	ofFile := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 5 && !strings.HasSuffix(f[0], ":"): // addresses, permissions, offset, device, inode, file
			from, to, _ := strings.Cut(f[0], "-")
			now = mapping{address(from), address(to)}
			ofFile = f[1][0] == 'r' && f[1][1] == '-' && f[1][3] == 'p' && f[4] != "0"
		case len(f) == 3 && f[0] == "Anonymous:" && ofFile && f[1] == "0":
			clean = append(clean, now)
		}
	}
	return clean
}

func address(hex string) uintptr {
	v, _ := strconv.ParseUint(hex, 16, strconv.IntSize)
	return uintptr(v)
}

package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// The pages of a file leave the resident memory, and have the same content afterwards; those
// that were written stay.
func TestUnmapPages(t *testing.T) {
	size := 4 * os.Getpagesize()
	content := bytes.Repeat([]byte{7}, size)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped := func(protection, kind int) []byte {
		b, err := syscall.Mmap(int(f.Fd()), 0, size, protection, kind)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Munmap(b) })
		return b
	}
	read := mapped(syscall.PROT_READ, syscall.MAP_SHARED)
	written := mapped(syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	written[0] = 8
	if err := syscall.Mprotect(written, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read, content) {
		t.Fatal("another content is mapped")
	}
	if resident(t, read) == "0" {
		missing(t, "0 kB of a page that was read are resident")
	}
	unmapPages(path)
	UnmapProgram() // of which the next line is read again
	if r := resident(t, read); r != "0" {
		t.Errorf("%s kB are resident", r)
	}
	if !bytes.Equal(read, content) {
		t.Error("the content has changed")
	}
	if written[0] != 8 {
		t.Error("a written page is lost")
	}
}

// Mappings that were written, that can be written, or that an emulator lists by its own
// addresses are left out.
func TestUnwritten(t *testing.T) {
	const (
		text    = "00010000-00881000 r-xp 00000000 fe:00 17       /usr/bin/edge\n"
		data    = "00f90000-00fed000 rw-p 00f80000 fe:00 17       /usr/bin/edge\n"
		other   = "7f0000000000-7f0000001000 r--p 00000000 fe:00 18 /usr/lib/libc.so\n"
		maps    = text + data + other
		clean   = "Rss: 8 kB\nAnonymous:             0 kB\n"
		written = "Rss: 8 kB\nAnonymous:             4 kB\n"
	)
	moved := strings.Replace(strings.Replace(text, "00010000-00881000", "00011000-00882000", 1), "r-xp", "r--p", 1)
	for _, tc := range []struct {
		smaps string
		want  []mapping
	}{
		{text + clean + data + clean + other + clean, []mapping{{0x10000, 0x881000}}},
		{text + written + data + clean + other + clean, nil},
		{moved + clean + other + clean, nil},
		{"", nil},
	} {
		if got := unwritten("/usr/bin/edge", maps, strings.NewReader(tc.smaps)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %x, want %x", tc.smaps, got, tc.want)
		}
	}
}

// missing skips the test on a kernel without the figures that it needs; in CI it fails.
func missing(t *testing.T, why string) {
	t.Helper()
	why = "needs a kernel whose /proc/self/smaps has the resident pages of each mapping: " + why
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// resident returns how many kB of the mapping b are resident, by smaps.
func resident(t *testing.T, b []byte) string {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		missing(t, err.Error())
	}
	_, rest, found := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(unsafe.Pointer(&b[0]))))
	if !found {
		missing(t, "a mapping is not listed")
	}
	_, rest, _ = strings.Cut(rest, "Rss:")
	return strings.Fields(rest)[0]
}

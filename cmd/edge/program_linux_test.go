package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCleanMappings(t *testing.T) {
	const smaps = `00400000-008e2000 r-xp 00000000 fe:00 10257083                           /usr/bin/edge (deleted)
Size:               5000 kB
Rss:                2688 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me 
008e2000-00dc3000 r--p 004e2000 fe:00 10257083                           /usr/bin/edge
Anonymous:             0 kB
THPeligible:    0
00dc3000-00dc4000 r--p 004e2000 fe:00 10257083                           /usr/bin/edge
Anonymous:             4 kB
00dc4000-00e2c000 rw-p 009c3000 fe:00 10257083                           /usr/bin/edge
Anonymous:             0 kB
eb839000000-eb839c00000 r--p 00000000 00:00 0 
Anonymous:             0 kB
7f2696316000-7f2696396000 r--s 00000000 fe:00 10257090                   /var/lib/edge/edge.db
Anonymous:             0 kB
7f2bc0728000-7f2bc0768000 ---p 00000000 fe:00 10257083                   /usr/bin/edge
Anonymous:             0 kB
7fffffa6a000-7fffffa8b000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x8e2000}, {0x8e2000, 0xdc3000}}
	if got := cleanMappings(strings.NewReader(smaps)); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// The program goes on without its pages; they come back one by one.
func TestLetProgramGo(t *testing.T) {
	before := processMemory("RssFile")
	letProgramGo()
	if after := processMemory("RssFile"); after >= before && len(emulator) == 0 {
		t.Errorf("%d bytes of files are resident, %d before", after, before)
	}
}

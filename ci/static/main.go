// Command static fails unless each named file is a statically linked Linux program,
// not larger than BYTES if its argument is FILE=BYTES. It prints class, machine and
// size of each.
package main

import (
	"debug/elf"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func main() {
	for _, arg := range os.Args[1:] {
		path, limit, _ := strings.Cut(arg, "=")
		if err := check(path, limit); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func check(path, limit string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("is dynamically linked (%v)", p.Type)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %v, %v, static, %d bytes\n", path, f.Class, f.Machine, info.Size())
	if limit == "" {
		return nil
	}
	if most, err := strconv.ParseInt(limit, 10, 64); err != nil || info.Size() > most {
		return fmt.Errorf("has %d bytes; want at most %s", info.Size(), limit)
	}
	return nil
}

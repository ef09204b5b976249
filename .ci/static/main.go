// Command static fails unless every file named is a statically linked Linux
// program, and prints what each was built for.
package main

import (
	"debug/elf"
	"fmt"
	"os"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func check(path string) error {
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
	fmt.Printf("%s: %v, %v, static, %.1f MiB\n", path, f.Class, f.Machine, float64(info.Size())/(1<<20))
	return nil
}

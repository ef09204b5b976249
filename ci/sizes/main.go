// Command sizes prints the size that each module adds to a Go program built with
// symbols, in kB: the module's code and data by the symbol table, and a share of the
// rest of the file (line tables, types, strings) in proportion to its code.
package main

import (
	"cmp"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sizes PROGRAM")
		os.Exit(2)
	}
	if err := list(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// module is the size of a module, in bytes.
type module struct {
	name       string
	code, data float64
}

func list(file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("%s: %w: build it without -s", file, err)
	}
	var stored float64 // size of the loaded sections in the file, without symbols
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS {
			stored += float64(s.Size)
		}
	}
	modules := map[string]*module{}
	var code, data float64
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || int(s.Section) >= len(f.Sections) || f.Sections[s.Section].Type == elf.SHT_NOBITS {
			continue
		}
		in := f.Sections[s.Section]
		pkg := packageOf(s.Name)
		if in.Flags&elf.SHF_ALLOC == 0 || pkg == "" {
			continue
		}
		name := moduleOf(pkg, info)
		m := modules[name]
		if m == nil {
			m = &module{name: name}
			modules[name] = m
		}
		if in.Flags&elf.SHF_EXECINSTR != 0 {
			m.code += float64(s.Size)
			code += float64(s.Size)
		} else {
			m.data += float64(s.Size)
			data += float64(s.Size)
		}
	}
	share := (stored - code - data) / code
	all := make([]*module, 0, len(modules))
	for _, m := range modules {
		all = append(all, m)
	}
	size := func(m *module) float64 { return m.code*(1+share) + m.data }
	slices.SortFunc(all, func(a, b *module) int { return cmp.Compare(size(b), size(a)) })
	fmt.Printf("| module | kB | code | data |\n| --- | --- | --- | --- |\n")
	for _, m := range all {
		fmt.Printf("| %s | %.0f | %.0f | %.0f |\n", m.name, size(m)/1e3, m.code/1e3, m.data/1e3)
	}
	return nil
}

// packageOf returns the package of a symbol, "" for symbols without a package.
func packageOf(symbol string) string {
	symbol, _, _ = strings.Cut(symbol, "[") // drops the type arguments of a generic function
	if strings.HasPrefix(symbol, "go:") || strings.HasPrefix(symbol, "type:") {
		return ""
	}
	dir, last := path.Split(symbol)
	last, _, found := strings.Cut(last, ".")
	if !found {
		return ""
	}
	return strings.ReplaceAll(dir+last, "%2e", ".")
}

// moduleOf returns the module of a package; for a package of the standard library its
// first folder, for a package of the main module the package itself.
func moduleOf(pkg string, info *buildinfo.BuildInfo) string {
	for _, m := range info.Deps {
		if pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/") {
			return m.Path
		}
	}
	if pkg == "main" {
		return info.Path
	}
	if strings.HasPrefix(pkg, info.Main.Path+"/") {
		return pkg
	}
	top, _, _ := strings.Cut(pkg, "/")
	return top
}

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// module is a Go module that a binary contains.
type module struct{ Path, Version, Sum, Dir string }

// modules returns the modules of a binary, from its build information.
func modules(binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	var all []module
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		all = append(all, module{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	return all, nil
}

// locate sets Dir of each module to its sources in Go's module cache.
func (r *release) locate(all []module) error {
	args := []string{"mod", "download", "-json"}
	for _, m := range all {
		args = append(args, m.Path+"@"+m.Version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var m module
		if err := d.Decode(&m); err != nil {
			return err
		}
		for i := range all {
			if all[i].Path == m.Path && all[i].Version == m.Version {
				all[i].Dir = m.Dir
			}
		}
	}
	return nil
}

// all returns the modules of all binaries, each once, sorted by path, with sources.
func (r *release) all() ([]module, error) {
	var all []module
	for _, a := range r.arches {
		of, err := modules(r.binary(a))
		if err != nil {
			return nil, err
		}
		for _, m := range of {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, r.locate(all)
}

// terms returns the licence files of a module.
func (m module) terms() (paths []string, err error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("sources of %s: %w", m.Path, err)
	}
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		for _, word := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "EDL-V10", "EPL-V20", "PATENTS"} {
			if strings.HasPrefix(upper, word) && !e.IsDir() && !strings.HasSuffix(upper, ".GO") {
				paths = append(paths, filepath.Join(m.Dir, e.Name()))
				break
			}
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s %s: no licence found in %s", m.Path, m.Version, m.Dir)
	}
	return paths, nil
}

// licences writes the licences of all modules in the binaries, Go's standard library
// first.
func (r *release) licences() error {
	all, err := r.all()
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	all = append([]module{{Path: "Go's standard library", Version: runtime.Version(), Dir: strings.TrimSpace(string(goroot))}}, all...)
	var b strings.Builder
	own := "No licence is stated for edge itself."
	if r.license != "" {
		own = "edge itself: " + r.license
	}
	b.WriteString(own + "\n\nedge contains the works below, each under its own terms.\n")
	for _, m := range all {
		paths, err := m.terms()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 78), m.Path, m.Version)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s\n%s\n\n%s\n", strings.Repeat("-", 78), filepath.Base(path), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
		}
	}
	return os.WriteFile(r.notices, []byte(b.String()), 0o644)
}

// identifiers returns the SPDX names of those licences of a module that licensecheck
// recognises.
func (m module) identifiers() (names []string, err error) {
	paths, err := m.terms()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !slices.Contains(names, match.ID) && !match.IsURL {
				names = append(names, match.ID)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// materials writes a bill of materials of each binary, in the format CycloneDX.
func (r *release) materials() error {
	all, err := r.all()
	if err != nil {
		return err
	}
	for _, a := range r.arches {
		content, err := os.ReadFile(r.binary(a))
		if err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(r.binary(a))
		if err != nil {
			return err
		}
		bom := cdx.NewBOM()
		self := cdx.Component{
			BOMRef: "edge", Type: cdx.ComponentTypeApplication, Name: "edge", Version: r.version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(content))}},
		}
		if r.license != "" {
			self.Licenses = &cdx.Licenses{{Expression: r.license}}
		}
		bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &self}
		parts := []cdx.Component{{
			BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
			PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		}}
		needs := []string{"go"}
		of, err := modules(r.binary(a))
		if err != nil {
			return err
		}
		for _, m := range of {
			at := slices.IndexFunc(all, func(o module) bool { return o.Path == m.Path && o.Version == m.Version })
			ids, err := all[at].identifiers()
			if err != nil {
				return err
			}
			c := cdx.Component{
				BOMRef: m.Path, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
			}
			licences := cdx.Licenses{}
			for _, id := range ids {
				licences = append(licences, cdx.LicenseChoice{License: &cdx.License{ID: id}})
			}
			if len(licences) > 0 {
				c.Licenses = &licences
			}
			parts, needs = append(parts, c), append(needs, m.Path)
		}
		bom.Components = &parts
		bom.Dependencies = &[]cdx.Dependency{{Ref: "edge", Dependencies: &needs}}
		out, err := os.Create(filepath.Join(r.dist, "edge_"+a.name+".cdx.json"))
		if err != nil {
			return err
		}
		if err := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	return nil
}

// checksums writes the checksums of all files, for sha256sum -c.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(b.String()), 0o644)
}

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/ipk"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// format is a package format.
type format struct {
	name    string
	state   string // path of the state file in the sample configuration
	service string // service file in configs
	target  string // installed path of the service file
	mode    os.FileMode
	scripts nfpm.Scripts // in scripts/
}

var formats = []format{
	{"deb", "/var/lib/edge/edge.db", "edge.service", "/usr/lib/systemd/system/edge.service", 0o644,
		nfpm.Scripts{PostInstall: "deb.postinst", PreRemove: "deb.prerm", PostRemove: "deb.postrm"}},
	{"rpm", "/var/lib/edge/edge.db", "edge.service", "/usr/lib/systemd/system/edge.service", 0o644,
		nfpm.Scripts{PostInstall: "rpm.post", PreRemove: "rpm.preun", PostRemove: "rpm.postun"}},
	{"apk", "/var/lib/edge/edge.db", "edge.openrc", "/etc/init.d/edge", 0o755,
		nfpm.Scripts{PreInstall: "apk.pre-install", PostInstall: "apk.post-install", PreRemove: "apk.pre-deinstall"}},
	{"ipk", "/etc/edge/edge.db", "edge.procd", "/etc/init.d/edge", 0o755,
		nfpm.Scripts{PostInstall: "ipk.postinst", PreRemove: "ipk.prerm"}},
}

// packages makes a package of every format for every architecture.
func (r *release) packages() error {
	work, err := os.MkdirTemp("", "edge-packaging-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, f := range formats {
		for _, a := range r.arches {
			if err := r.pack(f, a, filepath.Join(work, f.name+"-"+a.name)); err != nil {
				return fmt.Errorf("%s for %s: %w", f.name, a.name, err)
			}
		}
	}
	return nil
}

func (r *release) pack(f format, a arch, work string) error {
	if err := os.Mkdir(work, 0o755); err != nil {
		return err
	}
	config, err := r.sample(f, work)
	if err != nil {
		return err
	}
	contents, err := r.contents(f, a, work)
	if err != nil {
		return err
	}
	contents = append(contents, &files.Content{
		Source: config, Destination: "/etc/edge/edge.yaml", Type: files.TypeConfigNoReplace, FileInfo: &files.ContentFileInfo{Mode: 0o644},
	})
	version := r.version
	if f.name == "apk" { // its versions cannot contain a commit
		version, _, _ = strings.Cut(version, "+")
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "edge", Arch: a.nfpm, Platform: "linux", Version: version, VersionSchema: "semver", Release: "1",
		Section: "misc", Priority: "optional", Maintainer: r.maintainer, Homepage: r.homepage, License: r.license,
		Description: "online classification of MQTT sensor streams\n" +
			"edge subscribes to MQTT feature streams, learns to classify them with a sparse\n" +
			"multi-class Gaussian process, and publishes the class probabilities. Its state\n" +
			"survives restarts, upgrades and power cuts in one file.",
		MTime: r.time,
		Overridables: nfpm.Overridables{
			Contents: contents, Umask: 0o022,
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: "Online classification of MQTT sensor streams", Compression: "gzip"},
			Deb: nfpm.Deb{Compression: "xz"},
		},
	})
	for _, script := range []struct {
		name string
		to   *string
	}{
		{f.scripts.PreInstall, &info.Scripts.PreInstall}, {f.scripts.PostInstall, &info.Scripts.PostInstall},
		{f.scripts.PreRemove, &info.Scripts.PreRemove}, {f.scripts.PostRemove, &info.Scripts.PostRemove},
	} {
		if script.name == "" {
			continue
		}
		if *script.to, err = r.script(script.name, work); err != nil {
			return err
		}
	}
	if f.name == "deb" {
		info.Recommends = []string{"ca-certificates"}
		info.Suggests = []string{"mosquitto"}
	}
	if err := nfpm.PrepareForPackager(info, f.name); err != nil {
		return err
	}
	packager, err := nfpm.Get(f.name)
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := packager.Package(info, &content); err != nil {
		return err
	}
	path := filepath.Join(r.dist, packager.ConventionalFileName(info))
	if a.name == "armv6" && (f.name == "deb" || f.name == "ipk") { // they name both armv6 and armv7 armhf
		path = strings.TrimSuffix(path, "."+f.name) + "_armv6." + f.name
	}
	return os.WriteFile(path, content.Bytes(), 0o644)
}

// script copies a script of a package, and sets the release's time on the copy, since
// apk stores it.
func (r *release) script(name, work string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "packaging", "scripts", name))
	if err != nil {
		return "", err
	}
	out := filepath.Join(work, name)
	if err := os.WriteFile(out, text, 0o755); err != nil {
		return "", err
	}
	return out, os.Chtimes(out, r.time, r.time)
}

// sample writes the sample configuration with the format's path of the state file,
// and returns its path.
func (r *release) sample(f format, work string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "configs", "edge.yaml"))
	if err != nil {
		return "", err
	}
	const path = "  path: edge.db\n"
	if strings.Count(string(text), path) != 1 {
		return "", fmt.Errorf("configs/edge.yaml: want %q once", path)
	}
	out := filepath.Join(work, "edge.yaml")
	return out, os.WriteFile(out, []byte(strings.Replace(string(text), path, "  path: "+f.state+"\n", 1)), 0o644)
}

// contents returns the files of a package, except its configuration.
func (r *release) contents(f format, a arch, work string) (files.Contents, error) {
	file := func(source, destination string, mode os.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: destination, FileInfo: &files.ContentFileInfo{Mode: mode}}
	}
	all := files.Contents{
		file(r.binary(a), "/usr/bin/edge", 0o755),
		file(filepath.Join(r.root, "configs", f.service), f.target, f.mode),
		{Destination: "/etc/edge", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755}},
	}
	if f.name == "ipk" { // a router has room for neither manuals nor completions
		return all, nil
	}
	for shell, target := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/edge", "zsh": "/usr/share/zsh/vendor-completions/_edge", "fish": "/usr/share/fish/vendor_completions.d/edge.fish",
	} {
		source := filepath.Join(r.bin, "completion", "edge."+shell)
		if _, err := os.Stat(source); err == nil {
			all = append(all, file(source, target, 0o644))
		}
	}
	pages, err := filepath.Glob(filepath.Join(r.bin, "man", "*.[1-9]"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		zipped := filepath.Join(work, filepath.Base(page)+".gz")
		if err := compress(page, zipped); err != nil {
			return nil, err
		}
		section := strings.TrimPrefix(filepath.Ext(page), ".")
		all = append(all, file(zipped, "/usr/share/man/man"+section+"/"+filepath.Base(zipped), 0o644))
	}
	documents, err := documents(r.root)
	if err != nil {
		return nil, err
	}
	for _, path := range documents {
		all = append(all, file(filepath.Join(r.root, path), "/usr/share/doc/edge/"+path, 0o644))
	}
	if f.name != "deb" {
		return append(all, file(r.notices, "/usr/share/doc/edge/THIRD_PARTY.txt", 0o644)), nil
	}
	changes := filepath.Join(work, "changelog")
	text := fmt.Sprintf("edge (%s) unstable; urgency=medium\n\n  * See the commits of the sources.\n\n -- %s  %s\n",
		debianVersion(r.version), r.maintainer, r.time.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	if err := os.WriteFile(changes, []byte(text), 0o644); err != nil {
		return nil, err
	}
	if err := compress(changes, changes+".gz"); err != nil {
		return nil, err
	}
	return append(all,
		file(changes+".gz", "/usr/share/doc/edge/changelog.Debian.gz", 0o644),
		file(r.notices, "/usr/share/doc/edge/copyright", 0o644),
		file(filepath.Join(r.root, "packaging", "scripts", "lintian-overrides"), "/usr/share/lintian/overrides/edge", 0o644),
	), nil
}

// debianVersion returns a semantic version in nfpm's form for deb packages.
func debianVersion(v string) string {
	return strings.Replace(v, "-", "~", 1) + "-1"
}

// compress writes a file as reproducible gzip.
func compress(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

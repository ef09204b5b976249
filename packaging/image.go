package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// containerUser is the user and group ID of the program in a container.
const containerUser = 65532

// image makes a container image for every architecture: a single layer with the
// program, a user and a folder for the state. It writes them as an OCI layout of all
// images, and each as a file for `docker load`.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	tag, err := name.NewTag("edge:" + imageTag(r.version))
	if err != nil {
		return err
	}
	for _, a := range r.arches {
		img, err := r.imageFor(a)
		if err != nil {
			return fmt.Errorf("image for %s: %w", a.name, err)
		}
		if err := tarball.WriteToFile(filepath.Join(r.dist, "edge_image_"+a.name+".tar"), tag, img); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: a.platform, Variant: a.variant},
		}})
	}
	path := filepath.Join(r.dist, "edge_image_oci")
	if _, err := layout.Write(path, index); err != nil {
		return err
	}
	if err := r.archive(path, path+".tar"); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// imageTag returns a version as a tag of an image, which must not contain +.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "-") }

func (r *release) imageFor(a arch) (v1.Image, error) {
	content, err := r.layer(a)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "edge packaging", Created: v1.Time{Time: r.time}}})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant, file.Created = "linux", a.platform, a.variant, v1.Time{Time: r.time}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/edge"}, Cmd: []string{"run", "-c", "/etc/edge/edge.yaml"},
		User: fmt.Sprintf("%d:%d", containerUser, containerUser), WorkingDir: "/var/lib/edge", StopSignal: "SIGTERM",
		Env:          []string{"PATH=/usr/bin", "HOME=/var/lib/edge"},
		Volumes:      map[string]struct{}{"/var/lib/edge": {}},
		ExposedPorts: map[string]struct{}{"9107/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "edge", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.description": "online classification of MQTT sensor streams",
		},
	}
	for name, value := range map[string]string{"url": r.homepage, "licenses": r.license} {
		if value != "" {
			file.Config.Labels["org.opencontainers.image."+name] = value
		}
	}
	return mutate.ConfigFile(img, file)
}

// layer returns the single layer of an image as a tar archive.
func (r *release) layer(a arch) ([]byte, error) {
	program, err := os.ReadFile(r.binary(a))
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(r.notices)
	if err != nil {
		return nil, err
	}
	sample, err := os.ReadFile(filepath.Join(r.root, "configs", "edge.yaml"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte // nil: a folder
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/edge/", 0o755, 0, nil},
		{"etc/edge/edge.yaml", 0o644, 0, sample},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nedge:x:%d:\n", containerUser)},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nedge:x:%d:%d:edge:/var/lib/edge:/sbin/nologin\n", containerUser, containerUser)},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/edge", 0o755, 0, program},
		{"usr/share/", 0o755, 0, nil},
		{"usr/share/doc/", 0o755, 0, nil},
		{"usr/share/doc/edge/", 0o755, 0, nil},
		{"usr/share/doc/edge/THIRD_PARTY.txt", 0o644, 0, notices},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{"var/lib/edge/", 0o700, containerUser, nil},
	} {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Typeflag: tar.TypeReg}
		if f.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := r.entry(w, h, f.content); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}

// entry writes a file or a folder into a reproducible tar archive.
func (r *release) entry(w *tar.Writer, h *tar.Header, content []byte) error {
	h.Size, h.ModTime, h.Format = int64(len(content)), r.time, tar.FormatPAX
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// archive writes a folder as a reproducible tar file.
func (r *release) archive(folder, to string) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Typeflag: tar.TypeReg}
		var content []byte
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = h.Name+"/", 0o755, tar.TypeDir
		} else if content, err = os.ReadFile(path); err != nil {
			return err
		}
		return r.entry(w, h, content)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

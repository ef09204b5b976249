// Command packaging makes the release files of edge: deb, rpm, apk and ipk packages,
// container images, bills of material, the licences of the linked modules, and
// checksums of all files. It needs the binaries, named edge_<arch>. The same binaries
// and the same time give the same bytes. It is a separate module, so that edge does
// not depend on its libraries.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release holds the inputs of a release and the folder of its results.
type release struct {
	version string    // semantic, without v
	time    time.Time // of every file in it
	root    string    // of edge's sources
	bin     string    // folder of the binaries
	dist    string    // folder of the results
	notices string    // file with the licences of the modules in the binaries
	arches  []arch    // of which there are binaries

	maintainer string // of the packages, as NAME <ADDRESS>
	homepage   string // "": the packages name no homepage
	license    string // of edge itself, an SPDX expression; "": the packages name no licence
}

// arch is an architecture that edge is built for, with its name in each kind of file.
type arch struct {
	name     string // of the binary
	nfpm     string // of the packages; nfpm translates it
	platform string // of the container image; "": no image
	variant  string
}

var allArches = []arch{
	{"amd64", "amd64", "amd64", ""},
	{"arm64", "arm64", "arm64", ""},
	{"armv7", "arm7", "arm", "v7"},
	{"armv6", "arm6", "arm", "v6"},
	{"riscv64", "riscv64", "riscv64", ""},
}

func main() {
	log.SetFlags(0)
	r := release{arches: allArches}
	flag.StringVar(&r.root, "root", "..", "`FOLDER` of edge's sources")
	flag.StringVar(&r.bin, "bin", "../dist/bin", "`FOLDER` of the binaries, edge_<arch>")
	flag.StringVar(&r.dist, "dist", "../dist/release", "`FOLDER` of the results")
	flag.Func("arch", "`NAMES` of architectures, with spaces between them (default all)", r.choose)
	flag.StringVar(&r.version, "version", "", "semantic `VERSION` (default the newest tag, or a version that contains the commit)")
	flag.StringVar(&r.maintainer, "maintainer", "unnamed <nobody@example.invalid>", "maintainer of the packages, `NAME <ADDRESS>`")
	flag.StringVar(&r.homepage, "homepage", "", "`URL` of the homepage in the packages (default none)")
	flag.StringVar(&r.license, "license", "", "licence of edge itself, an SPDX `EXPRESSION` (default: the packages state no licence)")
	flag.Parse()
	if err := r.make(); err != nil {
		log.Fatal("packaging: ", err)
	}
}

// choose limits the release to some architectures.
func (r *release) choose(names string) error {
	r.arches = nil
	for name := range strings.FieldsSeq(names) {
		i := slices.IndexFunc(allArches, func(a arch) bool { return a.name == name })
		if i < 0 {
			return fmt.Errorf("no architecture is called %q", name)
		}
		r.arches = append(r.arches, allArches[i])
	}
	if len(r.arches) == 0 {
		return errors.New("want at least one architecture")
	}
	return nil
}

func (r *release) make() error {
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	r.notices = filepath.Join(r.dist, "THIRD_PARTY.txt")
	for _, step := range []func() error{r.licences, r.materials, r.packages, r.image, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Printf("edge %s of %s in %s\n", r.version, r.time.Format(time.RFC3339), r.dist)
	return nil
}

// identify reads the version and the time from git; the environment variable
// SOURCE_DATE_EPOCH overrides the time.
func (r *release) identify() error {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		var err error
		if seconds, err = r.git("log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(s, 0).UTC()
	if r.version != "" {
		return nil
	}
	if tag, err := r.git("describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		r.version = strings.TrimPrefix(tag, "v")
		return nil
	}
	commit, err := r.git("rev-parse", "--short=12", "HEAD")
	r.version = "0.0.0-git" + r.time.Format("20060102150405") + "+" + commit
	return err
}

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// binary returns the path of the program for an architecture.
func (r *release) binary(a arch) string { return filepath.Join(r.bin, "edge_"+a.name) }

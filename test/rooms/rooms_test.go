package rooms

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// pkg is a package as `go list -json` prints it.
type pkg struct {
	ImportPath string
	Imports    []string
}

// packages lists the packages of the module below a folder.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "edge/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// layers are the packages of the program from below to above: a package imports
// only packages of lower layers. A package that is not named is of no layer.
var layers = [][]string{
	{"model", "model/dense"},
	{"online"},
	{"persist", "stream"},
	{"internal/exit", "internal/terminal", "internal/process", "internal/dataset"},
	{"internal/config"},
	{"internal/broker", "internal/report", "internal/statefile"},
	{"internal/eval", "internal/replay", "internal/doctor", "internal/inspect", "internal/top", "internal/web"},
	{"internal/daemon"},
	{"internal/demo"},
	{"cmd/internal/cli"},
	{"cmd/edge", "cmd/edge-lab"},
}

// Imports point one way.
func TestImportsPointDown(t *testing.T) {
	layer := map[string]int{}
	for i, l := range layers {
		for _, p := range l {
			layer["edge/"+p] = i
		}
	}
	seen := 0
	for _, p := range packages(t) {
		from, ok := layer[p.ImportPath]
		if !ok {
			continue
		}
		seen++
		for _, q := range p.Imports {
			to, ok := layer[q]
			if ok && to >= from && !(p.ImportPath == "edge/model" && q == "edge/model/dense") {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, q)
			}
		}
	}
	if seen != len(layer) {
		t.Errorf("%d packages of %d were found", seen, len(layer))
	}
}

// homes are the packages that may import a third-party library.
var homes = map[string][]string{
	"github.com/spf13/cobra":                {"cmd/edge", "cmd/edge-lab", "cmd/internal/cli"},
	"github.com/spf13/pflag":                {"cmd/internal/cli"},
	"github.com/eclipse/paho.mqtt.golang":   {"stream", "stream/mqtt", "internal/broker"},
	"github.com/mochi-mqtt/server":          {"internal/broker", "internal/broker/brokertest"},
	"go.etcd.io/bbolt":                      {"persist"},
	"charm.land/bubbletea":                  {"internal/top"},
	"go.yaml.in/yaml":                       {"internal/config"},
	"gonum.org/v1/plot":                     {"cmd/edge-lab"},
	"github.com/coreos/go-systemd":          {"internal/daemon"},
	"github.com/fsnotify/fsnotify":          {"internal/daemon"},
	"github.com/KimMachineGun/automemlimit": {"internal/daemon"},
}

// Each library has one home.
func TestLibrariesHaveHomes(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "edge/")
		if strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "packaging") || strings.HasPrefix(name, "ci/") {
			continue
		}
		for _, q := range p.Imports {
			for library, home := range homes {
				if (q == library || strings.HasPrefix(q, library+"/")) && !slices.Contains(home, name) {
					t.Errorf("%s imports %s; its home is %s", p.ImportPath, q, strings.Join(home, ", "))
				}
			}
		}
	}
}

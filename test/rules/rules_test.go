// Package rules holds the tree to the rules of ARCHITECTURE.md: the direction of
// imports, the package of each library, the size of files, structs and functions, and durable names.
package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// layers are the packages of the program, the lowest first. A package imports
// packages of lower layers alone.
var layers = [][]string{
	{"model/dense", "online/wire", "stream/field", "configs", "internal/broker/embedded"},
	{"model", "online/natural"},
	{"online/sep", "online/mixture", "online/forest", "online/score", "online/drift", "online/active"},
	{"online/conformal", "online/fleet"},
	{"online"},
	{"online/train", "persist", "stream/topic", "stream/signal/feature", "stream/signal/formula"},
	{"stream/signal", "stream/mqtt"},
	{"stream/codec"},
	{"stream/membership", "stream/homeassistant"},
	{"stream"},
	{"internal/exit", "internal/terminal", "internal/process", "internal/timing", "internal/web/bounds"},
	{"internal/config", "internal/dataset/csvtext"},
	{"internal/dataset"},
	{"internal/broker", "internal/report", "internal/statefile", "internal/doctor/diagnosis"},
	{"internal/doctor/probe", "internal/report/htmlreport"},
	{"internal/eval", "internal/predict", "internal/replay", "internal/doctor", "internal/fleetctl", "internal/inspect", "internal/top", "internal/web", "internal/broker/brokertest"},
	{"internal/daemon", "internal/propose"},
	{"internal/demo", "cmd/internal/cli"},
	{"lab"},
	{"lab/labtest", "lab/ep", "lab/rep", "lab/tied", "lab/gfitc", "lab/vi", "lab/exact", "lab/offline", "lab/linear", "lab/federated"},
	{"lab/fullep", "lab/binary"},
	{"lab/studentt"},
	{"lab/compare"},
	{"lab/published", "lab/published/tprocess"},
	{"cmd/edge", "cmd/edge-lab"},
}

// libraries are the modules, and packages of the standard library, that a few
// packages of the program may import. "" permits all of them.
var libraries = map[string][]string{
	"net/http":                              {"internal/web", "stream/mqtt"}, // the latter for WebSockets
	"charm.land/bubbletea":                  {"internal/top"},
	"charm.land/lipgloss":                   {"internal/top"},
	"github.com/KimMachineGun/automemlimit": {"internal/daemon"},
	"github.com/alecthomas/participle":      {"stream/signal/formula"},
	"github.com/cespare/xxhash":             {"stream"},
	"github.com/charmbracelet/x":            {"internal/top"},
	"github.com/coreos/go-systemd":          {"internal/daemon"},
	"github.com/eclipse/paho.mqtt.golang":   {"stream/mqtt", "internal/broker", "internal/broker/brokertest"},
	"github.com/fsnotify/fsnotify":          {"internal/daemon"},
	"github.com/fxamacker/cbor":             {"stream", "stream/codec"},
	"github.com/gorilla/websocket":          {"stream/mqtt"},
	"github.com/influxdata/line-protocol":   {"stream/codec"},
	"github.com/klauspost/compress":         {"stream/codec"},
	"github.com/lmittmann/tint":             {"internal/terminal"},
	"github.com/mattn/go-isatty":            {"internal/terminal"},
	"github.com/mochi-mqtt/server":          {"internal/broker/embedded", "internal/broker/brokertest"},
	"github.com/spf13":                      {"cmd/edge", "cmd/edge-lab", "cmd/internal/cli"},
	"github.com/tidwall/gjson":              {""},
	"github.com/x448/float16":               {"stream/codec"},
	"go.etcd.io/bbolt":                      {"persist"},
	"go.yaml.in/yaml":                       {"internal/config"},
	"golang.org/x/net":                      {"stream/mqtt"},
	"golang.org/x/sys":                      {""},
	"golang.org/x/text":                     {"internal/dataset/csvtext"},
	"gonum.org/v1/gonum":                    {""},
	"gonum.org/v1/gonum/optimize":           {"lab"},
	"gonum.org/v1/plot":                     {"cmd/edge-lab"},
}

var root = filepath.Join("..", "..")

const (
	maxLines  = 500 // of a file
	maxFields = 20  // of a struct
	maxLength = 80  // lines of a function, unless its comment has a reason after "Long:"
)

func TestLayers(t *testing.T) {
	layer := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			layer[name] = i
		}
	}
	found := map[string]bool{}
	for _, p := range read(t, packages) {
		own, ok := layer[p.name()]
		if !ok {
			t.Errorf("%s has no layer: add it to the table", p.name())
		}
		found[p.name()] = true
		for _, i := range p.Imports {
			if name, inside := strings.CutPrefix(i, "edge/"); inside && layer[name] >= own {
				t.Errorf("%s imports %s, which is not of a lower layer", p.name(), name)
			}
		}
	}
	for name := range layer {
		if !found[name] {
			t.Errorf("%s has a layer and does not exist: take it out of the table", name)
		}
	}
}

// The table in ARCHITECTURE.md names each package of the program, but for those below lab. The
// names in a row after the first one are in its folder, if they are not whole.
func TestArchitectureNamesThePackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| package | content |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := map[string]bool{}
	for row := range strings.Lines(table) {
		folder := ""
		for i, name := range regexp.MustCompile("`[^`]+`").FindAllString(strings.Split(row, "|")[1], -1) {
			if name = strings.Trim(name, "`"); i == 0 {
				folder = path.Dir(name)
			}
			named[name], named[path.Join(folder, name)] = true, true
		}
	}
	for _, p := range read(t, packages) {
		if !named[p.name()] && !below(p.name(), "lab") {
			t.Errorf("the table does not name %s", p.name())
		}
	}
}

func TestStoreAndStreamAreIndependent(t *testing.T) {
	for _, p := range read(t, packages) {
		for _, pair := range [][2]string{{"persist", "edge/stream"}, {"stream", "edge/persist"}} {
			if below(p.name(), pair[0]) && slices.ContainsFunc(p.Imports, func(i string) bool { return below(i, pair[1]) }) {
				t.Errorf("%s imports %s", p.name(), pair[1])
			}
		}
	}
}

func TestLaboratoryIsNotOnTheDevice(t *testing.T) {
	for _, p := range read(t, packages) {
		if below(p.name(), "lab") || p.name() == "cmd/edge-lab" {
			continue
		}
		if slices.ContainsFunc(p.Imports, func(i string) bool { return below(i, "edge/lab") }) {
			t.Errorf("%s imports the laboratory, which is for cmd/edge-lab", p.name())
		}
	}
}

func TestLibraries(t *testing.T) {
	used := map[string]bool{} // library and user
	for _, p := range read(t, packages) {
		for _, i := range p.Imports {
			known := !strings.Contains(strings.Split(i, "/")[0], ".") // else the standard library or the program
			for library, users := range libraries {
				if !below(i, library) {
					continue
				}
				used[library], used[library+" "+p.name()] = true, true
				if known = true; users[0] != "" && !slices.Contains(users, p.name()) {
					t.Errorf("%s imports %s, which is for %s", p.name(), i, strings.Join(users, ", "))
				}
			}
			if !known {
				t.Errorf("%s imports %s, which has no package: add it to the table", p.name(), i)
			}
		}
	}
	for library, users := range libraries {
		for _, user := range users {
			if !used[strings.TrimSpace(library+" "+user)] {
				t.Errorf("%s does not import %s: take it out of the table", user, library)
			}
		}
	}
}

func TestFileSize(t *testing.T) {
	for _, s := range read(t, sources) {
		if n := s.set.File(s.file.Pos()).LineCount(); n > maxLines {
			t.Errorf("%s has %d lines, want %d at most", s.path, n, maxLines)
		}
	}
}

// Imports come in groups: the standard library, other modules, this program.
func TestImportGroups(t *testing.T) {
	for _, s := range read(t, sources) {
		for i, next := range s.file.Imports {
			if i == 0 {
				continue
			}
			before := s.file.Imports[i-1]
			apart := s.set.Position(next.Pos()).Line - s.set.Position(before.Pos()).Line
			if a, b := importGroup(before), importGroup(next); a > b || a < b && apart < 2 {
				t.Errorf("%s: %s is not in a group with its like: standard library, other modules, edge", s.set.Position(next.Pos()), next.Path.Value)
			}
		}
	}
}

// importGroup is the place of an import among the groups of a file.
func importGroup(i *ast.ImportSpec) int {
	switch first, _, _ := strings.Cut(strings.Trim(i.Path.Value, `"`), "/"); {
	case first == "edge":
		return 2
	case strings.Contains(first, "."):
		return 1
	}
	return 0
}

// A file gets its name by persist.Rename, and a folder by persist.MakeFolder, which make the
// name durable.
func TestRenames(t *testing.T) {
	for _, s := range read(t, sources) {
		path := filepath.ToSlash(s.path)
		if strings.HasSuffix(s.path, "_test.go") || below(path, "persist") || below(path, "packaging") || below(path, "test") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				want := map[string]string{"Rename": "Rename", "Mkdir": "MakeFolder", "MkdirAll": "MakeFolder"}[sel.Sel.Name]
				if of, ok := sel.X.(*ast.Ident); ok && of.Name == "os" && want != "" {
					t.Errorf("%s: os.%s, want persist.%s", s.set.Position(sel.Pos()), sel.Sel.Name, want)
				}
			}
			return true
		})
	}
}

func TestStructSize(t *testing.T) {
	for _, s := range read(t, sources) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if st, ok := n.(*ast.StructType); ok && st.Fields.NumFields() > maxFields {
				t.Errorf("%s: a struct of %d fields, want %d at most", s.set.Position(st.Pos()), st.Fields.NumFields(), maxFields)
			}
			return true
		})
	}
}

func TestFunctionSize(t *testing.T) {
	for _, s := range read(t, sources) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc != nil && strings.Contains(f.Doc.Text(), "Long: ") {
				continue
			}
			if n := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; n > maxLength {
				t.Errorf("%s: %s has %d lines, want %d at most, or a reason after Long: in its comment", s.set.Position(f.Pos()), f.Name.Name, n, maxLength)
			}
		}
	}
}

// The lists of tests that CI leaves out, under the race detector or an emulator, name tests that
// exist: a test with a new name would run there unnoticed, and for long.
func TestLeftOutTestsExist(t *testing.T) {
	var names []string
	for _, s := range read(t, sources) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasSuffix(s.path, "_test.go") {
				names = append(names, f.Name.Name)
			}
		}
	}
	for _, list := range []string{"ci/race.txt", "ci/emulate/long.txt", "ci/emulate/never.txt"} {
		text, err := os.ReadFile(filepath.Join(root, list))
		if err != nil {
			t.Fatal(err)
		}
		for pattern := range strings.Lines(string(text)) {
			re, err := regexp.Compile("^" + strings.TrimSpace(pattern))
			if err != nil {
				t.Errorf("%s: %v", list, err)
			} else if !slices.ContainsFunc(names, re.MatchString) {
				t.Errorf("%s: no test is called %s", list, strings.TrimSpace(pattern))
			}
		}
	}
}

// goPackage is a package as go list prints it.
type goPackage struct {
	ImportPath string
	Imports    []string
}

func (p *goPackage) name() string { return strings.TrimPrefix(p.ImportPath, "edge/") }

// read returns the result of packages or sources.
func read[T any](t *testing.T, find func() ([]T, error)) []T {
	t.Helper()
	list, err := find()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("go is not installed")
	} else if err != nil {
		t.Fatal(err)
	}
	return list
}

// packages are those of the program. The tests and the tools of ci have no rules for
// their imports.
var packages = sync.OnceValues(func() (list []goPackage, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		if !below(p.name(), "test") && !below(p.name(), "ci") {
			list = append(list, p)
		}
	}
})

// below reports whether an import path or a folder is another one or in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// source is a Go file of the tree.
type source struct {
	path string
	set  *token.FileSet
	file *ast.File
}

// sources are all Go files, tests included.
var sources = sync.OnceValues(func() (list []source, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "dist" || e.Name() == "testdata" || e.Name() == ".git") {
			return filepath.SkipDir
		}
		if e.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		s := source{set: token.NewFileSet()}
		if s.path, err = filepath.Rel(root, path); err != nil {
			return err
		}
		s.file, err = parser.ParseFile(s.set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		list = append(list, s)
		return err
	})
	return list, err
})

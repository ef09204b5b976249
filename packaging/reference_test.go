package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = ".."

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources returns the text of each Go file below the folders of the program.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"cmd", "configs", "internal", "model", "online", "persist", "stream", "test"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" {
				return err
			}
			text, err := os.ReadFile(name)
			all[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestConfigurationReference checks that the reference lists every key of the
// configuration's schema.
func TestConfigurationReference(t *testing.T) {
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(read(t, "configs/edge.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	text := read(t, "docs/reference/configuration.md")
	var check func(key string, properties map[string]any)
	check = func(key string, properties map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if !regexp.MustCompile("[`.]" + name + "[`.]").MatchString(text) {
				t.Errorf("docs/reference/configuration.md lacks %s%s", key, name)
			}
			of, _ := properties[name].(map[string]any)
			for _, below := range []string{"items", "additionalProperties"} {
				if under, ok := of[below].(map[string]any); ok {
					of = under
				}
			}
			if nested, ok := of["properties"].(map[string]any); ok {
				check(key+name+".", nested)
			}
		}
	}
	check("", schema.Properties)
}

// TestMetricsReference checks that the program serves every metric in the
// reference, and that the reference lists every metric of the dashboard.
func TestMetricsReference(t *testing.T) {
	text := read(t, "docs/reference/metrics.md")
	dashboard := read(t, "configs/grafana.json")
	name := regexp.MustCompile(`\b(edge|go|process)_[a-z_]+[a-z]`)
	known := map[string]bool{}
	for _, metric := range name.FindAllString(read(t, "internal/web/testdata/metrics.txt"), -1) { // which a test of internal/web compares
		known[metric] = true
	}
	for _, metric := range name.FindAllString(text, -1) {
		if !known[metric] {
			t.Errorf("docs/reference/metrics.md lists %s, which the program does not serve", metric)
		}
	}
	for _, metric := range name.FindAllString(dashboard, -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(metric, "_bucket"), "_sum"), "_count")
		if !strings.Contains(text, "`"+base+"`") {
			t.Errorf("docs/reference/metrics.md lacks %s, which configs/grafana.json shows", base)
		}
	}
}

// TestNamedTests checks that each test that a document names exists.
func TestNamedTests(t *testing.T) {
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((Test|Fuzz)[A-Z]\w+)\(`)
	for _, source := range sources(t) {
		for _, m := range function.FindAllStringSubmatch(source, -1) {
			declared[m[1]] = true
		}
	}
	all, err := documents(repository)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((Test|Fuzz)[A-Z]\\w+)`")
	for _, doc := range all {
		if path.Ext(doc) != ".md" || doc == "CHANGELOG.md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(read(t, doc), -1) {
			if !declared[m[1]] {
				t.Errorf("%s names %s, which no package declares", doc, m[1])
			}
		}
	}
}

// TestNamedCommands checks that each test and benchmark that a document runs with
// go test exists: every alternative of -run and -bench names one.
func TestNamedCommands(t *testing.T) {
	declared := map[string][]string{}
	function := regexp.MustCompile(`(?m)^func ((Test|Fuzz|Benchmark)[A-Z]\w+)\(`)
	for _, source := range sources(t) {
		for _, m := range function.FindAllStringSubmatch(source, -1) {
			option := map[bool]string{false: "run", true: "bench"}[m[2] == "Benchmark"]
			declared[option] = append(declared[option], m[1])
		}
	}
	all, err := documents(repository)
	if err != nil {
		t.Fatal(err)
	}
	options := regexp.MustCompile(`-(run|bench)[ \n]+('[^']+'|[^ \n'` + "`" + `]+)`)
	alternatives := regexp.MustCompile(`(\([^)]*\)|[^|(])+`)
	for _, doc := range all {
		if path.Ext(doc) != ".md" || doc == "CHANGELOG.md" {
			continue
		}
		for _, m := range options.FindAllStringSubmatch(read(t, doc), -1) {
			pattern, _, _ := strings.Cut(strings.ReplaceAll(strings.Trim(m[2], "'"), `\|`, "|"), "/")
			if pattern == "^$" || pattern == "none" || m[1] == "bench" && pattern == "." {
				continue
			}
			for _, alternative := range alternatives.FindAllString(pattern, -1) {
				is, err := regexp.Compile(alternative)
				if err != nil || !slices.ContainsFunc(declared[m[1]], is.MatchString) {
					t.Errorf("%s runs -%s %s: no package declares %s (%v)", doc, m[1], m[2], alternative, err)
				}
			}
		}
	}
}

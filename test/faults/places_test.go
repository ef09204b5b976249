//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// failpoint is a place in the program where a test lets it panic, fail or wait.
// The sources contain no failpoints: edgeWithFailpoints adds them for the tests.
type failpoint struct {
	name string
	root string // folder, itself or below which one file matches
	line string // regular expression that matches once, at the statement after the failpoint
	fail string // statement that returns err; "": no error is possible here
	when string // condition, which may use groups of line; "": always
}

// failpoints are between the steps that a sample passes: journal, commit,
// acknowledgement, learning, snapshot, checkpoint, truncation, rename.
var failpoints = []failpoint{
	{"before the journal write", "persist", `\tseq = d\.ledger\.last \+ 1`, "return 0, err", ""},
	{"after the journal write", "persist", `\td\.ledger\.last = seq`, "return 0, err", ""},
	{"before the commit", "persist", `\t\tds\.putLedgers\(\)`, "return err", ""},
	{"after the commit", "persist", `\tfor _, d := range ds\.list \{\n\t\td\.apply\(\)`, "", ""},
	{"before the acknowledgement", "stream", `\tfor _, it := range g\.items \{\n\t\tit\.msg\.Ack\(\)`, "", ""},
	{"after the acknowledgement", "stream", `\tfor _, f := range g\.\w+ \{\n\t\tf\(\)`, "", ""},
	{"before learning", "online", `\t\tout := lp\.learner\.Add\(&r\.Event\)`, "", ""},
	{"after learning", "online", `\t\tlp\.seq = r\.Seq`, "", ""},
	{"after the snapshot", "online", `\tif idle \|\| now\.Sub\(lp\.reported\)`, "", ""},
	{"before the checkpoint", "online", `\terr := lp\.opts\.Checkpointer\.Checkpoint\(`, "", ""},
	{"before the truncation", "persist", `\t\tif d\.slots\[kept\]\.generation > 0 \{`, "return err", ""},
	{"after the truncation", "persist", `\t\td\.slots\[1-kept\] = slot\{c\.generation, seq\}`, "return err", ""},
	{"after the checkpoint", "online", `\tlp\.checkpoints\.twice = lp\.checkpoints\.saved == lp\.seq`, "", ""},
	{"before the rename", "persist", `\terr = s\.opts\.Fault\("rename"\)`, "return err", ""},
	{"after the rename", "persist", `\tif s\.db != nil \{`, "", ""},
}

// inTheLearner are failpoints that a learner reaches again with the same samples.
var inTheLearner = []failpoint{
	{"in a step", "online", `\tif err := (\w+)\.sweeps\(n, points\); err != nil`, "return err", "${1}.view.N == 32"},
	{"over a sample", "online", `\tnovelty, weighs, after := l\.answer\(ev, k\)`, "", "failpoint.Poisonous(ev.X[0])"},
}

// put adds the failpoint to the sources, which it reads as it needs them.
func (p *failpoint) put(t *testing.T, root string, sources map[string]string) {
	t.Helper()
	line, found := regexp.MustCompile(`(?m)^`+p.line), 0
	err := filepath.WalkDir(filepath.Join(root, p.root), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, ok := sources[path]
		if !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			source = string(data)
		}
		for _, at := range line.FindAllStringSubmatchIndex(source, -1) {
			found++
			call := fmt.Sprintf("failpoint.At(%q)", p.name)
			if p.fail != "" {
				call = fmt.Sprintf("if err := %s; err != nil { %s }", call, p.fail)
			}
			if p.when != "" {
				call = fmt.Sprintf("if %s { %s }", line.ExpandString(nil, p.when, source, at), call)
			}
			sources[path] = source[:at[0]] + call + "\n" + source[at[0]:]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != 1 {
		t.Fatalf("failpoint %s: %d lines below %s match %q, want one", p.name, found, p.root, p.line)
	}
}

// sourcesWithFailpoints returns the folder of the sources, and by path those that have
// failpoints, with these.
func sourcesWithFailpoints(t *testing.T) (root string, sources map[string]string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sources = map[string]string{}
	for _, p := range slices.Concat(failpoints, inTheLearner) {
		p.put(t, root, sources)
	}
	return root, sources
}

// Each failpoint has its place in the sources: whoever changes the line of one sees it
// here, before the long tests.
func TestFailpointsHaveTheirPlaces(t *testing.T) {
	if _, sources := sourcesWithFailpoints(t); len(sources) == 0 {
		t.Error("no source has a failpoint")
	}
}

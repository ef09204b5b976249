package main

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"edge/configs"
)

var manFolder = flag.String("man", "", "write the manual pages into this folder")

// writeManual writes a page for each command, edge(1), edge-run(1) and so on,
// and edge.yaml(5) about the configuration.
func writeManual(folder string, date time.Time, version string) error {
	root := newRoot()
	root.DisableAutoGenTag = true // of the day
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Long = markdown(cmd.Long)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = markdown(f.Usage) })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	header := doc.GenManHeader{Title: "EDGE", Section: "1", Date: &date, Source: version, Manual: "edge"}
	if err := doc.GenManTree(root, &header, folder); err != nil {
		return err
	}
	sample, err := configs.Sample()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("% \"EDGE.YAML\" \"5\" \"" + date.Format("Jan 2006") + "\" \"" + version + "\" \"edge\"\n\n")
	b.WriteString("# NAME\n\nedge.yaml - configuration of edge\n\n# DESCRIPTION\n\n")
	b.WriteString("The file that **edge run**, **edge check** and **edge doctor** read, with every key and its default. " +
		"Unknown keys are errors. **edge config sample** prints the same; **edge config schema** prints a schema for editors.\n\n```\n")
	b.Write(sample)
	b.WriteString("```\n\n# SEE ALSO\n\n**edge(1)**, **edge-config(1)**, **edge-check(1)**, **edge-doctor(1)**\n")
	return os.WriteFile(filepath.Join(folder, "edge.yaml.5"), md2man.Render([]byte(b.String())), 0o644)
}

// markdown returns a help text in the form that the manual's formatter leaves
// unchanged: indented lines stay, and a < begins no tag.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "    " + line
		} else {
			lines[i] = strings.ReplaceAll(line, "<", `\<`)
		}
	}
	return strings.Join(lines, "\n")
}

// manualDate returns SOURCE_DATE_EPOCH, so that the same source gives the same
// pages, or the first day of 1970.
func manualDate(t *testing.T) time.Time {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC()
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("SOURCE_DATE_EPOCH: %v", err)
	}
	return time.Unix(seconds, 0).UTC()
}

// The manual has a page for each command, with its examples, and two builds of it
// are equal. With -man it is kept.
func TestManPages(t *testing.T) {
	version := "edge"
	if v := os.Getenv("EDGE_VERSION"); v != "" {
		version += " " + v
	}
	folder := *manFolder
	if folder == "" {
		folder = t.TempDir()
	} else if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeManual(folder, manualDate(t), version); err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	if err := writeManual(again, manualDate(t), version); err != nil {
		t.Fatal(err)
	}
	pages := pagesIn(t, folder)
	if diff := cmp.Diff(pagesIn(t, again), pages); diff != "" {
		t.Errorf("made twice, the manual differs: %s", diff)
	}

	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		page := pages[strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"]
		if !strings.Contains(page, ".SH SYNOPSIS") || cmd.Example != "" && !strings.Contains(page, ".SH EXAMPLE") {
			t.Errorf("%s has no page, or one without examples: %s", cmd.CommandPath(), page)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	if page := pages["edge-doctor.1"]; !strings.Contains(page, "<base>/<node>/doctor") {
		t.Errorf("a placeholder is lost: %s", page)
	}
	if page := pages["edge.yaml.5"]; !strings.Contains(page, "max_inflight_messages") {
		t.Errorf("edge.yaml(5) lacks the sample: %.300s", page)
	}
	for name := range pages {
		groff, err := exec.LookPath("groff")
		if err != nil {
			t.Logf("groff is not installed: whether the pages can be formatted is not tried")
			break
		}
		// Long lines of the sample cannot be broken, which is no fault.
		out, err := exec.Command(groff, "-man", "-Tutf8", "-K", "utf8", "-wall", "-Wbreak", "-z", filepath.Join(folder, name)).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("groff on %s: %v %s", name, err, out)
		}
	}
}

// pagesIn returns the pages of a folder by name.
func pagesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type() != fs.ModeDir {
			data, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			pages[e.Name()] = string(data)
		}
	}
	return pages
}

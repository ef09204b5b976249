package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is what the build knows about itself.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Modified bool   `json:"modified"`       // built from a tree with changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	ARM      string `json:"arm,omitempty"` // GOARM
}

// buildVersion reads what the Go linker recorded.
func buildVersion() Version {
	v := Version{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		case "GOARM":
			v.ARM = s.Value
		}
	}
	return v
}

func (v Version) String() string {
	arch := v.Arch
	if v.ARM != "" {
		arch += "v" + v.ARM
	}
	s := "edge " + v.Version
	if v.Commit != "" {
		s += ", commit " + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			s += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s", s, v.Go, v.OS, arch)
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print what this binary was built from",
		Example: "  edge version --json",
		Args:    cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			v := buildVersion()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// printJSON writes v as one line of JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(textWriter{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

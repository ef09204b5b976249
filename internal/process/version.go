package process

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version describes the build.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Modified bool   `json:"modified"`       // built from a tree with uncommitted changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	ARM      string `json:"arm,omitempty"` // GOARM
}

// Build returns the version that the Go linker recorded.
func Build() Version {
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

// String returns the version on one line, as `edge version` prints it.
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

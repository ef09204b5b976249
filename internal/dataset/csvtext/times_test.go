package csvtext

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"edge/stream/signal"
	"edge/test/files"
)

// The command for times in another order makes times of them that are read. A cell that no such
// command helps has none.
func TestMomentCommand(t *testing.T) {
	for cell, want := range map[string]string{
		"22.11.2026 17:00:00":       "2026-11-22T17:00:00Z",
		"22.11.2026 17:00:00.25":    "2026-11-22T17:00:00.25Z",
		"22.11.2026 17:00:00+01:00": "2026-11-22T16:00:00Z",
		"22.11.2026  17:00":         "2026-11-22T17:00:00Z",
		"03.04.2026 17:00:00":       "2026-04-03T17:00:00Z",
		"11/22/2026 17:00:00":       "2026-11-22T17:00:00Z",
		"22/11/2026 17:00:00":       "2026-11-22T17:00:00Z",
		"03/04/2026 17:00":          "2026-04-03T17:00:00Z",
		"2026/11/22 17:00:00":       "2026-11-22T17:00:00Z",
		"2026-11-22 17:00":          "2026-11-22T17:00:00Z",
		"17:00:00":                  "",
		"11/22/2026 5:00:00.5 XM":   "",
		"on":                        "",
	} {
		text, begins := strings.CutPrefix(TimeCommand(cell), "; ")
		command, _, _ := strings.Cut(text, " >FILE.csv")
		if begins != (want != "") {
			t.Errorf("%s: the command is %q", cell, text)
		}
		if want == "" || !begins {
			continue
		}
		if doubt := strings.Contains(text, `if the month does: \3-\1-\2 in it`); doubt != (cell[:3] == "03/") {
			t.Errorf("%s: %s", cell, text)
		}
		file := files.Write(t, "FILE", cell+"\n")
		out, err := files.Shell(t, "sed", strings.Replace(command, "FILE", file, 1))
		at, ok := signal.ParseTime(strings.TrimSpace(out), time.UTC)
		expected, _ := time.Parse(time.RFC3339Nano, want)
		if err != nil || !ok || at != expected.UnixNano() {
			t.Errorf("%s: %s makes %q of it, %v; want %s", cell, command, out, err, want)
		}
	}
}

// Other times, with single digits, with AM or PM or with the name of a month, have a command of Perl.
func TestMomentCommandOfPerl(t *testing.T) {
	if exec.CommandContext(t.Context(), "perl", "-MTime::Piece", "-e", "1").Run() != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("perl, or its Time::Piece, is not installed, and CI=true: install it")
		}
		t.Skip("perl, or its Time::Piece, is not installed: this test needs it (apt install perl)")
	}
	for cell, want := range map[string]string{
		"11/22/2026 05:00:00 PM":   "2026-11-22T17:00:00Z",
		"11/22/2026 5:00:00.25 PM": "2026-11-22T17:00:00.25Z",
		"22.11.2026 5:00:00,25 PM": "2026-11-22T17:00:00.25Z",
		"1/2/2026 7:00:00.125":     "2026-01-02T07:00:00.125Z",
		"11/22/2026 5:00 pm":       "2026-11-22T17:00:00Z",
		"22/11/2026 5:00 PM":       "2026-11-22T17:00:00Z",
		"3/4/2026 5:00:00 PM":      "2026-03-04T17:00:00Z",
		"3/4/26 17:00":             "2026-03-04T17:00:00Z",
		"22-Nov-2026 17:00:00":     "2026-11-22T17:00:00Z",
		"22-nov-26 05:00:00 PM":    "2026-11-22T17:00:00Z",
		"22 November 2026 17:00":   "2026-11-22T17:00:00Z",
		"\"Nov 22, 2026 5:00 PM\"": "2026-11-22T17:00:00Z",
		"22.11.26 17:00:00":        "2026-11-22T17:00:00Z",
	} {
		text, begins := strings.CutPrefix(TimeCommand(strings.Trim(cell, `"`)), "; ")
		command, rest, _ := strings.Cut(text, " >FILE.csv writes them so")
		if doubt := rest == ", if the month comes first; if the day does: %d/%m in it"; !begins || doubt != (strings.HasPrefix(cell, "3/4/2026") || strings.HasPrefix(cell, "1/2/2026")) {
			t.Errorf("%s: %s", cell, text)
			continue
		}
		file := files.Write(t, "FILE", "x;"+cell+";7")
		out, err := files.Shell(t, "perl", strings.Replace(command, "FILE", file, 1))
		read := strings.Split(strings.TrimSpace(out), ";")
		if err != nil || len(read) != 3 {
			t.Errorf("%s: %s makes %q of it, %v", cell, command, out, err)
			continue
		}
		at, ok := signal.ParseTime(strings.Trim(read[1], `"`), time.UTC)
		expected, _ := time.Parse(time.RFC3339Nano, want)
		if !ok || at != expected.UnixNano() || read[2] != "7" {
			t.Errorf("%s: %s makes %q of it; want %s", cell, command, out, want)
		}
	}
}

// A date and the time of the day beside it are one time in two columns.
func TestDateAt(t *testing.T) {
	for _, c := range []struct {
		row       string
		cell      int
		want      int
		separator rune
		command   string
	}{
		{"22.11.2026;17:00:00;1", 1, 0, ';', `; sed -E 's/"?;"?/ /' FILE >FILE.csv makes one column of date and time, and --time 1 names it`},
		{"a|2026-11-22|5:00 PM|1", 1, 1, '|', `; sed -E 's/"?\|"?/ /2' FILE >FILE.csv makes one column of date and time, and --time 2 names it`},
		{"2026-11-22 17:00:00 1", 1, 0, ' ', `; sed -E 's/"? +"?/T/' FILE >FILE.csv makes one column of date and time, and --time 1 names it`},
		{"17:00:00;22.11.2026;1", 0, -1, ';', ""},
		{"1;17:00:00;1", 1, -1, ';', ""},
		{"22.11.2026", 0, -1, ';', ""},
	} {
		at := DateAt(strings.Split(c.row, string(c.separator)), c.cell)
		if at != c.want || at >= 0 && JoinCommand(at, c.separator) != c.command {
			t.Errorf("cell %d of %q: column %d, %s", c.cell, c.row, at, JoinCommand(max(at, 0), c.separator))
		}
	}
}

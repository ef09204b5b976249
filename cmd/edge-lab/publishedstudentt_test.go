package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/lab/published/tprocess"
)

func TestPublishedStudentT(t *testing.T) {
	folder, runs := t.TempDir(), filepath.Join(t.TempDir(), "runs.jsonl")
	var b strings.Builder
	b.WriteString("a,b,label\n")
	for i := range 30 {
		b.WriteString([]string{"0.1,2,x\n", "1.5,0.3,y\n", "0.4,1,x\n", "1,1.2,y\n"}[i%4])
	}
	for _, name := range []string{"few", "other"} {
		if err := os.WriteFile(filepath.Join(folder, name+".csv"), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"published", "student-t", folder, "--repeats", "1", "--updates", "10", "--only", "few", "--resume", runs}
	code, out, errOut := edge(t, append(args, "--json")...)
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	n := 0
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); n++ {
		var r tprocess.Row
		if err := dec.Decode(&r); err != nil || r.Dataset != "few" || r.Splits != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if n != len(tprocess.Methods(30)) {
		t.Errorf("%d lines", n)
	}
	if code, out, errOut := edge(t, args...); code != exit.OK || !strings.Contains(out, "TP grid") {
		t.Errorf("from the finished runs: exit %d: %s\n%s", code, errOut, out)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"published", "student-t", folder, "--repeats=0"}, exit.Usage, "--repeats"},
		{[]string{"published", "student-t", folder, "--inducing=1"}, exit.Usage, "--inducing"},
		{[]string{"published", "student-t", folder, "--updates=1"}, exit.Usage, "--updates"},
		{[]string{"published", "student-t", folder, "--max-rows=3"}, exit.Runtime, "left out: 30 rows"},
		{[]string{"published", "student-t", folder, "--thesis=none.csv"}, exit.Runtime, "none.csv"},
		{[]string{"published", "flipped-labels", "--sets=0"}, exit.Usage, "--sets"},
	} {
		if code, _, errOut := edge(t, c.args...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, errOut)
		}
	}
}

func TestFlippedLabels(t *testing.T) {
	code, out, errOut := edge(t, "published", "flipped-labels", "--sets", "1", "--updates", "10", "--json")
	if code != exit.OK || strings.Count(out, "\n") != 20 || !strings.Contains(out, `"labels":"flipped"`) {
		t.Errorf("exit %d: %s\n%s", code, errOut, out)
	}
}

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"edge/internal/broker/brokertest"
	"edge/internal/broker/embedded"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// eval, train, predict and replay read the same rows from a file in any supported
// format. Long: the formats are one table.
func TestFilesAsPeopleHaveThem(t *testing.T) {
	path := harness.TableFile(t, "wave.csv", brokertest.Brief(400, 150))
	plain, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(plain)
	head, rows, _ := strings.Cut(text, "\n")
	german := strings.NewReplacer(",", ";", ".", ",").Replace(text)
	wide := binary.LittleEndian.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(strings.ReplaceAll(german, "\n", "\r\n"))) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	var more strings.Builder // label first, a text and a number beside the features
	more.WriteString("time;label;y;room no;x;who\n")
	for i, line := range strings.Split(strings.TrimSpace(rows), "\n") {
		c := strings.Split(line, ",")
		fmt.Fprintf(&more, "2026-11-20T20:29:%02d; %s ;%s;%d; %s ;\"Anna; Bert\nCleo\"\n", i%60, c[2], c[1], i, c[0])
	}
	state := filepath.Join(t.TempDir(), "edge.db")
	config := files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://127.0.0.1:1]}\nstreams: {s: {topics: [sensors/wave], features: [x, y]}}\nmodels: {m: {streams: [s], inducing: 20}}\n")
	if code, _, errOut := edge(t, "train", path, "-c", config, "-o", state, "--passes", "2"); code != exit.OK {
		t.Fatalf("train exits with %d: %s", code, errOut)
	}
	broker, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	if code, out, errOut := edge(t, "inspect", state); code != exit.OK || !strings.Contains(out, "scores     –, none judged yet") || strings.Contains(out, "error 0.0000") {
		t.Errorf("inspect of a state that has judged nothing exits with %d: %s%s", code, out, errOut)
	}
	size := []string{"--inducing", "20"}
	wantEval := evalJSON(t, append([]string{path}, size...)...)[0].Digest
	wantTrain := digestOf(t, append([]string{"train", path, "--passes", "2"}, size...)...)
	_, wantPredict, _ := edge(t, "predict", "--state", state, path)
	for name, tc := range map[string]struct {
		text  string
		flags []string
	}{
		"semicolons, decimal commas":  {german, nil},
		"the same, as flags":          {german, []string{"--separator", ";", "--decimal", "comma", "--header", "yes"}},
		"tabs":                        {strings.ReplaceAll(text, ",", "\t"), nil},
		"bars":                        {strings.ReplaceAll(text, ",", "|"), nil},
		"UTF-16":                      {string(wide), nil},
		"an old Mac's":                {strings.ReplaceAll(text, "\n", "\r"), nil},
		"a byte-order mark, Windows":  {"\ufeff" + strings.ReplaceAll(text, "\n", "\r\n"), nil},
		"separators at the end":       {strings.ReplaceAll(german, "\n", ";\n"), nil},
		"comments":                    {"# made by hand\n" + head + "\n# begin\n" + rows + "# end\n", nil},
		"other columns, left out":     {more.String(), []string{"--label", "label", "--ignore", "time,room no,who", "--columns", "x,y"}},
		"other columns, chosen":       {more.String(), []string{"--label", "2", "--columns", "x,3"}},
		"quotes":                      {strings.ReplaceAll(german, ";", "\";\""), nil},
		"a column with another comma": {strings.ReplaceAll(strings.ReplaceAll(text, ",class", ";class"), ",", ";"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "quotes" {
				var b strings.Builder
				for line := range strings.Lines(tc.text) {
					fmt.Fprintf(&b, "\"%s\"\n", strings.TrimSuffix(line, "\n"))
				}
				tc.text = b.String()
			}
			file := files.Write(t, "wave.csv", tc.text)
			with := func(args ...string) []string { return append(args, tc.flags...) }
			if got := evalJSON(t, with(file, "--inducing", "20")...)[0].Digest; got != wantEval {
				t.Errorf("eval: digest %s, want %s", got, wantEval)
			}
			if got := digestOf(t, with("train", file, "--passes", "2", "--inducing", "20")...); got != wantTrain {
				t.Errorf("train: digest %s, want %s", got, wantTrain)
			}
			if _, got, errOut := edge(t, with("predict", "--state", state, file)...); withoutLabels(got) != withoutLabels(wantPredict) || got == "" {
				t.Errorf("predict answers otherwise: %s", errOut)
			}
			if code, _, errOut := edge(t, with("replay", file, "--broker", broker.URL(), "--ahead", "0", "--first", "5")...); code != exit.OK {
				t.Errorf("replay exits with %d: %s", code, errOut)
			}
			if code, out, errOut := edge(t, with("config", "sample", "--from", file)...); code != exit.OK || !strings.Contains(out, "features: [x, \"y\"]") {
				t.Errorf("config sample exits with %d: %s%s", code, out, errOut)
			}
		})
	}
	t.Run("without a header", func(t *testing.T) {
		file := files.Write(t, "wave.csv", rows)
		if got := evalJSON(t, file, "--inducing", "20")[0]; got.Samples != uint64(strings.Count(rows, "\n")) {
			t.Errorf("%d rows are judged", got.Samples)
		}
		if got := evalJSON(t, file, "-c", config)[0].Digest; got != evalJSON(t, path, "-c", config)[0].Digest {
			t.Error("a model's features are not the columns in their order")
		}
		_, _, errOut := edge(t, "eval", file, file)
		if strings.Count(errOut, "the features are called f0, f1; --header yes if it names the columns") != 1 {
			t.Errorf("the missing header is not reported once: %s", errOut)
		}
		if _, got, errOut := edge(t, "predict", "--state", state, file, "--columns", "1,2"); withoutLabels(got) != withoutLabels(wantPredict) {
			t.Errorf("predict answers otherwise: %s", errOut)
		}
	})
}

// digestOf returns the digest of the learner that a command trains.
func digestOf(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errOut := edge(t, args...)
	_, digest, ok := strings.Cut(out, "digest ")
	if code != exit.OK || !ok {
		t.Fatalf("edge %s exits with %d: %s%s", args, code, out, errOut)
	}
	return digest
}

func withoutLabels(answers string) string {
	var b bytes.Buffer
	for line := range strings.Lines(answers) {
		_, rest, _ := strings.Cut(line, `"class"`)
		b.WriteString(rest)
	}
	return b.String()
}

// An error in a file names its position, its cause and the way out.
func TestFilesThatCannotBeRead(t *testing.T) {
	file := files.Write(t, "house.csv", "time;temp;room;label\n2026-11-20;20,5;kitchen;warm\n2026-11-21;21,5;hall;warm\n")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a column of times":  {[]string{file, "--columns", "time,temp"}, exit.Runtime, `house.csv:2:1: column "time": "2026-11-20" is not a number; --ignore time leaves the column out`},
		"a column of text":   {[]string{file}, exit.Runtime, `house.csv:2:17: column "room": "kitchen" is not a number; --ignore room leaves the column out`},
		"the label as well":  {[]string{file, "--columns", "temp,label"}, exit.Runtime, `column "label" is the label, so it cannot be a feature as well`},
		"a column twice":     {[]string{file, "--columns", "temp,2"}, exit.Runtime, `column "temp" is given twice`},
		"no such column":     {[]string{file, "--columns", "temperature"}, exit.Runtime, `no column is called "temperature"; --columns takes one of: time, temp, room, label`},
		"no such number":     {[]string{file, "--ignore", "3-9"}, exit.Runtime, "--ignore 3-9: the file has the columns 1 to 4"},
		"all left out":       {[]string{file, "--ignore", "1-3"}, exit.Runtime, "no column is left for a feature"},
		"wrong decimal sign": {[]string{file, "--ignore", "time,room", "--decimal", "point"}, exit.Runtime, `house.csv:2:12: column "temp": "20,5" has a decimal comma`},
		"wrong separator":    {[]string{file, "--separator", "|"}, exit.Runtime, "no column is left for a feature"},
		"no separator":       {[]string{file, "--separator", "ab"}, exit.Usage, "want one character"},
		"no decimal sign":    {[]string{file, "--decimal", "dot"}, exit.Usage, "want point or comma"},
		"no such header":     {[]string{file, "--header", "maybe"}, exit.Usage, "want yes, no or auto"},
	} {
		for _, command := range []string{"eval", "train", "replay"} {
			t.Run(name+", "+command, func(t *testing.T) {
				code, _, errOut := edge(t, append([]string{command}, tc.args...)...)
				if code != tc.code || !strings.Contains(errOut, tc.want) {
					t.Errorf("exit %d: %s\nwant %d and %s", code, errOut, tc.code, tc.want)
				}
			})
		}
	}
}

// What is said of rows that are left out names on_missing only where that is the reason.
func TestRowsLeftOut(t *testing.T) {
	const head, empty = "a,b,label\n", ",,x\n,,y\n"
	some := strings.Repeat("1,,x\n2,,y\n", 20)
	advice := "a label or a feature; on_missing is reject: --on-missing marginalise takes those with a label and some features\n"
	for name, tc := range map[string]struct {
		rows, flags, want string
		code              int
	}{
		"a few without features": {some + empty, "eval", "2 of 42 rows are left out, which lack a label or all features\n", exit.OK},
		"a few without a label":  {some + "3,4,\n", "eval ask", "1 of 41 rows are left out, which lack a label or all features\n", exit.OK},
		"a few rejected":         {some + "3,4,x\n", "eval --on-missing reject", "40 of 41 rows are left out, which lack " + advice, exit.OK},
		"all without features":   {empty, "eval", "every row lacks a label or all features\n", exit.Runtime},
		"the same, trained":      {empty, "train", "every row lacks a label or all features\n", exit.Runtime},
		"all rejected":           {some, "eval --on-missing reject", "every row lacks " + advice, exit.Runtime},
		"the same, split":        {some, "eval split --on-missing reject", "every row lacks " + advice, exit.Runtime},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(tc.flags), files.Write(t, "gaps.csv", head+tc.rows))
			if code, _, errOut := edge(t, args...); code != tc.code || !strings.HasSuffix(errOut, tc.want) {
				t.Errorf("exit %d: %s\nwant %d and %s", code, errOut, tc.code, tc.want)
			}
		})
	}
}

// Windows with several labels lack a label, which on_missing does not change; if all are such, the error has the remedy.
func TestMixedWindows(t *testing.T) {
	config := files.Write(t, "edge.yaml", "streams: {s: {topics: [a], signals: [x], window: {length: 8, hop: 8}}}\nmodels: {m: {streams: [s]}}\n")
	for name, tc := range map[string]struct {
		labels, want string
		code         int
	}{
		"some": {"aaaaaaaaababababbbbbbbbb", "s: 1 of 3 rows are left out, which lack a label\n", exit.OK},
		"all":  {"abababababababab", "2 mixed); mixed windows have several labels: a shorter window.length, or window.label: majority\n", exit.Runtime},
	} {
		t.Run(name, func(t *testing.T) {
			rows := "t,x,label\n"
			for i, label := range tc.labels {
				rows += fmt.Sprintf("%d,%d,%c\n", i, i%5, label)
			}
			code, _, errOut := edge(t, "eval", "-c", config, files.Write(t, "s.csv", rows))
			if code != tc.code || !strings.Contains(errOut, tc.want) {
				t.Errorf("exit %d: %s\nwant %d and %s", code, errOut, tc.code, tc.want)
			}
		})
	}
}

// A file with more labels than a model may have classes is refused alike by all commands,
// which name the flag for another column.
func TestTooManyLabels(t *testing.T) {
	rows := "a,b,label\n"
	for i := range 251 {
		rows += fmt.Sprintf("%d,1,c%d\n", i, i)
	}
	file := files.Write(t, "many.csv", rows)
	const want = "more than 250 different labels, and a model can have no more classes; is the label really the column \"label\"? --label NAME names another column\n"
	for _, command := range []string{"eval", "eval split", "eval ask", "train", "demo", "config sample --from"} {
		if code, _, errOut := edge(t, append(strings.Fields(command), file)...); code != exit.Runtime || !strings.HasSuffix(errOut, want) {
			t.Errorf("edge %s exits with %d: %s", command, code, errOut)
		}
	}
}

// A file that is sorted by its labels is judged in an order that no sensor has; eval warns of it.
func TestRowsSortedByLabel(t *testing.T) {
	file := func(change int) string {
		rows := "a,b,label\n"
		for i := range 60 {
			rows += fmt.Sprintf("%d,%d,c%d\n", i*7%11, i/20, i/change%3)
		}
		return files.Write(t, "sorted.csv", rows)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"eval", file(20)}, true},
		{[]string{"eval", file(20), "--shuffle", "1"}, false},
		{[]string{"eval", file(10)}, false},
		{[]string{"eval", "split", file(20)}, false},
	} {
		code, _, errOut := edge(t, c.args...)
		if code != exit.OK || strings.Contains(errOut, "--shuffle 1 judges") != c.want {
			t.Errorf("edge %q exits with %d: %s", c.args, code, errOut)
		}
	}
}

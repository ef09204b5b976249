package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Columns of true and false, as get_dummies of pandas makes them, become numbers by a command.
func TestRemedyForBooleans(t *testing.T) {
	for cell, want := range map[string]string{
		"True":  `sed 's/\bTrue\b/1/g; s/\bFalse\b/0/g' FILE >FILE.csv`,
		"false": `sed 's/\btrue\b/1/g; s/\bfalse\b/0/g' FILE >FILE.csv`,
		"tRUE":  "",
	} {
		_, _, err := rowsOf(t, "a,b,label\n1,2,x\n1,"+cell+",x\n", "")
		if err == nil || !strings.Contains(err.Error(), `"`+cell+`" is not a number`) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sed") != (want != "") {
			t.Errorf("%s: %v, want %q", cell, err, want)
		}
	}
}

// Names of rows as R writes them, in quotation marks and without a name in the header, are left out; a separator behind
// the last cell is none of them.
func TestNamesOfRows(t *testing.T) {
	for _, text := range []string{
		"\"a\" \"b\" \"label\"\n\"1\" 1 -2.5 \"ok\"\n\"2\" 0.003 4e10 \"worn out\"\n",
		"\"a\"\t\"b\"\t\"label\"\n\"Mazda RX4\"\t1\t-2.5\t\"ok\"\n\"Fiat 128\"\t0.003\t4e10\t\"worn out\"\n",
		"\"a\",\"b\",\"label\"\n\"1\",\"-2.5\",\"ok\",\n\"0.003\",\"4e10\",\"worn out\",\n",
	} {
		d, rows, err := rowsOf(t, text, "")
		if err != nil || len(rows) != 2 || !slices.Equal(d.Features, []string{"a", "b"}) ||
			!slices.Equal(rows[0].X, []float64{1, -2.5}) || !slices.Equal(rows[1].X, []float64{0.003, 4e10}) || rows[1].Label != "worn out" {
			t.Errorf("%q: %+v, %v", text, rows, err)
		}
	}
}

// Names of rows without quotes before the first column are told, whatever the separator is: the header may as
// well lack the last name.
func TestRemedyForNamesOfRows(t *testing.T) {
	for _, separator := range []string{",", ";", "\t"} {
		_, _, err := rowsOf(t, strings.ReplaceAll("a,b,label\n1,1,2,x\n2,1,2,x\n", ",", separator), "")
		if err == nil || !strings.HasSuffix(err.Error(), "names of rows, as R writes them, are left out by row.names = FALSE of write.table") {
			t.Errorf("%q: %v", separator, err)
		}
	}
}

// A number that a comma between thousands has cut into two cells is told as that, and no name of a row.
func TestRemedyForSeparatorOfThousands(t *testing.T) {
	const header, want = "a,b,label\n", "; %s looks like a number with a separator of thousands: write numbers without it"
	for line, number := range map[string]string{
		"1,020.09,5,x\n":       "1,020.09",
		"3,4,y\n7,-12,500,x\n": "-12,500",
		"2.5,100,200,x\n":      "100,200",
		"1,123,5,x\n":          "", // the name of a row, as R writes it
		"1234,567,5,x\n":       "",
		"1,20,5,x\n":           "",
		"1,2000,5,x\n":         "",
		"1,234\n":              "",
	} {
		_, _, err := rowsOf(t, header+line, "")
		if err == nil || !strings.Contains(err.Error(), "another number of columns") || strings.Contains(err.Error(), "thousands") != (number != "") || number != "" && !strings.HasSuffix(err.Error(), fmt.Sprintf(want, number)) {
			t.Errorf("%q: %v, want %q", line, err, number)
		}
	}
	if _, _, err := rowsOf(t, strings.ReplaceAll(header+"1;020;5;x\n", ",", ";"), ""); err == nil || strings.Contains(err.Error(), "thousands") {
		t.Errorf("between semicolons: %v", err)
	}
}

// The header of a file that was joined to another is told as that.
func TestRemedyForARepeatedHeader(t *testing.T) {
	const want = `data.csv:3:1: column "a": "a" is not a number; the line repeats the header, as where files were joined: awk 'NR==1 {h=$0} NR==1 || $0!=h' FILE >FILE.csv leaves`
	if _, _, err := rowsOf(t, "a,b,label\n1,2,x\na,b,label\n3,4,y\n", ""); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Files of other formats get the command that makes a table of them. That of jq takes the features of samples
// as sensors publish them, and the label, which few of them may have.
func TestRemediesForOtherFormats(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an array of features":     {`{"id":"a","features":[1.5,2]}` + "\n" + `{"id":"b","features":[2,3],"label":"x"}`, `jq -nr 'inputs|[.features[],.label]|@csv' FILE >FILE.csv makes one without it`},
		"a list of such samples":   {`{"data":[{"features":[1.5],"label":"x"}]}`, `jq -nr 'inputs|.data[]|[.features[],.label]|@csv' FILE`},
		"the label further on":     {"{\"x\":1,\"y\":2}\n{\"x\":2,\"y\":3,\"label\":\"a\"}\n", `jq -nr '["x","y","label"],(inputs|[.x,.y,.label])|@csv' FILE`},
		"further on in an array":   {`[{"x":1,"y":2},{"x":2,"y":3,"label":"a"}]`, `jq -nr '["x","y","label"],(inputs|.[]|[.x,.y,.label])|@csv' FILE`},
		"no label, and a cut line": {"{\"x\":1,\"y\":2}\n{\"x\":2,", `jq -nr '["x","y"],(inputs|[.x,.y])|@csv' FILE`},
		"columns as objects":       {`{"x":{"0":1,"1":2},"label":{"0":"a","1":"b"}}`, `data.csv: JSON of columns: want CSV with a header line; python3 -c 'import pandas; pandas.read_json("FILE").to_csv("FILE.csv", index=False)' makes it`},
		"columns as arrays":        {`{"x":[1,2],"label":["a","b"]}`, `pandas.read_json("FILE")`},
		"columns, cut":             {`{"x":{"0":1,"1":2,"2":`, `pandas.read_json("FILE")`},
		"bursts":                   {`{"x":[1,2],"y":[3,4]}` + "\n" + `{"x":[1,2],"y":[3,4]}`, "data.csv: JSON: want"},
		"as pandas splits it":      {`{"columns":["x","label"],"index":[0,1],"data":[[1,"a"],[2,"b"]]}`, `jq -nr 'inputs|.data[]|@csv' FILE`},
		"a message with an array":  {`{"t":1,"x":[1,2]}`, "data.csv: JSON: want"},
		"a 7z archive":             {"7z\xbc\xaf\x27\x1c\x00\x04", "data.csv: a 7z archive: unpack it, 7z x FILE"},
		"a RAR archive":            {"Rar!\x1a\x07\x01\x00", "data.csv: a RAR archive: unpack it, unrar x FILE"},
		"packed by lz4":            {"\x04\x22\x4d\x18\x64\x40", "data.csv: packed by lz4: unpack it, lz4 -dc FILE >FILE.csv"},
		"an array a line":          {"[1.5,2,\"a\"]\n[2,3,\"b\"]\n", `data.csv: JSON: want CSV with a header line; jq -nr 'inputs|@csv' FILE >FILE.csv makes one without it`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFile(strings.NewReader(c.text), "data.csv", Format{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A file of a logger, whose rows are no samples, has its times in a column without a name, or of any name.
func TestRemediesForLoggers(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-20 09:00:00.000,0.1,0.2,idle\n2026-11-20 09:00:00.020,0.3,0.2,idle\n":   `--ignore 1 leaves the column out; rows that a sensor sends one after the other need names: sed '1i t,x1,x2,label' FILE >FILE.csv writes such a line above them`,
		"0.1;2026-11-20 09:00:00;0,2\n0.3;2026-11-20 09:00:01;0,2\n":                     `sed '1i x0;t;x2' FILE >FILE.csv`,
		"x;Begin (UTC);label\n1,5;22.11.2026 17:00:00;ok\n":                              "--ignore 2 leaves the column out; of rows that a sensor sends one after the other edge config sample --from FILE --time 2 proposes windows",
		"time,x,label\n,1.5,ok\n2026-11-22 17:00:00,1.5,ok\n":                            "--ignore time leaves the column out; of rows that a sensor sends one after the other edge config sample --from FILE --time time proposes windows",
		"when,x,label\n2026-11-22T17:00:00Z,1.5,ok\n":                                    "edge config sample --from FILE --time when proposes windows",
		"Tag;Stunde;x;label\n01.11.2026;09:00:00;1;ok\n":                                 `--ignore Tag leaves the column out; sed -E 's/"?;"?/ /' FILE >FILE.csv makes one column of date and time, and --time 1 names it`,
		"Logger;XY\nStart;20.11.2026\n\nNo.;a;b;label\n1;2,5;3;ok\n2;2,5;3;ok\n":         `column "Logger": "Start" is not a number; a table seems to begin in line 4: tail -n +4 FILE >FILE.csv drops the lines above`,
		"Logger;7\n20;11\n\nNo.;a;b;label\n1;2,5;3;ok\n2;2,5;3;ok\n":                     "",
		"Serial;Type\n7;XY\n\nNo.;a;b;label\n1;2,5;3;ok\n2;2,5;3;ok\n":                   "",
		`"VarName";"TimeString";"VarValue"` + "\n" + `"Force";"20.11.2026 09:00:00";1,5`: `the file seems to have one value a line, that of what column "VarName" says`,
	} {
		_, rows, err := rowsOf(t, text, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", text, rows, err, want)
		}
	}
}

// A column with recorded payloads is told with the command that makes columns of their members.
func TestRemedyForObjects(t *testing.T) {
	const command = `; python3 -c 'import json, pandas; d = pandas.read_csv("FILE", sep=";"); d.drop(columns="payload").join(pandas.json_normalize(list(map(json.loads, d["payload"]))), rsuffix="_2").to_csv("FILE.csv", index=False)' makes columns of its members`
	for text, want := range map[string]string{
		"t;payload\n1;\"{\"\"x\"\":1}\"\n":         `data.csv:2:3: the label is an object of JSON: "{\"x\":1}"; --label names another column` + command,
		"t;payload;label\n1;\"{\"\"x\"\":1}\";a\n": `--ignore payload leaves the column out` + command,
		"t;a 'b';label\n1;\"{\"\"x\"\":1}\";a\n":   "--ignore 2 leaves the column out; its members have to be columns",
		"t;payload\n1;{\n":                         "",
	} {
		if _, _, err := rowsOf(t, text, ""); (err != nil) != (want != "") || want != "" && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What spreadsheets and their exports write in place of a number is named, with a command.
func TestRemediesForSpreadsheets(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,label\n1,2,x\n#DIV/0!,2,x\n": `"#DIV/0!" is an error of a spreadsheet: sed 's|#DIV/0!||g' FILE >FILE.csv makes empty cells of it`,
		"a,b,label\n1,2,x\n−3.5,2,x\n":    `"−3.5" begins with a dash that is no minus sign: sed 's/−/-/g' FILE >FILE.csv makes one of it`,
		"a,b,label\n1,2,x\n'3.5,2,x\n":    `"'3.5" has single quotes: want double ones, or none; sed "s/'//g" FILE >FILE.csv removes them`,
		"a,b,label\n1,2,x\nTotal,,\n":     "an empty cell stands for a missing value; sed 3d FILE >FILE.csv leaves the line out",
	} {
		if _, _, err := rowsOf(t, text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"edge/internal/dataset/csvtext"
	"edge/test/files"
)

// rowsOf reads a whole data set from text.
func rowsOf(t testing.TB, text, label string) (*File, []Row, error) {
	t.Helper()
	d, err := newFile(strings.NewReader(text), "data.csv", Format{Label: label})
	if err != nil {
		return nil, nil, err
	}
	rows, err := ReadAll(d)
	return d, rows, err
}

func TestDatasetReads(t *testing.T) {
	want := []Row{{1, []float64{1, -2.5}, "ok"}, {2, []float64{0.003, 4e10}, "worn out"}}
	for name, tc := range map[string]struct{ text, label string }{
		"label last":             {"a,b,label\n1,-2.5,ok\n0.003,4e10,worn out\n", ""},
		"label first":            {"state,a,b\nok,1,-2.5\nworn out,0.003,4e10\n", "state"},
		"label in between":       {"a,state,b\n1,ok,-2.5\n0.003,worn out,4e10\n", "state"},
		"no newline at end":      {"a,b,label\n1,-2.5,ok\n0.003,4e10,worn out", ""},
		"windows lines":          {"a,b,label\r\n1,-2.5,ok\r\n0.003,4e10,worn out\r\n", ""},
		"byte order mark":        {"\xef\xbb\xbfa,b,label\n1,-2.5,ok\n0.003,4e10,worn out\n", ""},
		"spaces and quotes":      {"a, b ,label\n 1 , -2.5, ok \n0.003,\"4e10\",\"worn out\"\n", ""},
		"semicolons":             {"a;b;label\n1;-2.5;ok\n0.003;4e10;worn out\n", ""},
		"decimal commas":         {"a;b;label\n1,0;-2,5;ok\n0,003;4e10;worn out\n", ""},
		"tabs":                   {"a\tb\tlabel\n1\t-2,5\tok\n0,003\t4e10\tworn out\n", ""},
		"bars":                   {"a|b|label\n1|-2.5|ok\n0.003|4e10|worn out\n", ""},
		"UTF-16, little-endian":  {"\xff\xfe" + wide("a;b;label\r\n1;-2,5;ok\r\n0,003;4e10;worn out\r\n", false), ""},
		"UTF-16, big-endian":     {"\xfe\xff" + wide("a\tb\tlabel\n1\t-2.5\tok\n0.003\t4e10\tworn out\n", true), ""},
		"lines of an old Mac":    {"a,b,label\r1,-2.5,ok\r0.003,4e10,worn out\r", ""},
		"comments":               {"# from 2026\n# a \"quote\n#\na,b,label\n1,-2.5,ok\n# a pause\n0.003,4e10,worn out\n", ""},
		"a comment further down": {"a,b,label\n1,-2.5,ok\n" + "# so\n0.003,4e10,worn out\n", ""},
		"separators at the end":  {"a;b;label;\n1;-2.5;ok;\n0.003;4e10;worn out;;\n", ""},
		"as a few exports do":    {"a;b;label\n1;-2.5;ok;\n0.003;4e10;worn out;\n", ""},
		"a separator in quotes":  {"\"sep=;\"\r\na;b;label\r\n1;-2,5;ok\r\n0,003;4e10;worn out\r\n", ""},
		"a separator for Excel":  {"sep=;\r\na;b;label\r\n1;-2,5;ok\r\n0,003;4e10;worn out\r\n", ""},
		"the same with a mark":   {"\xef\xbb\xbfsep=,\na,b,label\n1,-2.5,ok\n0.003,4e10,worn out\n", ""},
		"brackets in a name":     {"[state],a,b\nok,1,-2.5\nworn out,0.003,4e10\n", "[state]"},
		"label by its number":    {"a,state,b\n1,ok,-2.5\n0.003,worn out,4e10\n", "2"},
		"the index of pandas":    {",a,b,label\n0,1,-2.5,ok\n1,0.003,4e10,worn out\n", ""},
		"the index read again":   {"Unnamed: 0,a,b,label\n0,1,-2.5,ok\n1,0.003,4e10,worn out\n", ""},
		"the names of R":         {"\"\",\"a\",\"b\",\"label\"\n\"r1\",1,-2.5,\"ok\"\n\"r2\",0.003,4e10,\"worn out\"\n", ""},
		"a nameless label":       {",a,b\nok,1,-2.5\nworn out,0.003,4e10\n", "1"},
		"commas at the end":      {"a,b,label,\n1,-2.5,ok,\n0.003,4e10,worn out,\n", ""},
		"empty lines in between": {"a,b,label\n\n1,-2.5,ok\n\n0.003,4e10,worn out\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, rows, err := rowsOf(t, tc.text, tc.label)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a", "b"}, d.Features); diff != "" {
				t.Errorf("features (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// What is no table, or has a fault, is refused with the reason and what to do. Long: it is a table of files.
func TestDatasetRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, label, want string }{
		"empty file":          {"", "", "data.csv: the file is empty"},
		"one column":          {"label\nok\n", "", "data.csv:1: no column is left for a feature"},
		"nameless column":     {"a,,label\n", "", "data.csv:1: column 2 has no name: name it, or leave it out by --ignore 2"},
		"nameless label":      {"a,b,\n1,2,ok\n", "", "it has 3, separated by ,; --separator names another separator; the header has no name for the last one: name it, as label"},
		"name twice":          {"a,a,label\n", "", `data.csv:1: two columns are called "a"`},
		"no such label":       {"a,b,label\n", "class", `data.csv:1: no column is called "class"; --label takes one of: a, b, label`},
		"no such number":      {"a,b,label\n", "4", `data.csv: --label 4: the file has the columns 1 to 3`},
		"several labels":      {"a,b,label\n", "2-3", `data.csv: --label 2-3: want one column`},
		"a name, no header":   {"1,2,ok\n", "class", `data.csv: --label "class": the file has no header line: give the number of a column, 1 to 3`},
		"another time":        {"time,b,label\n,1,ok\n22.11.2026 17:00:00,1,ok\n", "", `"22.11.2026 17:00:00" is not a number; --ignore time leaves the column out; a column of times has seconds, or 2026-11-22T17:00:00Z`},
		"a time of ISO 8601":  {"time,b,label\n,1,ok\n2026-11-22 17:00:00,1,ok\n", "", "3:1: column \"time\": \"2026-11-22 17:00:00\" is not a number; --ignore time leaves the column out"},
		"a time with PM":      {"time,b,label\n,1,ok\n\"Nov 22, 2026 5:00 PM\",1,ok\n", "", `gmtime->strptime($&,"%b %d, %Y %I:%M %p")->datetime}e' FILE >FILE.csv writes them so`},
		"a time, no header":   {"1,2,ok\n1,17:00:00,ok\n", "", `"17:00:00" is not a number`},
		"word for a number":   {"a,b,label\n1,2,ok\n1,two,ok\n", "", `data.csv:3:3: column "b": "two" is not a number; --ignore b leaves the column out`},
		"infinity":            {"a,b,label\n1,-inf,ok\n", "", `"-inf" is not a finite number`},
		"overflow":            {"a,b,label\n1,1e999,ok\n", "", `"1e999" is not a finite number`},
		"too few columns":     {"a,b,label\n1,2,ok\n1,2\n", "", "data.csv:3: the line has another number of columns than the header, which has 3"},
		"a line cut off":      {"a,b,label\n1,2,ok\n1,2\n", "", "it has 2, separated by ,; sed 3d FILE >FILE.csv leaves the line out"},
		"a quote left open":   {"a,b,label\n1,2,\"ok\n1,2,\"ok\"\n", "", `data.csv:3:5: extraneous or missing " in quoted-field, in a row that begins in line 2; the cells`},
		"a line of totals":    {"a,b,label\n1,2,ok\n1,Total,ok\n", "", `(values: one_hot, map); an empty cell stands for a missing value`},
		"too many columns":    {"a,b,label\n1,2,3,ok\n", "", "data.csv:2: the line has another number"},
		"point after comma":   {"a;label\n1,5;ok\n1.5;ok\n", "", `data.csv:3:1: column "a": "1.5" has a decimal point, the numbers before it a comma; give --decimal`},
		"comma after point":   {"a;label\n1.5;ok\n1,5;ok\n", "", `data.csv:3:1: column "a": "1,5" has a decimal comma, the numbers before it a point; give --decimal`},
		"quoted commas":       {"a,label\n\"1,5\",ok\n", "", `"1,5" has a comma, of a decimal or of thousands; --decimal comma reads it`},
		"thousands":           {"a;label\n\"1.234,5\";ok\n", "", `"1.234,5" is not a number: write it without a separator of thousands`},
		"single quotes":       {"'a','label'\n'1.5','ok'\n'2.5','ok'\n", "", `"'1.5'" has single quotes: want double ones, or none; sed "s/'//g" FILE >FILE.csv removes them`},
		"Swiss thousands":     {"a;label\n1'234.5;ok\n", "", `"1'234.5" is not a number: write it without a separator of thousands`},
		"French thousands":    {"a;label\n1\u202f234,5;ok\n", "", `"1\u202f234,5" is not a number: write it without a separator of thousands`},
		"names of rows":       {"a\tb\tlabel\n1\t1\t2\tok\n", "", "it has 4, separated by tabs; --separator names another separator; names of rows, as R writes them, are left out by row.names = FALSE of write.table"},
		"quotes, other cells": {"\"a\" \"b\" \"label\"\n\"1\" 1 2 3 \"ok\"\n", "", `data.csv:1:3: extraneous or missing " in quoted-field; the cells are taken to be separated by ,: --separator names another one; within quotation marks`},
		"stray quote":         {"a,b,label\n1,2\"3,ok\n", "", "data.csv:2:4: bare \" in non-quoted-field"},
		"long nonsense":       {"a,b,label\n1," + strings.Repeat("x", 1000) + ",ok\n", "", "…"},
		"a line without end":  {"a,b,label\n1,\"" + strings.Repeat("x\n", csvtext.MaxRecord), "", "a line is longer than 4 MiB"},
		"a Latin-1 name":      {"a,W\xe4rme,label\n1,2,ok\n", "", `data.csv:1: column 2 is called "W\xe4rme", which is not UTF-8: convert the file, if it is from Windows by iconv -f WINDOWS-1252 -t UTF-8; --ignore 2 leaves it out`},
		"a Latin-1 label":     {"a,b,label\n1,2,ok\n1,2,a\xe4\n", "", `data.csv:3:5: the label is "a\xe4", which is not UTF-8: convert the file`},
		"a long label":        {"a,b,label\n1,2,ok\n1,2," + strings.Repeat("x", 257) + "\n", "", `data.csv:3:5: the label has 257 bytes, and 256 are possible: "xxxx`},
		"a pointer of Git":    {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "", "data.csv: a pointer of Git LFS in place of the file: git lfs pull fetches it"},
		"packed by zstd":      {"\x28\xb5\x2f\xfd\x04\x00", "", "data.csv: packed by zstd: unpack it, zstd -dc FILE >FILE.csv"},
		"packed by xz":        {"\xfd7zXZ\x00\x00", "", "data.csv: packed by xz: unpack it, xz -dc FILE >FILE.csv"},
		"packed by bzip2":     {"BZh91AY&SY", "", "data.csv: packed by bzip2: unpack it, bzip2 -dc FILE >FILE.csv"},
		"a zip archive":       {"PK\x03\x04\x14\x00", "", "data.csv: a zip archive: unpack it, unzip -p FILE >FILE.csv; of a spreadsheet save a sheet as CSV"},
		"Parquet":             {"PAR1\x15\x04\x15\x80\n", "", `data.csv: Parquet: want CSV with a header line; python3 -c 'import pandas; pandas.read_parquet("FILE").to_csv("FILE.csv", index=False)' makes it`},
		"Feather":             {"FEA1\x00\x00\x00\x00\x02\x03", "", `data.csv: Feather: want CSV with a header line; python3 -c 'import pandas; pandas.read_feather("FILE")`},
		"NumPy":               {"\x93NUMPY\x01\x00v\x00{'descr': '<f8'", "", `data.csv: NumPy: want CSV with a header line; python3 -c 'import numpy; numpy.savetxt("FILE.csv", numpy.load("FILE"), delimiter=",")'`},
		"a pickle":            {"\x80\x05\x95\x1b", "", "data.csv: a pickle of Python: want CSV with a header line; save it so"},
		"HDF5":                {"\x89HDF\r\n\x1a\n\x00", "", "data.csv: HDF5: want CSV with a header line; save it so"},
		"state file":          {strings.Repeat("\x00", 16) + "\xed\xda\x0c\xed\x02\x00\x00\x00", "", "data.csv: a state file: edge inspect"},
		"SQLite":              {"SQLite format 3\x00", "", "data.csv: SQLite: want CSV with a header line; sqlite3 -header -csv FILE 'SELECT * FROM TABLE' >FILE.csv makes it"},
		"an old spreadsheet":  {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "data.csv: a spreadsheet: want CSV with a header line; save it so"},
		"JSON lines":          {"{\"x\":1,\"label\":\"a\"}\n{\"x\":2,\"label\":\"b\"}\n", "", "data.csv: JSON: want CSV with a header line; jq -nr '[\"x\",\"label\"],(inputs|[.x,.label])|@csv' FILE >FILE.csv makes it"},
		"nested JSON":         {"{\"label\":\"a\",\"at\":{\"my x\":1,\"list\":[1],\"ok\":true}}\n{}\n", "", `jq -nr '["my x","ok","label"],(inputs|[.at."my x",.at.ok,.label])|@csv' FILE`},
		"one object":          {"{\"x\":1,\"y z\":2}", "", `jq -nr '["x","y z"],(inputs|[.x,."y z"])|@csv' FILE >FILE.csv makes it`},
		"of Edge Impulse":     {`{"signature":"0","payload":{"interval_ms":10,"sensors":[{"name":"accX"}],"values":[[1.2,3],[2,4]]}}`, "", `jq -nr 'inputs|.payload.values[]|@csv' FILE >FILE.csv makes one without it`},
		"of MongoDB":          {`{"_id":{"$oid":"6a"},"ts":{"$date":1700000000000},"n":{"$numberInt":"3"}} {}`, "", `jq -nr '["_id","ts","n"],(inputs|[._id."$oid",.ts."$date",.n."$numberInt"])|@csv' FILE`},
		"a list in JSON":      {`{"n":2,"data":[{"x":1,"y":2}]}`, "", `jq -nr '["x","y"],(inputs|.data[]|[.x,.y])|@csv' FILE`},
		"arrays in JSON":      {"[[1,2,\"a\"],\n[3,4,\"b\"]]", "", `jq -nr 'inputs|.[]|@csv' FILE >FILE.csv`},
		"a history in JSON":   {`[[{"state":"1","at":2},{"state":"3"}],[]]`, "", `jq -nr '["state","at"],(inputs|.[]|.[]|[.state,.at])|@csv' FILE`},
		"quotes in JSON":      {`{"it's \"a\"":{"x":1,"y":2}} {}`, "", `jq -nr '["x","y"],(inputs|[."it\u0027s \"a\"".x,."it\u0027s \"a\"".y])|@csv' FILE >FILE.csv makes it`},
		"a quote above lists": {`{"it's":[[1,2],[3,4]]}`, "", `jq -nr 'inputs|."it\u0027s"[]|@csv' FILE >FILE.csv makes one without it`},
		"two lists in JSON":   {`{"x":[{"ts":1}],"y":[{"ts":1}]}`, "", `(inputs|[.x,.y,.label])|@csv' FILE >FILE.csv makes it of the members x, y and label`},
		"topics and JSON":     {"a/b {\"x\":1,\"label\":\"a\"}\na/c {\"x\":2}\n", "", `mosquitto_sub -v writes them: want CSV with a header line; cut -d' ' -f2- FILE | jq -nr '["x","label"],(inputs|[.x,.label])|@csv' >FILE.csv`},
		"topics and values":   {"a/temp 21.5\na/hum 40\n", "", "data.csv: a topic and its value a line, as mosquitto_sub -v writes them: want CSV"},
		"line protocol":       {"room,host=a temp=21.5,hum=40i,label=\"ok\" 1795717000000000000\n", "", "data.csv: line protocol of InfluxDB"},
		"a page":              {"<!DOCTYPE html>\n<html>", "", "data.csv: HTML or XML: want CSV with a header line; a page may"},
		"a tar archive":       {"a.csv" + strings.Repeat("\x00", 252) + "ustar\x00" + strings.Repeat("\x00", 250), "", "data.csv: a tar archive: unpack it, tar -xf FILE"},
		"MATLAB":              {"MATLAB 5.0 MAT-file, Platform: GLNXA64", "", "data.csv: MATLAB: want CSV with a header line; save it so"},
		"time series":         {"# comment\n@problemName X\n@data\n1,2:a\n", "", "data.csv: time series in the format ts: sed '1,/^@data/d; s/:/,/g' FILE"},
		"a title above":       {"\"Plot Title: garden\"\n\"#\",\"Date Time, GMT+02:00\",\"Temp (LGR S/N: 1)\"\n1,11/01/26 10:00:00 AM,21.5\n2,11/01/26 10:10:00 AM,21.6\n", "", "a table seems to begin in line 2: tail -n +2 FILE"},
		"TOA5":                {"\"TOA5\",\"CR1000X\",\"1\"\n\"TIMESTAMP\",\"RECORD\",\"PTemp\"\n\"TS\",\"RN\",\"Deg C\"\n\"\",\"\",\"Avg\"\n", "", "data.csv: TOA5 of Campbell Scientific, whose header has four lines: sed '1d;3,4d' FILE"},
		"lines above":         {"Device: 7\nfrom, to\n\na,b,label\n1,2,ok\n3,4,ok\n", "", "data.csv:1: the line has one cell, and a table seems to begin in line 4: tail -n +4 FILE >FILE.csv drops the lines above"},
		"a line of units":     {"a,b,label\nm/s^2,°C,\n1,2,ok\n", "", `data.csv:2:1: column "a": "m/s^2" is not a number; --ignore a leaves the column out; sed 2d FILE >FILE.csv leaves the line out, if it belongs to the header, as one of units`},
		"numbers with units":  {"a,b,label\n-1.5 °C,2,ok\n", "", `"-1.5 °C" is not a number: if "°C" is a unit, write it without; --ignore a leaves`},
		"an identifier":       {"a,b,label\n0FXYZ,2,ok\n", "", `"0FXYZ" is not a number: if "FXYZ" is a unit, write it without; --ignore a leaves`},
		"a JSON array":        {"[\n  {\"x\": 1, \"label\": \"a\"}\n]\n", "", "data.csv: JSON: want CSV"},
		"one column of many":  {"temp\n1\n2\n", "", `data.csv:1: no column is left for a feature: the only one, column "temp", is taken for the label`},
		"binary data":         {"a\x03,b\"c\n\x05", "", "data.csv: the first line has control characters, so that this is no text"},
		"a picture":           {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "", "data.csv: a picture: want CSV with a header line"},
		"NUL bytes at an end": {"a,b,label\n1,2,x\n3,4,y\n\x00\x00\x00", "", `data.csv:4: the line has NUL bytes, as a power cut leaves them in a file that is written: tr -d '\000' <FILE >FILE.csv drops them`},
		"NUL bytes before":    {"a,b,label\n1,2,x\n\x00\x003,4,y\n", "", `is not a number; it has NUL bytes, as a power cut`},
		"ARFF with names":     {"@relation r\n@Attribute x numeric\n@attribute  y\treal\n@attribute class {a,b}\n@DATA\n1,2,a\n", "", "data.csv: ARFF: { echo 'x,y,class'; sed '1,/^@data/Id' FILE; } >FILE.csv makes a table of it"},
		"sparse ARFF":         {"@relation r\n@attribute x real\n@attribute class {a,b}\n@data\n{0 1.5, 1 b}\n", "", "data.csv: sparse ARFF: { echo 'x,class'; sed '1,/^@data/Id' FILE | awk -F'[{},]' "},
		"ARFF, quoted names":  {"@relation r\n@attribute 'x y' numeric\n@attribute class {a,b}\n@data\n1,a\n", "", "data.csv: ARFF: sed '1,/^@data/Id' FILE >FILE.csv leaves its rows"},
		"ARFF":                {"% of 1988\n\n@RELATION iris\n@data\n1,a\n", "", "data.csv: ARFF: sed '1,/^@data/Id' FILE >FILE.csv leaves its rows"},
		"UTF-16, no mark":     {wide("a,b,label\n1,2,ok\n", false), "", "data.csv: the first line has NUL bytes: text in UTF-16 or UTF-32 without a byte-order mark"},
		"UTF-16 BE, no mark":  {wide("a,b,label\n1,2,ok\n", true), "", "data.csv: the first line has NUL bytes"},
		"UTF-32":              {"\xff\xfe\x00\x00a\x00\x00\x00,\x00\x00\x00b\x00\x00\x00\n\x00\x00\x00", "", "data.csv: the first line has NUL bytes"},
		"lines of InfluxDB":   {"#group,false,false,true\n#datatype,string,double,string\n#default,_result,,\n,result,_value,_field\n,,1,x\n", "", `data.csv: of InfluxDB, with one value a line: end the query with |> group() |> pivot(`},
		"a value a line":      {"time,Name,value\n2026-11-22T15:05:00Z,temp,21.5\n", "", `column "Name": "temp" is not a number; the file seems to have one value a line, that of what column "Name" says: want one line a time`},
		"combining letters":   {"e\u0301,b,label\n1,2,ok\n", "é", `no column is called "é"; --label takes one of: "e\u0301", b, label`},
		"LIBSVM":              {"-1 1:0.5 3:-2e-3\n+1 2:1\n", "", "data.csv: LIBSVM, with the numbers of the features: awk -v D=9 "},
		"of a wristband":      {"1544027337.000000, 1544027337.000000, 1544027337.000000\r\n32.000000, 32.000000, 32.000000\r\n-12,5,60\r\n", "", `data.csv: of Empatica E4: the first line is the start in Unix time, the second has the rows a second; awk -F, 'BEGIN{print "t,x,y,z"} NR==1`},
		"of one signal of it": {"1544027337.00\n4.000000\n28.5\n", "", `BEGIN{print "t,x"}`},
		"an underscore":       {"a,b,label\n2026_11,2,ok\n", "", `"2026_11" is not a number; --ignore a leaves`},
		"hexadecimal of Go":   {"a,b,label\n0x1p4,2,ok\n", "", `"0x1p4" is not a number; --ignore a leaves`},
		"hexadecimal digits":  {"a,b,label\n3e138af63b,2,ok\n", "", `"3e138af63b" is not a number; --ignore a leaves`},
		"of Home Assistant":   {"entity_id,state,last_changed\nsensor.power,412.5,2026-11-22T15:05:00.123Z\n", "", "data.csv: of Home Assistant, with one value a line: want a column for each entity"},
		"a line after sep=":   {"sep=;\na;b;label\n1;2;ok\n1;two;ok\n", "", `data.csv:4:3: column "b": "two"`},
		"not gzip after all":  {"\x1f\x8bnonsense", "", "data.csv: gzip: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := rowsOf(t, tc.text, tc.label)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes; it should be one line for a person", len(err.Error()))
			}
		})
	}
}

// A header that a flag makes the first row is refused as one.
func TestHeaderAsARow(t *testing.T) {
	d, err := newFile(strings.NewReader("a,label\n1,ok\n"), "data.csv", Format{Header: "no"})
	if err == nil {
		_, err = ReadAll(d)
	}
	if err == nil || !strings.Contains(err.Error(), "without --header no the line names the columns") {
		t.Errorf("error %v", err)
	}
}

// A feature of the model is not taken for the label, wherever it is.
func TestLabelBesideTheModelsFeatures(t *testing.T) {
	for header, want := range map[string]string{
		"state,a,b":    "state",
		"a,state,b":    "state",
		"a,x,state,b":  "state",
		"a,b,label,b2": "label",
		"a,b":          "",
	} {
		n := strings.Count(header, ",")
		d, err := newFile(strings.NewReader(header+"\n"+strings.Repeat("1,", n)+"2\n"), "data.csv", Format{Features: []string{"a", "b"}})
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), `data.csv:1: no column is left for the label: column "b", the last one, is a feature of the model, and so are the others; --label names`) {
				t.Errorf("%s: %v", header, err)
			}
		} else if err != nil || d.names[slices.Index(d.roles, label)] != want {
			t.Errorf("%s: %v, want the label %s", header, err, want)
		}
	}
}

// A sign other than the one that --decimal gives is refused as that.
func TestTheGivenDecimalSign(t *testing.T) {
	for sign, c := range map[rune]struct{ text, want string }{
		',': {"a,label\n1.5,ok\n", `"1.5" has a decimal point, and --decimal comma is given`},
		'.': {"a;label\n1,5;ok\n", `"1,5" has a decimal comma, and --decimal point is given`},
	} {
		d, err := newFile(strings.NewReader(c.text), "data.csv", Format{Decimal: sign})
		if err == nil {
			_, err = ReadAll(d)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%c: error %v, want one with %q", sign, err, c.want)
		}
	}
}

// A file with the columns of a value a line is read where somebody has chosen among them.
func TestChosenColumnsAreRead(t *testing.T) {
	const text = "entity_id,state,last_changed,power,label\nsensor.x,1,2026-11-22T15:05:00Z,7,ok\n"
	for name, f := range map[string]Format{
		"columns":  {Columns: []string{"power"}},
		"ignore":   {Ignore: []string{"entity_id", "state", "last_changed"}},
		"features": {Features: []string{"power"}},
	} {
		d, err := newFile(strings.NewReader(text), "data.csv", f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rows, err := ReadAll(d); err != nil || len(rows) != 1 || !slices.Equal(rows[0].X, []float64{7}) {
			t.Errorf("%s: rows %v, %v", name, rows, err)
		}
	}
}

// Where nothing names the label, it is the column of that name, and without one the last.
func TestTheLabelByDefault(t *testing.T) {
	for text, want := range map[string]string{
		"label,a,b\n7,1,2\n": "7",
		"a,label,b\n1,7,2\n": "7",
		"Label,a,b\n1,2,7\n": "7",
		"1,2,7\n3,4,5\n":     "7",
	} {
		d, rows, err := rowsOf(t, text, "")
		if err != nil || rows[0].Label != want {
			t.Errorf("%q: features %v, rows %v, %v; want the label %s", text, d, rows, err, want)
		}
	}
	ignored, err := newFile(strings.NewReader("label,a,b\n7,1,2\n"), "data.csv", Format{Ignore: []string{"label"}})
	if err != nil || !slices.Equal(ignored.Features, []string{"a"}) {
		t.Errorf("features %v, %v, want a alone", ignored, err)
	}
}

// A text in the first row is perhaps the label, where the last column was taken for it.
func TestTextMayBeTheLabel(t *testing.T) {
	const hint = `; --ignore state leaves the column out, or, if it is the label, not "b": --label state`
	for text, want := range map[string]bool{
		"state,a,b\nok,1,2\n":            true,
		"state,a,b\n1,1,2\nok,1,2\n":     false, // numbers before it
		"state,a,b\n2026-01-02,1,2\n":    false,
		"state,a,b\n10:00,1,2\nok,1,2\n": false,
	} {
		if _, _, err := rowsOf(t, text, ""); err == nil || strings.Contains(err.Error(), hint) != want {
			t.Errorf("%q: error %v, with the hint: %v", text, err, want)
		}
	}
	if _, _, err := rowsOf(t, "state,a,b\nok,1,2\n", "b"); err == nil || strings.Contains(err.Error(), "if it is the label") {
		t.Errorf("with --label: error %v", err)
	}
}

// A column of words may count, and one of two with the same name is named by its number.
func TestHintsAtColumnsOfWords(t *testing.T) {
	for _, c := range []struct {
		text, want string
		words      bool
	}{
		{"color,a,label\nred,1,x\n", "--ignore color leaves the column out", true},
		{"a,label,b,label\n1,x,2,u\n", `--ignore 2 leaves the column out, or, if it is the label, not "label": --label 2`, true},
		{"a,since,label\n1,2026-11-27,x\n", "--ignore since leaves the column out", false},
		{"a,b,label\n1,2,x\n3,infinity,y\n", `"infinity" is not a finite number: an empty cell stands for a missing value; --ignore b leaves the column out`, false},
	} {
		_, _, err := rowsOf(t, c.text, "")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "are read by signals of a configuration") != c.words {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func TestDatasetGzip(t *testing.T) {
	text := "x,y,label\n" + strings.Repeat("1,2,class0\n3,4,class1\n5,6,class2\n", 20)
	packed := files.Gzip(t, text)
	path := files.Write(t, "table.csv.gz", packed)
	summary, err := Summarize(t.Context(), path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Rows: 60, Runs: 60, Classes: []string{"class0", "class1", "class2"}}
	if diff := cmp.Diff(want, summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if name := BaseName(path); name != "table" {
		t.Errorf("name %q, want table", name)
	}
	cut := files.Write(t, "cut.csv.gz", packed[:len(packed)/2])
	if _, err := Summarize(t.Context(), cut, Format{}); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "the packed file ends too early: copy it again") {
		t.Errorf("a cut file gives %v, want an unexpected end", err)
	}
}

func TestSelection(t *testing.T) {
	const text = "x,label\n1,a\n2,a\n3,a\n4,b\n5,b\n6,b\n7,b\n"
	seed := func(n uint64) *uint64 { return &n }
	selected := func(t *testing.T, s Selection) []float64 {
		t.Helper()
		d, err := newFile(strings.NewReader(text), "data.csv", Format{})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.Of(d)
		if err != nil {
			t.Fatal(err)
		}
		all, err := ReadAll(rows)
		if err != nil {
			t.Fatal(err)
		}
		var x []float64
		for i, row := range all {
			if row.Number != i+1 {
				t.Errorf("row %d has number %d", i+1, row.Number)
			}
			if want := map[bool]string{true: "a", false: "b"}[row.X[0] < 4]; row.Label != want {
				t.Errorf("row %v has label %s, want %s", row.X, row.Label, want)
			}
			x = append(x, row.X[0])
		}
		return x
	}
	whole := []float64{1, 2, 3, 4, 5, 6, 7}
	if got := selected(t, Selection{}); !slices.Equal(got, whole) {
		t.Errorf("everything: %v", got)
	}
	if got := selected(t, Selection{First: 3}); !slices.Equal(got, whole[:3]) {
		t.Errorf("first 3: %v", got)
	}
	if got := selected(t, Selection{First: 30}); !slices.Equal(got, whole) {
		t.Errorf("first 30 of 7: %v", got)
	}
	one, again, two := selected(t, Selection{Shuffle: seed(1)}), selected(t, Selection{Shuffle: seed(1)}), selected(t, Selection{Shuffle: seed(2)})
	if !slices.Equal(one, again) || slices.Equal(one, two) || slices.Equal(one, whole) {
		t.Errorf("shuffles by seeds 1, 1, 2: %v, %v, %v", one, again, two)
	}
	if got := selected(t, Selection{Shuffle: seed(1), First: 4}); !slices.Equal(got, one[:4]) {
		t.Errorf("first 4 of shuffle 1 are %v, want %v", got, one[:4])
	}
	slices.Sort(one)
	if !slices.Equal(one, whole) {
		t.Errorf("the shuffle is no permutation: %v", one)
	}
	within := selected(t, Selection{Shuffle: seed(5), Within: []int{3, 4}})
	slices.Sort(within[:3])
	slices.Sort(within[3:])
	if !slices.Equal(within, whole) {
		t.Errorf("the shuffle within batches of 3 and 4 mixed them: %v", within)
	}
	d, _ := newFile(strings.NewReader(text), "data.csv", Format{})
	if _, err := (Selection{Shuffle: seed(1), Within: []int{3, 3}}).Of(d); err == nil || !strings.Contains(err.Error(), "add up to 6 rows, the file has 7") {
		t.Errorf("batches that do not fit: %v", err)
	}
}

// Many columns are read; more than maxColumns are refused at once.
func TestManyColumns(t *testing.T) {
	table := func(n int) string {
		var head, row strings.Builder
		for i := range n {
			fmt.Fprintf(&head, "c%d,", i)
			row.WriteString("1,")
		}
		return head.String() + "label\n" + row.String() + "ok\n"
	}
	d, rows, err := rowsOf(t, table(20000), "")
	if err != nil || len(rows) != 1 || len(d.Features) != 20000 || len(rows[0].X) != 20000 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for name, f := range map[string]Format{
		"ignored": {Ignore: []string{"1-19990"}}, "chosen": {Columns: []string{"c7", "10001-10009"}}, "wanted": {Features: d.Features[19990:]},
	} {
		d, err := newFile(strings.NewReader(table(20000)), "data.csv", f)
		if err != nil || len(d.Features) != 10 {
			t.Errorf("%s: %d features, %v", name, len(d.Features), err)
		}
	}
	if _, _, err := rowsOf(t, table(maxColumns), ""); err == nil || !strings.Contains(err.Error(), "100001 columns; at most 100000 are read") {
		t.Errorf("%v", err)
	}
}

// wide returns text as UTF-16.
func wide(text string, big bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		if big {
			b = binary.BigEndian.AppendUint16(b, u)
		} else {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
	}
	return string(b)
}

func FuzzDataset(f *testing.F) {
	for _, text := range []string{
		"a,b,label\n1,-2.5,ok\n0.003,4e10,worn out\n", "a,b,label\n1,\"2\n\",ok\n", "\xef\xbb\xbfa,b\n1,\"\"\n", files.Gzip(f, "a,label\n1,x\n"),
		"a;b;label\n1,5;-2,5;ok\n", "a\tb\tlabel\n1\t\tok\n", "1|2|3\n4|5|6\n", "\xff\xfe" + wide("a;b\r\n1,5;x\r\n", false), "\xfe\xff" + wide("a,b\n1,x\n", true),
		"a,b\r1,2\r", "# so\na,b\n1,x\n", "a,b,\n1,NA,\n?,x\n", ",a,label\n0,1,x\n", "\"a;b\";label\n1;x\n", "#,#\n#\n1,2\n",
		" 1  2.5 x\n3\tNaN  y \n", "{\"a\":{\"b\":1},\"label\":\"x\"}\n", "[[[{\"a\":1}]]]", "a/b {\"x\":1}\n", "a/b 1\na/c 2\n", "Title\n\na,b\n1,x\n",
	} {
		f.Add([]byte(text), "", "")
		f.Add([]byte(text), "1", "2")
		f.Add([]byte(text), "label", "a,b")
	}
	f.Fuzz(func(t *testing.T, data []byte, label, columns string) {
		for _, how := range []Format{
			{}, {Unlabeled: true}, {Label: label, Ignore: strings.Split(columns, ",")}, {Label: label, Columns: strings.Split(columns, ",")},
			{Header: "no", Separator: ';', Decimal: ','}, {Features: []string{"a", "b"}},
		} {
			d, err := newFile(bytes.NewReader(data), "data.csv", how)
			if err != nil {
				if len(err.Error()) > 2000 {
					t.Fatalf("an error of %d bytes", len(err.Error()))
				}
				continue // an error is fine; a panic or an invalid sample is not
			}
			var row Row
			for d.Next(&row) == nil {
				if len(row.X) != len(d.Features) || len(row.X) == 0 || how.Unlabeled && row.Label != "" {
					t.Fatalf("row %+v for features %q", row, d.Features)
				}
				if slices.ContainsFunc(row.X, func(v float64) bool { return math.IsInf(v, 0) }) {
					t.Fatalf("row %+v is not finite", row)
				}
			}
		}
	})
}

func FuzzIdx(f *testing.F) {
	images := binary.BigEndian.AppendUint32(nil, IdxImages)
	for _, size := range []uint32{3, 2, 2} {
		images = binary.BigEndian.AppendUint32(images, size)
	}
	images = append(images, make([]byte, 3*2*2)...)
	f.Add(images)
	f.Add(images[:15])
	f.Add([]byte(files.Gzip(f, string(images))))
	f.Add([]byte{0, 0, 8, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for dims, kind := range map[int]uint32{1: IdxLabels, 3: IdxImages} {
			values, sizes, err := decodeIdx(bytes.NewReader(data), "images", kind, dims)
			if err != nil {
				continue
			}
			n := 1
			for _, size := range sizes {
				n *= size
			}
			if len(sizes) != dims || len(values) != n {
				t.Fatalf("%d values in %v", len(values), sizes)
			}
		}
	})
}

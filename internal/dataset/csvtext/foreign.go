package csvtext

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// noTable describes a text that is no table of cells, and the remedy; "" for a table.
func noTable(head string) string {
	line, rest, _ := strings.Cut(head, "\n")
	if len(head) > 262 && head[257:262] == "ustar" {
		return "a tar archive: unpack it, tar -xf FILE"
	}
	if strings.Contains(line, "\x00") {
		return "the first line has NUL bytes: text in UTF-16 or UTF-32 without a byte-order mark, which iconv -f UTF-16LE -t UTF-8 converts, or no text at all"
	}
	if strings.ContainsFunc(line[:min(len(line), 1000)], isControl) {
		return "the first line has control characters, so that this is no text: want CSV with a header line"
	}
	text := strings.TrimSpace(head)
	topic, payload, _ := strings.Cut(text, " ")
	switch {
	case strings.HasPrefix(strings.TrimPrefix(text, `"`), "TOA5"):
		return "TOA5 of Campbell Scientific, whose header has four lines: sed '1d;3,4d' FILE >FILE.csv leaves the names and the rows"
	case byColumns(text):
		return "JSON of columns: want CSV with a header line; " + fromPandas("json")
	case isJSON(text), strings.HasPrefix(line, "[") && json.Valid([]byte(line)):
		return "JSON: want CSV with a header line; " + jqCommand("jq -nr %s FILE", text)
	case strings.HasPrefix(text, "version https://git-lfs"):
		return "a pointer of Git LFS in place of the file: git lfs pull fetches it"
	case strings.HasPrefix(text, "<"):
		return "HTML or XML: want CSV with a header line; a page may have been downloaded in place of the file"
	case strings.Contains(topic, "/") && isJSON(payload):
		return "a topic and its payload a line, as mosquitto_sub -v writes them: want CSV with a header line; " + jqCommand("cut -d' ' -f2- FILE | jq -nr %s", payload)
	case strings.HasPrefix(text, "{'"):
		return `objects as Python prints them, which are no JSON: sed "s/'/\"/g" FILE >FILE.json makes JSON of them`
	case isTopic(text) && isTopic(rest):
		return "a topic and its value a line, as mosquitto_sub -v writes them: want CSV with a header line, a column for each topic and a line for each row of values"
	case isSparse(line):
		return `LIBSVM, with the numbers of the features: awk -v D=9 '{split("",v); for(i=2;i<=NF;i++) {split($i,a,":"); v[a[1]]=a[2]}; s=$1; for(i=1;i<=D;i++) s=s","(i in v?v[i]:0); print s}' FILE >FILE.csv makes rows of D = 9 features after the label: --header no --label 1`
	case wristband(line, rest) != "":
		return "of Empatica E4: the first line is the start in Unix time, the second has the rows a second; awk -F, 'BEGIN{print \"t," + wristband(line, rest) + "\"} NR==1{t=$1} NR==2{r=$1} NR>2{printf \"%.6f,%s\\n\",t+(NR-3)/r,$0}' FILE >FILE.csv makes rows with times, below names"
	case namedCells(line, rest) != "":
		return "a name before each value: want CSV with a header line; " + namedCells(line, rest) + " FILE >FILE.csv makes it"
	case isLineProtocol(line):
		return "line protocol of InfluxDB, which streams of format: influx read: want CSV with a header line and a column for each field"
	}
	for strings.HasPrefix(text, "%") || strings.HasPrefix(text, "#") { // comments
		_, text, _ = strings.Cut(text, "\n")
		text = strings.TrimSpace(text)
	}
	switch lower := strings.ToLower(text[:min(len(text), 20)]); {
	case strings.HasPrefix(lower, "@relation"):
		names, count, sparse := attributes(head)
		if sparse {
			rows := fmt.Sprintf(`sed '1,/^@data/Id' FILE | awk -F'[{},]' '{split("",v); for(i=2;i<NF;i++) {split($i,a," "); v[a[1]]=a[2]}; s=""; for(i=0;i<%d;i++) s=s (i?",":"") (i in v?v[i]:0); print s}'`, count)
			if names != "" {
				rows = "{ echo '" + names + "'; " + rows + "; }"
			}
			return "sparse ARFF: " + rows + " >FILE.csv makes a table, with 0 for the first class"
		}
		if names != "" {
			return "ARFF: { echo '" + names + "'; sed '1,/^@data/Id' FILE; } >FILE.csv makes a table of it"
		}
		return "ARFF: sed '1,/^@data/Id' FILE >FILE.csv leaves its rows, above which a line with the names of the columns is missing then"
	case strings.HasPrefix(lower, "@problemname"):
		return "time series in the format ts: sed '1,/^@data/d; s/:/,/g' FILE >FILE.csv makes rows of one dimension, whose label is the last cell"
	}
	return ""
}

// noText describes a file that is neither text nor packed by gzip, and the remedy; "" for text.
func noText(begin string) string {
	const (
		numpy  = `python3 -c 'import numpy; numpy.savetxt("FILE.csv", numpy.load("FILE"), delimiter=",")' makes rows without names`
		sqlite = `sqlite3 -header -csv FILE 'SELECT * FROM TABLE' >FILE.csv makes it`
		save   = "save it so"
		pickle = "a pickle of Python"
	)
	for _, of := range [...]struct{ magic, name, remedy string }{
		{"PAR1\x15", "Parquet", fromPandas("parquet")},
		{"ARROW1\x00", "Arrow, or Feather", fromPandas("feather")},
		{"FEA1", "Feather", fromPandas("feather")},
		{"\x93NUMPY", "NumPy", numpy},
		{"SQLite format", "SQLite", sqlite},
		{"\x89HDF", "HDF5", save},
		{"MATLAB ", "MATLAB", save},
		{"\xd0\xcf\x11\xe0", "a spreadsheet", save},
		{"\x89PNG", "a picture", save},
		{"%PDF-", "PDF", save},
		{"\x80\x02", pickle, save},
		{"\x80\x03", pickle, save},
		{"\x80\x04", pickle, save},
		{"\x80\x05", pickle, save},
	} {
		if strings.HasPrefix(begin, of.magic) {
			return of.name + ": want CSV with a header line; " + of.remedy
		}
	}
	by, program := "", ""
	switch {
	case len(begin) >= 20 && begin[16:20] == "\xed\xda\x0c\xed": // bbolt's first page
		return "a state file: edge inspect shows what is in it"
	case strings.HasPrefix(begin, "PK\x03\x04") && strings.Contains(begin, ".npy"): // the name of the first member
		return `arrays of NumPy: want CSV with a header line; python3 -c 'import numpy; a = numpy.load("FILE"); numpy.savetxt("FILE.csv", numpy.column_stack([a["X"], a["y"]]), "%s", ",")' makes rows without names of the arrays X and y, of which y is the label; print(a.files) lists those that there are`
	case strings.HasPrefix(begin, "PK\x03\x04"):
		return "a zip archive: unpack it, unzip -p FILE >FILE.csv; of a spreadsheet save a sheet as CSV"
	case strings.HasPrefix(begin, "7z\xbc\xaf\x27\x1c"):
		return "a 7z archive: unpack it, 7z x FILE"
	case strings.HasPrefix(begin, "Rar!\x1a\x07"):
		return "a RAR archive: unpack it, unrar x FILE"
	case strings.HasPrefix(begin, "\x04\x22\x4d\x18"):
		by, program = "lz4", "lz4"
	case strings.HasPrefix(begin, "\xfd7zXZ\x00"):
		by, program = "xz", "xz"
	case strings.HasPrefix(begin, "\x28\xb5\x2f\xfd"):
		by, program = "zstd", "zstd"
	case strings.HasPrefix(begin, "BZh") && strings.Contains(begin, "1AY&SY"):
		by, program = "bzip2", "bzip2"
	default:
		return ""
	}
	return fmt.Sprintf("packed by %s: unpack it, %s -dc FILE >FILE.csv", by, program)
}

// fromPandas returns the command by which pandas makes a table of a format that it reads.
func fromPandas(format string) string {
	return `python3 -c 'import pandas; pandas.read_` + format + `("FILE").to_csv("FILE.csv", index=False)' makes it`
}

// isControl reports whether a character occurs in binary data alone.
func isControl(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n\f\v", r) }

// attributes returns the header line that a file of ARFF needs, "" if it is long or has names that
// need quotes, and the number of attributes. sparse: each row names those that are not 0.
func attributes(head string) (text string, count int, sparse bool) {
	const longest = 160
	var names []string
	data, quotes := false, false
	for line := range strings.Lines(head) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case data:
			sparse = sparse || strings.HasPrefix(words[0], "{")
		case strings.EqualFold(words[0], "@data"):
			data = true
		case len(words) > 2 && strings.EqualFold(words[0], "@attribute"):
			names = append(names, words[1])
			quotes = quotes || strings.ContainsAny(words[1], `'",{\`)
		}
	}
	if text = strings.Join(names, ","); quotes || len(text) > longest {
		text = ""
	}
	return text, len(names), sparse
}

// isJSON reports whether a text begins with an object, or an array of arrays or objects.
func isJSON(text string) bool {
	inner := strings.TrimSpace(text[min(1, len(text)):])
	return strings.HasPrefix(text, "{") && strings.HasPrefix(inner, "\"") || strings.HasPrefix(text, "[") && (strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "["))
}

// byColumns reports whether a text is one object that has the values of each column under its name, in an object
// or an array, as to_json of pandas writes it.
func byColumns(text string) bool {
	values := json.NewDecoder(strings.NewReader(text))
	if values.Decode(new(json.RawMessage)) == nil && values.More() {
		return false
	}
	columns, of := 0, gjson.Parse(text)
	if !of.IsObject() || of.Get("features").Exists() {
		return false
	}
	of.ForEach(func(_, v gjson.Result) bool {
		first := v.Get("0")
		if columns++; !first.Exists() || first.Type == gjson.JSON {
			columns = -1
		}
		return columns > 0
	})
	return columns > 0
}

// isTopic reports whether the first line of a text has a topic of several levels and one more word.
func isTopic(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	return len(words) == 2 && strings.Contains(words[0], "/") && strings.ContainsFunc(words[0], unicode.IsLetter) && !strings.ContainsAny(line, separators)
}

// isSparse reports whether a line has a number, and others with the numbers of their features: 1 3:0.5 7:2.
func isSparse(line string) bool {
	words := strings.Fields(line)
	for i, word := range words {
		feature, value, ok := strings.Cut(word, ":")
		if i > 0 && !ok || i == 0 && ok {
			return false
		}
		if n, cells := numbers([]string{feature, value}); n == 0 || n < cells {
			return false
		}
	}
	return len(words) > 1
}

// wristband returns names for the columns of a file whose first line is a Unix time, and the second one a rate
// in Hz, each of them the same in all columns; "" for another file.
func wristband(line, rest string) string {
	names := "x,y,z"
	for i, most := range []float64{1e10, 1e3} {
		cells := strings.Split(strings.TrimSpace(line), ",")
		v, err := strconv.ParseFloat(cells[0], 64)
		if err != nil || v <= 0 || v > most || i == 0 && v < 1e9 {
			return ""
		}
		switch same := strings.Count(line, cells[0]) == len(cells); {
		case same && len(cells) == 1:
			names = "x"
		case !same || len(cells) != 3:
			return ""
		}
		line, rest, _ = strings.Cut(rest, "\n")
	}
	return names
}

// isLineProtocol reports whether a line has the parts of InfluxDB's line protocol: measurement and
// tags, fields, a time in ns.
func isLineProtocol(line string) bool {
	measurement, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	at := strings.LastIndexByte(rest, ' ')
	if at < 0 || measurement == "" || !strings.Contains(rest[:at], "=") {
		return false
	}
	_, err := strconv.ParseUint(rest[at+1:], 10, 63)
	return err == nil && len(rest[at+1:]) > 10
}

// deepest is the number of lists, and of objects, in each other in which values are looked for.
const deepest = 8

// jqCommand returns the jq command that makes a table of a text of JSON: of the members of its objects, or where
// they are too many for a line, or no numbers and words, as an example. The array features of a sample gives
// columns without names. command has its place.
func jqCommand(command, text string) string {
	const longest = 160
	each, object := objectsOf(text)
	if object.Get("features.0").Type == gjson.Number {
		each += "[.features[],.label]|"
		object = object.Get("features")
	}
	if object.IsArray() {
		return fmt.Sprintf(command, "'inputs|"+each+"@csv'") + " >FILE.csv makes one without it"
	}
	var names, paths []string
	membersOf(object, "", "", deepest, func(name, path string) {
		if at := slices.Index(names, "label"); at >= 0 {
			names, paths = slices.Insert(names, at, name), slices.Insert(paths, at, path)
		} else {
			names, paths = append(names, name), append(paths, path)
		}
	})
	program := func() string {
		return fmt.Sprintf(`'["%s"],(inputs|%s[%s])|@csv'`, strings.Join(names, `","`), each, strings.Join(paths, ","))
	}
	if what := program(); len(names) >= 2 && len(what) <= longest && !slices.ContainsFunc(names, func(name string) bool { return strings.ContainsAny(name, `"'\`) }) {
		return fmt.Sprintf(command, what) + " >FILE.csv makes it"
	}
	names, paths = []string{"x", "y", "label"}, []string{".x", ".y", ".label"}
	return fmt.Sprintf(command, program()) + " >FILE.csv makes it of the members x, y and label"
}

// objectsOf returns the first of several objects, or arrays, in a text of JSON, and how jq comes
// from a value to them. Of objects some of which have a label it is the first one with it.
func objectsOf(text string) (each string, object gjson.Result) {
	values := json.NewDecoder(strings.NewReader(text))
	first := json.RawMessage(text) // one value that is larger than the text
	several := values.Decode(&first) == nil && values.More()
	object = gjson.ParseBytes(first)
	for next := first; several && !object.Get("label").Exists() && values.Decode(&next) == nil; {
		if gjson.GetBytes(next, "label").Exists() {
			object = gjson.ParseBytes(next)
		}
	}
	for range deepest {
		inner := object.Get("#(label)")
		if !inner.Exists() {
			inner = object.Get("0")
		}
		if !object.IsArray() || !inner.IsArray() && !inner.IsObject() {
			break
		}
		each, object = each+".[]|", inner
	}
	if several || each != "" {
		return each, object
	}
	var all []list
	flat := listsIn(object, "", deepest, &all)
	tables := 0 // lists of lists, beside a list of the columns, perhaps
	for _, l := range all {
		if l.first.IsArray() {
			tables++
		}
	}
	for _, l := range all {
		if l.first.IsArray() && tables == 1 || len(all) == 1 {
			return l.path + "[]|", l.first
		}
	}
	if flat {
		return "", object
	}
	return "", gjson.Result{}
}

// list is an array of objects or arrays in a text of JSON.
type list struct {
	path  string // for jq
	first gjson.Result
}

// listsIn appends the lists in an object to all, those in its objects included, and reports
// whether it has neither lists nor objects. depth is as in membersOf. It is not inlined,
// which would put it into the program three times.
//
//go:noinline
func listsIn(object gjson.Result, path string, depth int, all *[]list) (flat bool) {
	flat = true
	object.ForEach(func(key, v gjson.Result) bool {
		at, first := path+jqKey(key.Str), v.Get("0")
		if v.IsObject() && depth > 1 {
			listsIn(v, at, depth-1, all)
		} else if v.IsArray() && (first.IsObject() || first.IsArray()) {
			*all = append(*all, list{at, first})
		}
		flat = flat && !v.IsObject() && !v.IsArray()
		return true
	})
	return flat
}

// membersOf passes the numbers, words and booleans of an object to use, each with its own key and
// its path for jq. depth is the number of objects in each other that are looked at. name is the key of
// the object, which its members with a $ have in extended JSON of MongoDB, as {"at":{"$date":…}}.
func membersOf(object gjson.Result, name, path string, depth int, use func(name, path string)) {
	if !object.IsObject() || depth == 0 {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		switch at := path + jqKey(key.Str); {
		case v.IsObject():
			membersOf(v, key.Str, at, depth-1, use)
		case name != "" && strings.HasPrefix(key.Str, "$"):
			use(name, at)
		case !v.IsArray():
			use(key.Str, at)
		}
		return true
	})
}

// jqKey returns the path of a member in its object, for a program of jq between the single quotes of
// a shell.
func jqKey(key string) string {
	for i := range len(key) {
		if c := key[i] | 0x20; key[i] != '_' && (c < 'a' || c > 'z') && (i == 0 || key[i] < '0' || key[i] > '9') {
			return "." + strings.ReplaceAll(string(gjson.AppendJSONString(nil, key)), "'", `\u0027`)
		}
	}
	return "." + key
}

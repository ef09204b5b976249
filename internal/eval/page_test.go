package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/internal/report"
	"edge/internal/report/htmlreport"
	"edge/test/files"
)

// Names of classes that would break a page that does not escape them.
var hostile = []string{`</td><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, "a & b <style> \u202e[31m'"}

// waveFile writes n rows of two features, whose classes have hostile names.
func waveFile(t testing.TB, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("x,y,label\n")
	w := dataset.NewWaveform(1)
	var row dataset.Row
	for range n {
		w.Next(&row)
		k, err := strconv.Atoi(row.Label)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%v,%v,\"%s\"\n", row.X[6], row.X[14], strings.ReplaceAll(hostile[k], `"`, `""`))
	}
	return files.Write(t, "wave.csv", b.String())
}

// evaluate returns the reports of a file, as JSON objects and as a parsed page.
func evaluate(t *testing.T, e *eval.Evaluation, path string) (objects []map[string]any, page *html.Node, text string) {
	t.Helper()
	e.Inducing = 10
	if err := e.Prepare([]string{path}); err != nil {
		t.Fatal(err)
	}
	p := htmlreport.Page{Title: "Test of " + hostile[0], Command: "edge eval " + hostile[1], Version: "edge", Date: time.Unix(0, 0).UTC()}
	err := e.Each(t.Context(), path, io.Discard, func(r *report.Report) error {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		var object map[string]any
		if err := json.Unmarshal(data, &object); err != nil {
			return err
		}
		objects, p.Reports = append(objects, object), append(p.Reports, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	if page, err = html.Parse(bytes.NewReader(out.Bytes())); err != nil {
		t.Fatal(err)
	}
	return objects, page, out.String()
}

// all returns the elements below n with a name and, unless "", a class.
func all(n *html.Node, name, class string) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name && (class == "" || attribute(d, "class") == class) {
			found = append(found, d)
		}
	}
	return found
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func byID(t *testing.T, page *html.Node, id string) *html.Node {
	t.Helper()
	for n := range page.Descendants() {
		if attribute(n, "id") == id {
			return n
		}
	}
	t.Fatalf("the page has no element %q", id)
	return nil
}

// text returns the text below n.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// rows returns the numbers in the body of the last table below n, row by row.
func rows(t *testing.T, n *html.Node) (numbers [][]float64) {
	t.Helper()
	tables := all(n, "table", "")
	for _, tr := range all(tables[len(tables)-1], "tr", "")[1:] {
		var row []float64
		for _, d := range all(tr, "data", "") {
			v, err := strconv.ParseFloat(attribute(d, "value"), 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		numbers = append(numbers, row)
	}
	return numbers
}

// The figures of the page are those of the JSON object, with every digit.
func TestPageHasTheNumbersOfTheReport(t *testing.T) {
	objects, page, _ := evaluate(t, eval.New(), waveFile(t, 900))
	r := objects[0]
	checked := 0
	for _, d := range all(byID(t, page, "r1"), "data", "") {
		key := attribute(d, "class")
		if key == "" {
			continue
		}
		var want any = r
		for name := range strings.SplitSeq(key, ".") {
			want = want.(map[string]any)[name]
		}
		if n, ok := want.(float64); ok {
			if got, err := strconv.ParseFloat(attribute(d, "value"), 64); err != nil || got != n {
				t.Errorf("%s is %s, in JSON %v", key, attribute(d, "value"), n)
			}
		} else if attribute(d, "value") != want {
			t.Errorf("%s is %s, in JSON %v", key, attribute(d, "value"), want)
		}
		checked++
	}
	if checked < 15 {
		t.Errorf("the page has %d figures of the report", checked)
	}
	curve := r["curve"].([]any)
	for id, key := range map[string]string{"r1-error": "error", "r1-loss": "nll"} {
		got := rows(t, byID(t, page, id).Parent)
		if len(got) != len(curve) {
			t.Fatalf("%s has %d rows, the curve %d", id, len(got), len(curve))
		}
		for i, p := range curve {
			if p := p.(map[string]any); got[i][0] != p["n"] || got[i][1] != p[key] {
				t.Errorf("%s, row %d: %v, want %v and %v", id, i, got[i], p["n"], p[key])
			}
		}
	}
	var ece, n float64
	for _, b := range rows(t, byID(t, page, "r1-reliability").Parent) {
		ece += b[2] * math.Abs(b[0]-b[1])
		n += b[2]
	}
	if n != r["samples"] || math.Abs(ece/n-r["ece"].(float64)) > 1e-12 {
		t.Errorf("the bins have %g samples and a calibration error of %g, the report %v and %v", n, ece/n, r["samples"], r["ece"])
	}
	sets := rows(t, byID(t, page, "r1-coverage").Parent)
	if last, want := sets[len(sets)-1][1], r["sets"].(map[string]any)["coverage"]; last != want {
		t.Errorf("the coverage ends at %g, want %v", last, want)
	}
}

// The confusion matrix and the scores of the classes belong to the report's classes.
func TestPageHasTheClassesOfTheReport(t *testing.T) {
	objects, page, _ := evaluate(t, eval.New(), waveFile(t, 400))
	perClass := objects[0]["per_class"].([]any)
	matrix := all(byID(t, page, "r1-confusion").Parent, "table", "matrix")[0]
	right, n := 0.0, 0.0
	for i, tr := range all(matrix, "tr", "")[1:] {
		sum := 0.0
		for j, td := range all(tr, "td", "") {
			v, err := strconv.ParseFloat(text(td), 64)
			if err != nil {
				t.Fatal(err)
			}
			if sum += v; i == j {
				right += v
			}
		}
		if want := perClass[i].(map[string]any); sum > want["n"].(float64) || sum < want["n"].(float64)-1 { // the first sample has no prediction
			t.Errorf("class %d has %g samples in the matrix, want %v", i, sum, want["n"])
		}
		n += sum
	}
	if want := 1 - right/n; math.Abs(want-objects[0]["error"].(float64)) > 0.01 {
		t.Errorf("the matrix has an error of %g, the report %v", want, objects[0]["error"])
	}
	got := map[float64][]float64{}
	for _, row := range rows(t, byID(t, page, "r1-classes").Parent) {
		got[row[2]] = row
	}
	for _, c := range perClass {
		c := c.(map[string]any)
		if row := got[c["n"].(float64)]; row == nil || row[0] != c["precision"] || row[1] != c["recall"] {
			t.Errorf("class %v has %v, want precision %v and recall %v", c["class"], row, c["precision"], c["recall"])
		}
	}
}

// The page of every kind of evaluation escapes names, loads nothing, and describes
// each chart by a sentence and a table.
func TestPageIsSafeAndComplete(t *testing.T) {
	path := waveFile(t, 300)
	for name, set := range map[string]func(e *eval.Evaluation){
		"prequential": func(e *eval.Evaluation) {},
		"seeds":       func(e *eval.Evaluation) { e.Seeds = 2 },
		"delayed":     func(e *eval.Evaluation) { e.Arrival.Delay = 20 },
		"split":       func(e *eval.Evaluation) { e.Mode, e.Splits.Repeats = "cv", 3 },
		"active": func(e *eval.Evaluation) {
			e.Queries = eval.Queries{Strategies: []string{"margin", "random"}, Budgets: []float64{0.1, 0.5}, Full: true}
		},
		"tiny":    func(e *eval.Evaluation) { e.Selection.First = 1 },
		"no sets": func(e *eval.Evaluation) { e.Coverage = 0 },
	} {
		e := eval.New()
		set(e)
		objects, page, source := evaluate(t, e, path)
		charts := 0
		for n := range page.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			switch n.Data {
			case "script", "img", "iframe", "object", "image", "use", "a":
				t.Errorf("%s: the page has an element %s", name, n.Data)
			case "figure":
				charts++
				if caption := all(n, "figcaption", ""); len(caption) != 1 || len(text(caption[0])) < 20 || len(all(n.Parent, "table", "")) == 0 {
					t.Errorf("%s: a chart lacks a sentence or a table", name)
				}
			case "svg":
				if attribute(n, "aria-label") == "" || strings.Count(text(n), " ") == 0 || len(all(n, "line", "axis")) != 2 {
					t.Errorf("%s: a drawing lacks a label or axes", name)
				}
			case "path", "circle", "rect", "line":
				for _, a := range n.Attr {
					if strings.Contains(a.Val, "NaN") || strings.Contains(a.Val, "Inf") {
						t.Errorf("%s: <%s %s=%q>", name, n.Data, a.Key, a.Val)
					}
				}
				if points := strings.Count(attribute(n, "d"), "L"); points > 500 {
					t.Errorf("%s: a curve has %d points", name, points)
				}
			}
			for _, a := range n.Attr {
				if a.Key == "src" || a.Key == "onerror" || a.Key == "href" && a.Val != "data:," {
					t.Errorf("%s: attribute %s=%q", name, a.Key, a.Val)
				}
			}
		}
		if charts < 2*len(objects) {
			t.Errorf("%s: %d charts for %d reports", name, charts, len(objects))
		}
		for _, s := range []string{"http://", "https://", "url(", "@import", "\u202e"} {
			if strings.Contains(source, s) {
				t.Errorf("%s: the page contains %q", name, s)
			}
		}
		if shown := text(page); name == "prequential" && !strings.Contains(shown, hostile[0]) {
			t.Errorf("the page does not show the class %s", hostile[0])
		}
	}
}

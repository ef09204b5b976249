package diagnosis

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// The table and the JSON of a diagnosis have the same findings.
func TestDiagnosis(t *testing.T) {
	d := &Diagnosis{V: 1, Grade: OK, Seconds: 1}
	d.OK("clock", "right")
	d.Warn("disk", "small", "buy another")
	d.Fail("broker", "gone", "look for it")
	d.OK("power", "on")
	var b bytes.Buffer
	if err := d.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := `ok    clock   right
warn  disk    small
              → buy another
fail  broker  gone
              → look for it
ok    power   on
2 well, 1 to know about, 1 failed; 1.0 s
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if d.Grade != Fail {
		t.Errorf("the grade of all is %s", d.Grade)
	}
	text, err := json.Marshal(d)
	if err != nil || gjson.GetBytes(text, "findings.1.advice").String() != "buy another" {
		t.Errorf("JSON is %s, %v", text, err)
	}
}

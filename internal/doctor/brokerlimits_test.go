package doctor

import (
	"strings"
	"testing"
)

// Messages that came tell of a session, whatever the broker says of it.
func TestJudgeSession(t *testing.T) {
	for name, tc := range map[string]struct {
		n, sent       int
		resumed       bool
		grade, detail string
	}{
		"all":             {3000, 3000, true, OK, "keeps 3000 messages and more"},
		"some":            {500, 3000, true, OK, "keeps 500 messages"},
		"few":             {50, 3000, true, Warn, "keeps 50 messages"},
		"none":            {0, 3000, true, Fail, "forgets a client's session"},
		"no session":      {0, 3000, false, Fail, "forgets a client's session"},
		"hidden session":  {3000, 3000, false, OK, "Session Present is 0"},
		"hidden, and few": {50, 3000, false, Warn, "Session Present is 0"},
	} {
		var d Diagnosis
		(&brokerProbe{d: &d}).judgeSession(tc.n, tc.sent, tc.resumed)
		if f := d.Findings[0]; f.Grade != tc.grade || !strings.Contains(f.Detail, tc.detail) || tc.resumed == strings.Contains(f.Detail, "Session Present") && tc.n > 0 {
			t.Errorf("%s: %s: %s", name, f.Grade, f.Detail)
		}
	}
}

package web

import (
	"os/exec"
	"strings"
	"testing"
)

// The page follows the model that its address names, or else stays with that of before.
// The rate of the samples is never below 0, and the samples of a daemon that has started
// again are offered whatever was answered before. The page of a follower does not wait for labels.
// Ages are by the node's clock where the answers tell it, and never below 0.
func TestPageProgram(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed: this test needs it (apt install nodejs); ci/page/run runs it with one")
	}
	out, err := exec.CommandContext(t.Context(), "node", "testdata/page.js").CombinedOutput()
	const want = `{"followed":["a","b","b","b"],"rates":["–","100","–","10"],"skipped":[1,0],"unjudged":["Nothing","Not"],"ages":[60,60,60,60,60,0]}`
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
}

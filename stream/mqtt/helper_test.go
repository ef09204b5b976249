package mqtt

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// longWait bounds every wait. No test passes because of it.
const longWait = 2 * time.Minute

// bubble runs a test on a clock of its own.
func bubble(name string, t *testing.T, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func equalTexts(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

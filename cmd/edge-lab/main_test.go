package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"edge/cmd/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// edge runs a command line of the laboratory in this process.
func edge(t testing.TB, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Execute(t.Context(), newRoot(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

package files

import (
	"os"
	"os/exec"
	"testing"
)

// Shell returns what a command prints that needs a program, as awk. Without the program the test is skipped, and
// fails with CI=true.
func Shell(t testing.TB, program, command string) (printed string, err error) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed, and CI=true: install it", program)
		}
		t.Skipf("%s is not installed", program)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	return string(out), err
}

package terminal

import "testing"

// The columns of a table become lines, each with its name in front.
func TestTurnedTable(t *testing.T) {
	const lines = "set\terror\tnll\t\na\t0.1\t0.25\t\n"
	if got, want := aligned(lines, 0), "set  error  nll   \na    0.1    0.25  \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := aligned(turn(lines), 0), "set    a     \nerror  0.1   \nnll    0.25  \n"; got != want {
		t.Errorf("turned: %q, want %q", got, want)
	}
	if got := widest("ab \n±–c  \n"); got != 3 {
		t.Errorf("widest line: %d", got)
	}
}

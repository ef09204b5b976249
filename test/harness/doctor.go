package harness

import "testing"

// DoctorFindings runs edge doctor with --json by run until good accepts its output. Each run is
// more patient than the one before: on a loaded machine a broker answers later.
func DoctorFindings(t testing.TB, run func(t testing.TB, args ...string) (code int, out, errOut string), config string, good func(code int, out string) bool) (code int, out, errOut string) {
	t.Helper()
	for _, times := range []string{"1", "4", "16"} {
		if code, out, errOut = run(t, "doctor", "-c", config, "--json", "--patience", times); good(code, out) {
			break
		}
	}
	return code, out, errOut
}

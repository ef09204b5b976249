package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/persist"
	"edge/test/harness"
)

// TestVerify runs verify on a daemon's file, which is sound beside the daemon and
// after a kill. With any page zeroed, overwritten or cut off, verify reports the
// damage that the next start repairs, and predicts the loss.
func TestVerify(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	b := brokertest.New(t, brokertest.Embedded)
	config, store := harness.WaveformConfig(t, b.URL())
	d := harness.Start(t, config)
	d.Await("connected to the broker")
	harness.Replay(t, data, "--broker", b.URL())()
	harness.AwaitSamples(t, b, 400)
	if code, r := harness.Verify(t, store); code != exit.OK || !r.InUse || r.Models[0].JournalLast < 400 {
		t.Errorf("beside the daemon, verify exits with %d: %+v", code, r)
	}
	d.Kill()
	if code, r := harness.Verify(t, store); code != exit.OK || r.InUse || len(r.Models) != 1 || len(r.Models[0].Checkpoints) != 2 {
		t.Fatalf("after a kill, verify exits with %d: %+v", code, r)
	}
	if code, out, _ := harness.Run(t, "verify", store); code != exit.OK || !strings.Contains(out, "sound") || !strings.Contains(out, "model waveform: checkpoints at") {
		t.Errorf("verify exits with %d and prints %q", code, out)
	}

	sound, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	damaged, step := 0, brokertest.Brief(6, 8)
	for n := 0; n < len(sound)/page; n += step {
		for name, damage := range map[string]func([]byte) []byte{
			"zeroed":      func(f []byte) []byte { clear(f[n*page : (n+1)*page]); return f },
			"overwritten": func(f []byte) []byte { copy(f[n*page:(n+1)*page], strings.Repeat("edge", page/4)); return f },
			"cut":         func(f []byte) []byte { return f[:n*page+n%2*page/2] },
		} {
			path := filepath.Join(t.TempDir(), "edge.db")
			if err := os.WriteFile(path, damage(slices.Clone(sound)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, r := harness.Verify(t, path)
			s, err := persist.Open(path, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			recovery := s.Recovery()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if (code == exit.OK) != (recovery == nil) {
				t.Errorf("page %d %s: verify exits with %d and finds %q, the start repairs %+v", n, name, code, r.Problems, recovery)
			}
			if recovery == nil {
				continue
			}
			damaged++
			predicted := map[string]persist.Loss{}
			for _, m := range r.Models {
				predicted[m.Model] = persist.Loss{State: m.StateLost, Samples: m.SamplesLost, Pending: m.PendingLost, More: m.MoreLost, Notes: m.Notes}
			}
			if diff := cmp.Diff(recovery.Models, predicted); diff != "" {
				t.Errorf("page %d %s: −repaired +predicted:\n%s", n, name, diff)
			}
		}
	}
	if damaged == 0 {
		t.Error("no damaged file: the damage has no effect")
	}
}

package persist

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"edge/online"
)

// TestMain runs crashChild where the test binary is the child of a crash test.
func TestMain(m *testing.M) {
	if path := os.Getenv("PERSIST_CRASH_PATH"); path != "" {
		if err := crashChild(path, os.Getenv("PERSIST_CRASH_STEP")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	crashDedupe  = 100
	crashPending = 3      // pending samples after any commit, see crashCommit
	crashState   = 30_000 // bytes
)

var crashModels = []string{"bearing", "pump"}

// crashCommit returns a commit of records after+1 … to of both models, after which
// each has the last three samples pending.
func crashCommit(after, to uint64) *online.Commit {
	c := &online.Commit{}
	for n := after + 1; n <= to; n++ {
		for _, name := range crashModels {
			c.Records = append(c.Records, sample(name, n))
			c.Wait = append(c.Wait, pendingSample(name, n))
			if n > crashPending {
				c.Forget = append(c.Forget, pendingSample(name, n-crashPending))
			}
		}
	}
	return c
}

// crashChild commits and checkpoints for ever, and prints the last confirmed record.
// With a step it kills itself at that step; with a number n, at the n-th step.
func crashChild(path, step string) error {
	opts := Options{Dedupe: crashDedupe}
	if step != "" {
		nth, _ := strconv.Atoi(step)
		opts.Fault = func(at string) error {
			if nth--; at == step || nth == 0 {
				return kill()
			}
			return nil
		}
	}
	s, err := Open(path, opts)
	if err != nil {
		return err
	}
	var last uint64
	for _, name := range crashModels {
		r, err := s.Load(name, testShape)
		if err != nil {
			return err
		}
		last = r.Seq + uint64(len(r.Records))
	}
	rng := rand.New(rand.NewPCG(last, 0))
	for {
		to := last + 1 + rng.Uint64N(5)
		if err := s.Commit(crashCommit(last, to)); err != nil {
			return err
		}
		last = to
		fmt.Println(last)
		if rng.IntN(10) == 0 {
			for _, name := range crashModels {
				if err := s.Checkpoint(name, last-rng.Uint64N(2), stateOf(last, crashState)); err != nil && !errors.Is(err, ErrSequence) {
					return err
				}
			}
		}
	}
}

// kill ends this process as kill -9 does.
func kill() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Kill(); err != nil {
		return err
	}
	select {}
}

func crashCommand(t *testing.T, path, step string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("kill -9 and file locks are those of unix")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := append(strings.Fields(os.Getenv("EDGE_EMULATOR")), self) // runs a test binary of another architecture
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "PERSIST_CRASH_PATH="+path, "PERSIST_CRASH_STEP="+step)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilled repeatedly kills a process that commits and checkpoints on one file:
// every confirmed record must be in the file, in order and once.
func TestKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PERSIST_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("PERSIST_CRASH_SEED=%d repeats the times of the kills", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := tempPath(t)
	var confirmed, checkpoints uint64
	for range 30 {
		cmd := crashCommand(t, path, "")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// One child in three is killed at a random time after its start, the others
		// a number of lines after their first commit, so that slow machines test
		// kills between commits as well.
		delay, lines := time.Minute, rng.IntN(60)
		if rng.IntN(3) == 0 {
			delay, lines = time.Duration(rng.IntN(100_000))*time.Microsecond, 1e9
		}
		timer := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		for out := bufio.NewScanner(out); out.Scan(); lines-- {
			n, err := strconv.ParseUint(out.Text(), 10, 64)
			if err != nil {
				break // cut off by the kill
			}
			confirmed = max(confirmed, n)
			if lines == 0 {
				timer.Reset(time.Duration(rng.IntN(3000)) * time.Microsecond)
			}
		}
		_ = cmd.Wait() // it was killed
		timer.Stop()
		last := checkKilled(t, path, confirmed, &checkpoints)
		confirmed = max(confirmed, last)
		if t.Failed() {
			return
		}
	}
	if confirmed < 100 || checkpoints == 0 {
		t.Errorf("only %d records and %d checkpoints were written before the kills: the test has no effect", confirmed, checkpoints)
	}
}

// TestKilledAtEachStep kills at the n-th step of a store, for every n: before and after
// each transaction writes, and while the store creates its file.
func TestKilledAtEachStep(t *testing.T) {
	var checkpoints uint64
	for n := 1; n <= 80; n += stride {
		path := tempPath(t)
		out, err := crashCommand(t, path, strconv.Itoa(n)).Output()
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("step %d: the child ended with %v, want it killed", n, err)
		}
		var confirmed uint64
		for line := range strings.Lines(string(out)) {
			if confirmed, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		checkKilled(t, path, confirmed, &checkpoints)
		if t.Failed() {
			t.Fatalf("after a kill at step %d", n)
		}
	}
	if checkpoints == 0 {
		t.Error("no checkpoint was written before a kill: the test has no effect")
	}
}

// checkKilled checks the file that a killed process left, and returns the number of
// its last record.
func checkKilled(t *testing.T, path string, confirmed uint64, checkpoints *uint64) (last uint64) {
	t.Helper()
	s, err := Open(path, Options{Dedupe: crashDedupe})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	if s.Recovery() != nil {
		t.Fatalf("a kill damaged the file: %v", s.Recovery().Problems)
	}
	for i, name := range crashModels {
		r, err := s.Load(name, testShape)
		if err != nil {
			t.Fatal(err)
		}
		end := r.Seq + uint64(len(r.Records))
		if i > 0 && end != last {
			t.Errorf("%s ends at %d, %s at %d: a commit is incomplete", crashModels[0], last, name, end)
		}
		last = end
		if end < confirmed {
			t.Errorf("%s: %d records were confirmed, the file has %d", name, confirmed, end)
		}
		if r.State != nil {
			*checkpoints++
			if string(r.State) != string(stateOf(r.Seq, crashState)) && string(r.State) != string(stateOf(r.Seq+1, crashState)) {
				t.Errorf("%s: the state at %d differs from the checkpoint", name, r.Seq)
			}
		}
		for i, got := range r.Records {
			want := sample(name, r.Seq+uint64(i)+1)
			want.Seq = r.Seq + uint64(i) + 1
			if !sameRecord(want, got) {
				t.Fatalf("%s: record %d is %+v, want %+v", name, want.Seq, got, want)
			}
		}
		var waits []online.Pending
		for n := end - min(end, crashPending) + 1; n <= end; n++ {
			waits = append(waits, pendingSample(name, n))
		}
		if !cmp.Equal(waits, r.Pending) {
			t.Errorf("%s: after %d records %d samples are pending: %+v, want %+v", name, end, len(r.Pending), r.Pending, waits)
		}
		keys := 0
		for n := end; n > 0 && keys < crashDedupe+50; n-- {
			if key := sample(name, n).Key; key != 0 {
				keys++
				if got, want := s.Seen(name, key), keys <= crashDedupe; got != want {
					t.Errorf("%s: Seen(key of record %d of %d) = %v, want %v", name, n, end, got, want)
				}
			}
		}
	}
	return last
}

// TestKilledWhileBuilding kills at every step of writing a new file: at creation,
// repair and compaction.
func TestKilledWhileBuilding(t *testing.T) {
	h := makeHistory(t, 6_000)
	for reason, prepare := range map[string]func(path string){
		"creation": func(string) {},
		"repair": func(path string) {
			file := append([]byte(nil), h.file...)
			clear(file[:pageSize])
			writeFile(t, path, file)
		},
		"compaction": func(path string) {
			s := newStore(t, path, Options{})
			tr := newTruths(t, s, "bearing")[0]
			growAndShrink(t, s, tr)
			closeStore(t, s)
		},
	} {
		for _, step := range []string{"sync file", "rename", "sync directory"} {
			t.Run(reason+"/"+step, func(t *testing.T) {
				path := tempPath(t)
				prepare(path)
				before, _ := os.ReadFile(path)
				cmd := crashCommand(t, path, step)
				if out, err := cmd.Output(); err == nil || !strings.Contains(err.Error(), "killed") {
					t.Fatalf("the child ended with %v, %q, want it killed", err, out)
				}
				if _, err := os.Stat(path + temporary); (err == nil) != (step != "sync directory") {
					t.Errorf("after a kill at %q the temporary file: %v", step, err)
				}
				switch after, _ := os.ReadFile(path); {
				case step == "sync directory" && string(before) == string(after):
					t.Error("the path does not name the new file")
				case step != "sync directory" && string(before) != string(after):
					t.Error("the file changed before the new one was complete")
				}
				switch reason {
				case "repair":
					s := newStore(t, path, Options{})
					if r := s.Recovery(); (r != nil) != (step != "sync directory") {
						t.Errorf("Recovery() = %+v", r)
					}
					closeStore(t, s)
					if step != "sync directory" {
						return
					}
					if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) != 1 {
						t.Errorf("kept %v, want the damaged file", kept)
					}
				case "compaction":
					s := newStore(t, path, Options{})
					if r, err := s.Load("bearing", testShape); err != nil || r.Seq != 3 || len(r.State) != smallState || s.Recovery() != nil {
						t.Errorf("after the crash: %+v, %v, %+v", r, err, s.Recovery())
					}
					closeStore(t, s)
				}
				s := newStore(t, path, Options{})
				play(t, rand.New(rand.NewPCG(10, 0)), s, newTruths(t, s, "new"), 10)
				closeStore(t, s)
				if _, err := os.Stat(path + temporary); err == nil {
					t.Error("the temporary file remains")
				}
			})
		}
	}
}

package persist

import (
	"fmt"
	"testing"

	"edge/online"
)

// report reports the bytes written to the disk, which wear flash out.
func report(b *testing.B, s *Store, before Stats) {
	b.Helper()
	after, err := s.Stats()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(after.WrittenBytes-before.WrittenBytes)/float64(b.N), "written-B/op")
}

func benchStore(b *testing.B) (*Store, Stats) {
	b.Helper()
	s := newStore(b, tempPath(b), Options{})
	newTruths(b, s, "m")
	st, err := s.Stats()
	if err != nil {
		b.Fatal(err)
	}
	return s, st
}

// BenchmarkCommit writes a checkpoint every 5000 records, as the daemon does.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("records=%d,D=33", n), func(b *testing.B) {
			s, before := benchStore(b)
			c := &online.Commit{Records: make([]online.Record, n)}
			var seq, kept uint64
			b.ReportAllocs()
			for b.Loop() {
				for i := range c.Records {
					seq++
					c.Records[i] = online.Record{Model: "m", Event: online.Event{
						Kind: online.Observe, Key: hash(seq), X: make([]float64, 33), Label: "class"}}
				}
				if err := s.Commit(c); err != nil {
					b.Fatal(err)
				}
				if seq-kept >= 5000 {
					b.StopTimer()
					kept = seq
					if err := s.Checkpoint("m", seq, []byte("state")); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
			report(b, s, before)
		})
	}
}

func BenchmarkCheckpoint(b *testing.B) {
	for _, size := range []int{400 << 10} {
		b.Run(fmt.Sprintf("state=%dKiB", size>>10), func(b *testing.B) {
			s, before := benchStore(b)
			c := &online.Commit{}
			for n := range uint64(5000) {
				c.Records = append(c.Records, sample("m", n+1))
			}
			if err := s.Commit(c); err != nil {
				b.Fatal(err)
			}
			state := stateOf(1, size)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Checkpoint("m", 5000, state); err != nil {
					b.Fatal(err)
				}
			}
			report(b, s, before)
		})
	}
}

// BenchmarkOpen reads and checks a file with a 400 KiB state and 5000 records.
func BenchmarkOpen(b *testing.B) {
	s, _ := benchStore(b)
	c := &online.Commit{}
	for n := range uint64(5000) {
		c.Records = append(c.Records, sample("m", n+1))
	}
	if err := s.Commit(c); err != nil {
		b.Fatal(err)
	}
	if err := s.Checkpoint("m", 0, stateOf(0, 400<<10)); err != nil {
		b.Fatal(err)
	}
	path := s.path
	closeStore(b, s)
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Load("m", testShape); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck measures a check, of which each transaction makes two.
func BenchmarkCheck(b *testing.B) {
	s, _ := benchStore(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.checkUnchanged(); err != nil {
			b.Fatal(err)
		}
	}
}

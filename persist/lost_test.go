package persist

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
)

// TestLostWrites restores the contents of one page, or of all data pages, from some
// commits ago, as a disk does that loses writes after confirming them.
func TestLostWrites(t *testing.T) {
	h := makeHistory(t, 6_000)
	bites := 0
	for ago, old := range h.before {
		// Not the meta pages: a meta page that never reached the disk is a commit
		// that was never confirmed.
		for n := 2; n <= len(h.file)/pageSize; n++ { // the last n: all of them
			from, to := n*pageSize, min((n+1)*pageSize, len(old))
			if to == len(old) && from >= to {
				from = 2 * pageSize
			}
			if from >= to || bytes.Equal(h.file[from:to], old[from:to]) {
				continue
			}
			t.Run(fmt.Sprintf("ago=%d/page=%d", 2*ago+1, n), func(t *testing.T) {
				path := tempPath(t)
				file := slices.Clone(h.file)
				copy(file[from:to], old[from:to])
				writeFile(t, path, file)
				if h.checkRepair(t, path, 20) != nil {
					bites++
				}
			})
		}
	}
	if bites == 0 {
		t.Error("no lost write was detected")
	}
}

// TestLostCheckpoint loses single pages of the last checkpoint: generations of one
// size alternate on the same pages, so that a lost write leaves a sound but older
// state.
func TestLostCheckpoint(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	var files [][]byte
	for n := range uint64(8) {
		if err := s.Checkpoint("m", 0, stateOf(n, 3000)); err != nil {
			t.Fatal(err)
		}
		files = append(files, readFile(t, path))
	}
	closeStore(t, s)
	last := files[len(files)-1]
	bites := 0
	for _, old := range files[:len(files)-1] {
		for at := 2 * pageSize; at < len(last); at += pageSize {
			if bytes.Equal(old[at:at+pageSize], last[at:at+pageSize]) {
				continue
			}
			path := tempPath(t)
			file := slices.Clone(last)
			copy(file[at:at+pageSize], old[at:])
			writeFile(t, path, file)
			s := newStore(t, path, Options{})
			r, err := s.Load("m", testShape)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.State, stateOf(7, 3000)) {
				bites++
				if len(r.Loss.Notes) == 0 {
					t.Errorf("page %d is older: Load returned an older state, and no note reports it", at/pageSize)
				}
			}
		}
	}
	if bites == 0 {
		t.Error("no lost write cost the newest state: the test has no effect")
	}
}

// TestStaleTree opens a file whose meta page points to a tree older than itself.
func TestStaleTree(t *testing.T) {
	h := makeHistory(t, 6_000)
	metas, _, err := readMetas(bytes.NewReader(h.file), int64(len(h.file)))
	if err != nil {
		t.Fatal(err)
	}
	file := slices.Clone(h.file)
	newer := file[metas[0].txid%2*pageSize:]
	older := file[metas[1].txid%2*pageSize:]
	copy(newer[pageHeader+16:pageHeader+48], older[pageHeader+16:]) // root to high-water mark
	sum := fnv.New64a()
	_, _ = sum.Write(newer[pageHeader : pageHeader+metaSize-8])
	byteOrder.PutUint64(newer[pageHeader+metaSize-8:], sum.Sum64())
	path := tempPath(t)
	writeFile(t, path, file)
	r := h.checkRepair(t, path, 1)
	if r == nil || !strings.Contains(strings.Join(r.Problems, "\n"), "lost a write") {
		t.Errorf("Recovery() = %+v, want a lost write", r)
	}
}

// TestMetaLost clears both meta pages: Open must find the newest tree.
func TestMetaLost(t *testing.T) {
	h := makeHistory(t, 6_000)
	path := tempPath(t)
	file := slices.Clone(h.file)
	clear(file[:2*pageSize])
	writeFile(t, path, file)
	h.checkRepair(t, path, 1)
	s := newStore(t, path, Options{})
	r, err := s.Load("bearing", testShape)
	if err != nil || r.Seq+uint64(len(r.Records)) < h.truths[0].last() {
		t.Errorf("%d records after %d were recovered, %v, want all up to %d", len(r.Records), r.Seq, err, h.truths[0].last())
	}
}

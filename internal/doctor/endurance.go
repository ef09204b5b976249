package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
	"edge/stream/field"
)

// Assumptions on the flash memory under a state, for its expected life.
const (
	flashCycles   = 500 // writes that each cell of a card (TLC) endures
	amplification = 10  // bytes that a card writes for one byte of small, scattered writes
	shortLife     = 5   // years
)

// Files that the doctor writes beside a state.
const (
	doctorFolder = ".edge-doctor-"
	doctorStore  = "trial.db"
)

// Endurance is the load that a configuration puts on the disk, measured with a
// scratch store.
type Endurance struct {
	Rate            float64 `json:"rate"`         // labelled samples a second of each stream
	Group           int     `json:"group"`        // of them share a commit
	CommitBytes     float64 `json:"commit_bytes"` // written for one commit
	CommitMicros    float64 `json:"commit_us"`    // median
	CommitsADay     float64 `json:"commits_per_day"`
	CheckpointBytes float64 `json:"checkpoint_bytes"`    // for one of each model
	CheckpointsADay float64 `json:"checkpoints_per_day"` // of each model
	BytesADay       float64 `json:"bytes_per_day"`
	Years           float64 `json:"years,omitempty"` // of the disk's life

	samples uint64 // after which a checkpoint is due, of the model with the largest; 0: never by count or size
}

// MeasureEndurance writes a scratch store in folder as the daemon would and counts
// the written bytes. It commits for at most within.
func MeasureEndurance(ctx context.Context, cfg *config.Config, folder string, rate float64, within time.Duration) (e Endurance, err error) {
	removeScratch(folder)
	dir, err := os.MkdirTemp(folder, doctorFolder)
	if err != nil {
		return e, err
	}
	defer os.RemoveAll(dir)
	store, err := persist.Open(filepath.Join(dir, doctorStore), persist.Options{Dedupe: cfg.Store.Dedupe})
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s := &scratch{cfg: cfg, store: store, models: field.Names(cfg.Models), learners: map[string]online.Config{}, seqs: map[string]uint64{}}
	if err := s.load(); err != nil {
		return e, err
	}
	e.Rate, e.samples = rate, s.checkpointSamples()
	e.Group = cfg.Stream().CommitLoad(rate).Group
	if err := s.fillJournal(&e); err != nil {
		return e, err
	}
	if err := s.measureCommits(ctx, &e, within); err != nil || e.CommitMicros == 0 {
		return e, err
	}
	if err := s.measureCheckpoints(&e); err != nil {
		return e, err
	}
	e.perDay(cfg)
	return e, nil
}

// removeScratch removes the scratch stores of doctors that were killed. One that has just begun has locked
// the file that will be its store.
func removeScratch(folder string) {
	entries, _ := os.ReadDir(folder) // MkdirTemp reports a folder that cannot be used
	for _, e := range entries {
		dir := filepath.Join(folder, e.Name())
		if !strings.HasPrefix(e.Name(), doctorFolder) {
			continue
		}
		if err := persist.RemoveUnlocked(filepath.Join(dir, doctorStore)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			_ = persist.RemoveUnlocked(filepath.Join(dir, f.Name()))
		}
		_ = os.Remove(dir) // not where a file is left
	}
}

// scratch writes a store with the records and checkpoints of a configuration.
type scratch struct {
	cfg      *config.Config
	store    *persist.Store
	models   []string
	learners map[string]online.Config
	seqs     map[string]uint64 // of the last record, by model
}

// load opens the models of the configuration in the store.
func (s *scratch) load() (err error) {
	for _, name := range s.models {
		if s.learners[name], err = s.cfg.Learner(name); err != nil {
			return err
		}
		if _, err := s.store.Load(name, s.learners[name].Shape()); err != nil {
			return err
		}
	}
	return nil
}

// checkpointSamples returns the number of samples after which a checkpoint is due
// by count or size, 0 for never.
func (s *scratch) checkpointSamples() uint64 {
	samples := s.cfg.Store.Checkpoint.Samples
	if size := uint64(s.cfg.Store.Checkpoint.Size); size > 0 {
		for _, name := range s.models {
			record := online.Event{X: make([]float64, len(s.learners[name].Features)), Label: "class"}
			if n := max(size/uint64(record.Size()), 1); samples == 0 || n < samples {
				samples = n
			}
		}
	}
	return samples
}

// commit commits n labelled samples of a stream, which all of its models learn.
func (s *scratch) commit(stream string, n int) error {
	c := &online.Commit{}
	for range n {
		for _, name := range s.models {
			if !slices.Contains(s.cfg.Models[name].Streams, stream) {
				continue
			}
			s.seqs[name]++
			c.Records = append(c.Records, online.Record{Model: name, Event: online.Event{
				Kind: online.Observe, Key: s.seqs[name], X: make([]float64, len(s.learners[name].Features)), Label: "class"}})
		}
	}
	if len(c.Records) == 0 {
		return nil
	}
	return s.store.Commit(c)
}

// fillJournal makes the journal as long as it is half way between two checkpoints:
// a commit to a long journal writes more pages.
func (s *scratch) fillJournal(e *Endurance) error {
	const longest = 5000
	every, checkpoint := e.samples, s.cfg.Store.Checkpoint.Every
	if t := uint64(e.Rate * checkpoint.Seconds()); checkpoint > 0 && (every == 0 || t < every) {
		every = t
	}
	for _, stream := range usedStreams(s.cfg) {
		if err := s.commit(stream, int(min(every/2, longest))); err != nil {
			return err
		}
	}
	return nil
}

// measureCommits measures commits of each stream, at least one.
func (s *scratch) measureCommits(ctx context.Context, e *Endurance, within time.Duration) error {
	const counted = 57 // the commits of the redo log, and the transaction that moves them
	before, err := s.store.Stats()
	if err != nil {
		return err
	}
	var times []time.Duration
	deadline := time.Now().Add(within)
	for len(times) < counted && ctx.Err() == nil && (len(times) == 0 || time.Now().Before(deadline)) {
		for _, stream := range usedStreams(s.cfg) {
			began := time.Now()
			if err := s.commit(stream, e.Group); err != nil {
				return err
			}
			times = append(times, time.Since(began))
		}
	}
	if len(times) == 0 {
		return ctx.Err()
	}
	after, err := s.store.Stats()
	e.CommitBytes = float64(after.WrittenBytes-before.WrittenBytes) / float64(len(times))
	e.CommitMicros = medianMicros(times)
	return err
}

// measureCheckpoints measures one checkpoint of each model.
func (s *scratch) measureCheckpoints(e *Endurance) error {
	before, err := s.store.Stats()
	if err != nil {
		return err
	}
	for _, name := range s.models {
		learner := s.learners[name]
		state := make([]byte, learner.EncodedSize(max(len(learner.Classes.Names), 3)))
		for i := 0; i+8 <= len(state); i += 8 {
			binary.LittleEndian.PutUint64(state[i:], uint64(i))
		}
		if err := s.store.Checkpoint(name, s.seqs[name], state); err != nil {
			return err
		}
	}
	after, err := s.store.Stats()
	e.CheckpointBytes = float64(after.WrittenBytes - before.WrittenBytes)
	return err
}

// usedStreams returns the names of the streams that feed a model.
func usedStreams(c *config.Config) []string {
	return slices.DeleteFunc(field.Names(c.Streams), func(name string) bool {
		for _, m := range c.Models {
			if slices.Contains(m.Streams, name) {
				return false
			}
		}
		return true
	})
}

// perDay computes the commits, checkpoints and bytes of a day.
func (e *Endurance) perDay(cfg *config.Config) {
	const day = 86400.0
	if every := cfg.Store.Checkpoint.Every; every > 0 && e.Rate > 0 {
		e.CheckpointsADay = day / every.Seconds()
	}
	if e.samples > 0 {
		e.CheckpointsADay = max(e.CheckpointsADay, day*e.Rate/float64(e.samples))
	}
	for range usedStreams(cfg) {
		e.CommitsADay += cfg.Stream().CommitLoad(e.Rate).PerDay
	}
	e.BytesADay = e.CommitsADay*e.CommitBytes + e.CheckpointsADay*e.CheckpointBytes
}

// examineEndurance measures the writes and estimates the life of the disk.
func examineEndurance(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, rate float64, h host, within time.Duration) {
	const name = "writing"
	folder, err := stateFolder(cfg)
	if err != nil {
		return // examineDisk has reported it
	}
	e, err := MeasureEndurance(ctx, cfg, folder, rate, within)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		d.Fail(name, "this user cannot write beside the state: "+err.Error(), "run doctor as the daemon's user; then chown the folder to it")
		return
	case err != nil:
		d.Fail(name, "a test beside the state failed: "+err.Error(), "see free space and file system")
		return
	}
	const slowCommit = 200e3 // µs
	detail := fmt.Sprintf("a commit takes %.1f ms and writes %s", e.CommitMicros/1e3, terminal.Bytes(uint64(e.CommitBytes)))
	if e.CommitMicros > slowCommit {
		d.Add(name, diagnosis.Warn, detail, "the disk is slow to sync: labels are acknowledged late; use a faster card (A1, A2), or raise store.journal_flush so that more share a commit", e)
	} else {
		d.Add(name, diagnosis.OK, detail, "", e)
	}
	detail = fmt.Sprintf("%s a day at %g labelled messages a second of each stream (%s in checkpoints)", terminal.Bytes(uint64(e.BytesADay)), rate, terminal.Bytes(uint64(e.CheckpointsADay*e.CheckpointBytes)))
	_, total, ok := h.space(folder)
	if m := h.mountOf(folder); !ok || e.BytesADay == 0 || m != nil && m.inMemory() {
		d.Add("wear", diagnosis.OK, detail, "", e)
		return
	}
	e.Years = float64(total) * flashCycles / (amplification * e.BytesADay * 365)
	detail += fmt.Sprintf("; a card of %s lasts about %s, with %d writes of each cell and %d times as much written inside", terminal.Bytes(total), yearsText(e.Years), flashCycles, amplification)
	if e.Years < shortLife {
		d.Add("wear", diagnosis.Warn, detail, "raise store.journal_flush, so that labels share commits, and store.checkpoint.every; use a larger or an industrial card, or a disk", e)
		return
	}
	d.Add("wear", diagnosis.OK, detail, "", e)
}

// yearsText returns a number of years for people.
func yearsText(years float64) string {
	switch {
	case years > 100:
		return "more than 100 years"
	case years >= 2:
		return fmt.Sprintf("%.0f years", years)
	}
	return fmt.Sprintf("%.0f months", years*12)
}

package signal

import (
	"sort"
	"sync"

	"edge/stream/field"
)

// Progress is how far the next window of a device is.
type Progress struct {
	Device string
	Rows   int     // in it so far
	Part   float64 // of its length, from 0 to 1
	Last   int64   // time of the device's last row, in ns since 1970
}

// Windows are the windows in progress of a stage, by device. The stage writes them, and
// any goroutine may read them.
type Windows struct {
	mu sync.Mutex
	of map[string]Progress
}

// List returns the windows in progress, in the order of the devices' names.
func (w *Windows) List() []Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Progress, 0, len(w.of))
	for _, device := range field.Names(w.of) {
		all = append(all, w.of[device])
	}
	return all
}

// clear forgets all windows; w may be nil.
func (w *Windows) clear() {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		clear(w.of)
	}
}

func (w *Windows) set(p Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]Progress{}
	}
	w.of[p.Device] = p
}

// remove forgets the window of a device; w may be nil.
func (w *Windows) remove(device string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, device)
}

// report writes how far the next window of a device is.
func (s *Stage) report(d *device) {
	if s.opts.Windows != nil && d.last != 0 && s.windowed != nil && !s.cfg.Window.Length.Message {
		s.opts.Windows.set(s.progress(d))
	}
}

func (s *Stage) progress(d *device) Progress {
	p := Progress{Device: d.name, Last: d.last}
	w := &d.window
	switch length := s.cfg.Window.Length; {
	case d.rows == 0:
	case length.Rows > 0:
		p.Rows = d.rows
		if hop := s.cfg.Hop().Rows; d.rows >= length.Rows {
			p.Rows = length.Rows - hop + (d.rows-length.Rows)%hop
		}
		p.Part = float64(p.Rows) / float64(length.Rows)
	default:
		kept := w.times[w.at:]
		p.Rows = len(kept) - sort.Search(len(kept), func(i int) bool { return kept[i] >= w.next })
		p.Part = min(max(float64(d.last-w.next)/float64(length.Time), 0), 1)
	}
	return p
}

package web

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"edge/stream"
)

const (
	keptDevices  = 64 // of each model; a new one replaces the one that was silent longest
	shownDevices = 32 // of them, the most recent ones
	maxBands     = 96 // of a device's timeline
	bandShares   = 4  // classes that are distinguished within a band, the first ones
	maxNames     = 255
	shortestBand = time.Second
	longestBand  = 1024 * time.Second // 96 of them are a day and three hours
)

// timelines keeps the class of each device of a model, the time of its last change,
// and the sequence of the predicted classes. Its memory is bounded: bands get longer
// with the timeline, up to longestBand; then the oldest are dropped.
type timelines struct {
	devices  map[string]*device
	replaced bool      // a device was replaced by a new one
	start    time.Time // of the first band
	width    time.Duration
	names    []string // of classes, by their number in a band; the first is for all beyond maxNames
}

// device is a device that a model classifies. Its name is "" where topics do not
// contain one.
type device struct {
	name        string
	class       string // "" while no class is known
	since, last time.Time
	confidence  float64
	novelty     float64
	abstain     bool
	samples     uint64
	bands       []band // with samples, oldest first
}

// band counts the classes of the predictions in one piece of the timeline.
type band struct {
	at     int // its beginning is start + at·width
	shares [bandShares]share
	last   uint8 // class of the last prediction
}

// share is the number of predictions of one class in a band.
type share struct {
	n     uint32 // 0: no class
	class uint8
}

// add counts the class of a prediction in the band of its time. name is that of the device.
func (t *timelines) add(name, class string, s *stream.Prediction, now time.Time) {
	if t.devices == nil {
		t.devices, t.start, t.width, t.names = map[string]*device{}, now, shortestBand, []string{"other classes"}
	}
	d := t.devices[name]
	if d == nil {
		t.makeRoom()
		d = &device{name: name, since: now}
		t.devices[name] = d
	}
	if d.class != class {
		d.class, d.since = class, now
	}
	d.last, d.confidence, d.novelty, d.abstain = now, 0, s.Novelty, s.Abstain
	d.samples++
	if s.Class >= 0 {
		d.confidence = s.Probs[s.Class]
	}
	d.count(t.at(now), t.number(class))
}

// at returns the band of a time, which never decreases. It makes the bands longer if
// the timeline would have too many.
func (t *timelines) at(now time.Time) int {
	at := int(now.Sub(t.start) / t.width)
	for at >= maxBands && t.width < longestBand {
		t.width *= 2
		for _, d := range t.devices {
			d.merge()
		}
		at = int(now.Sub(t.start) / t.width)
	}
	return at
}

// makeRoom removes the device that was silent longest if there are too many.
func (t *timelines) makeRoom() {
	if len(t.devices) < keptDevices {
		return
	}
	var oldest *device
	for _, d := range t.devices {
		if oldest == nil || d.last.Before(oldest.last) {
			oldest = d
		}
	}
	delete(t.devices, oldest.name)
	t.replaced = true
}

// number returns the number of a class in the bands.
func (t *timelines) number(class string) uint8 {
	i := slices.Index(t.names, class)
	if i < 0 && len(t.names) <= maxNames {
		i = len(t.names)
		t.names = append(t.names, class)
	}
	return uint8(max(i, 0))
}

// count adds a prediction to the band with number at, which is not before the last.
func (d *device) count(at int, class uint8) {
	if n := len(d.bands); n == 0 || d.bands[n-1].at < at {
		oldest := at - maxBands + 1 // one band before it stays for the class at its beginning
		for len(d.bands) > 1 && d.bands[1].at <= oldest {
			d.bands = append(d.bands[:0], d.bands[1:]...)
		}
		d.bands = append(d.bands, band{at: at})
	}
	b := &d.bands[len(d.bands)-1]
	b.last = class
	b.add(class, 1)
}

// add counts predictions of a class.
func (b *band) add(class uint8, n uint32) {
	for i := range b.shares {
		s := &b.shares[i]
		if s.n == 0 {
			s.class = class
			if i == bandShares-1 {
				s.class = 0 // all others
			}
		}
		if s.class == class || i == bandShares-1 {
			s.n += n
			return
		}
	}
}

// merge joins pairs of bands.
func (d *device) merge() {
	merged := d.bands[:0]
	for _, b := range d.bands {
		b.at /= 2
		if n := len(merged); n > 0 && merged[n-1].at == b.at {
			to := &merged[n-1]
			for _, s := range b.shares {
				if s.n > 0 {
					to.add(s.class, s.n)
				}
			}
			to.last = b.last
			continue
		}
		merged = append(merged, b)
	}
	d.bands = merged
}

// timelinesView is the state of a model's devices in the API.
type timelinesView struct {
	From    time.Time    `json:"from"`     // when the timelines begin
	Devices []deviceView `json:"devices"`  // the most recent first, 32 at most
	Others  int          `json:"others"`   // devices that are not shown
	AtLeast bool         `json:"at_least"` // more devices than Others were seen
}

// deviceView is one device in a timelinesView.
type deviceView struct {
	Device     string     `json:"device"` // "" where topics do not contain one
	Class      string     `json:"class"`  // "" while no class is known
	Since      time.Time  `json:"since"`  // of the class
	Last       time.Time  `json:"ts"`     // of the last sample
	Confidence float64    `json:"confidence"`
	Novelty    float64    `json:"novelty"`
	Abstain    bool       `json:"abstain"`
	Samples    uint64     `json:"samples"`
	Timeline   []bandView `json:"timeline"`
}

// bandView is a piece of a timeline, until the next one begins or until now.
type bandView struct {
	Time   time.Time          `json:"ts"`
	Shares map[string]float64 `json:"shares"` // of the predictions, by class
}

// view describes the devices as they are now.
func (t *timelines) view(now time.Time) timelinesView {
	// Times are kept on the monotonic clock and shown on the present wall clock.
	wall := func(at time.Time) time.Time { return now.Add(-now.Sub(at)).Round(100 * time.Millisecond) }
	v := timelinesView{From: wall(now), Devices: []deviceView{}}
	if t.devices == nil {
		return v
	}
	first := max(0, t.at(now)-maxBands+1)
	v.From = wall(t.moment(first))
	var all []*device
	for _, d := range t.devices {
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b *device) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.name, b.name)) })
	shown := all[:min(len(all), shownDevices)]
	v.Others, v.AtLeast = len(all)-len(shown), t.replaced
	for _, d := range shown {
		of := deviceView{
			Device: d.name, Class: d.class, Since: wall(d.since), Last: wall(d.last),
			Confidence: d.confidence, Novelty: d.novelty, Abstain: d.abstain, Samples: d.samples,
		}
		for i, b := range d.bands {
			if b.at >= first {
				of.append(wall(t.moment(b.at)), t.shares(b))
			}
			// Its last class holds until the next sample.
			from := max(b.at+1, first)
			if next := i + 1; next < len(d.bands) && from < d.bands[next].at || next == len(d.bands) && t.moment(from).Before(now) {
				of.append(wall(t.moment(from)), map[string]float64{t.names[b.last]: 1})
			}
		}
		v.Devices = append(v.Devices, of)
	}
	return v
}

// moment returns the beginning of a band.
func (t *timelines) moment(at int) time.Time { return t.start.Add(time.Duration(at) * t.width) }

// append adds a band, unless it has the same class as the last one.
func (v *deviceView) append(at time.Time, shares map[string]float64) {
	if n := len(v.Timeline); n > 0 && len(shares) == 1 && maps.Equal(v.Timeline[n-1].Shares, shares) {
		return
	}
	v.Timeline = append(v.Timeline, bandView{at, shares})
}

// shares returns the fractions of a band's classes.
func (t *timelines) shares(b band) map[string]float64 {
	total := 0.
	for _, s := range b.shares {
		total += float64(s.n)
	}
	v := map[string]float64{}
	for _, s := range b.shares {
		if s.n > 0 {
			v[t.names[s.class]] += math.Round(1000*float64(s.n)/total) / 1000
		}
	}
	return v
}

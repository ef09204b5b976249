package homeassistant

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
)

// announceWithin bounds the random delay after the start of Home Assistant, when all devices
// announce themselves.
const announceWithin = 5 * time.Second

// Options are what Devices know of their node.
type Options struct {
	Node        string
	Prefix      string        // <base>/<node>/
	Control     bool          // requests are carried out
	MetricsLast time.Duration // how long scores are valid
	Wake        func()        // called when an announcement is due earlier than before
}

// Devices are the models of a node, each of them a device of Home Assistant. Any goroutine may use
// them.
type Devices struct {
	Config
	Options
	Delay func() time.Duration // of an announcement after the start of Home Assistant

	announceAt atomic.Pointer[time.Time] // time of the next announcement; nil: none is due

	mu      sync.Mutex
	buttons map[string][]string // keys of the announced buttons, by model, oldest first
	others  map[string]string   // names of other nodes' devices with the same identifier, by model
}

// New returns the devices of a node.
func New(cfg Config, o Options) *Devices {
	return &Devices{
		Config: cfg, Options: o, Delay: func() time.Duration { return rand.N(announceWithin) }, buttons: map[string][]string{}, others: map[string]string{},
	}
}

// Status takes the status of Home Assistant. When it starts, it may have lost all devices.
func (d *Devices) Status(payload []byte) {
	if string(payload) == "online" {
		d.AnnounceIn(d.Delay())
	}
}

// readOwn reads the announcement that the broker has kept from an earlier
// connection. Home Assistant may still show its buttons: buttons of classes that were
// removed since are removed by another announcement.
func (d *Devices) readOwn(model string, payload []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var unknown []string
	gjson.GetBytes(payload, "components").ForEach(func(key, component gjson.Result) bool {
		if strings.HasPrefix(key.Str, buttonKey) && component.Get("command_topic").Exists() && !slices.Contains(d.buttons[model], key.Str) {
			unknown = append(unknown, key.Str)
		}
		return len(unknown) < maxButtons
	})
	if len(unknown) > 0 {
		d.buttons[model] = append(unknown, d.buttons[model]...)
		d.AnnounceIn(0)
	}
}

// AnnounceIn makes an announcement due after that time.
func (d *Devices) AnnounceIn(after time.Duration) {
	at := time.Now().Add(after)
	d.announceAt.Store(&at)
	d.Wake()
}

// announced stores the keys of a model's buttons, and returns the keys of removed
// buttons.
func (d *Devices) announced(model string, now []string) (gone []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.buttons[model]
	for _, key := range now {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	for _, key := range all {
		if !slices.Contains(now, key) {
			gone = append(gone, key)
		}
	}
	if excess := len(gone) - maxGoneButtons; excess > 0 {
		forgotten := gone[:excess]
		gone = gone[excess:]
		all = slices.DeleteFunc(all, func(key string) bool { return slices.Contains(forgotten, key) })
	}
	d.buttons[model] = all
	return gone
}

// Next returns when an announcement is due; the zero time where none is.
func (d *Devices) Next() time.Time {
	if at := d.announceAt.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Due reports, once, that an announcement is due.
func (d *Devices) Due(now time.Time) bool {
	at := d.announceAt.Load()
	return at != nil && !now.Before(*at) && d.announceAt.CompareAndSwap(at, nil)
}

// id returns the identifier of a model in Home Assistant.
func (d *Devices) id(model string) string { return DeviceID(d.Node, model) }

// Topic returns the topic of the announcement of a model.
func (d *Devices) Topic(model string) string { return d.Announcement(d.Node, model) }

// DeviceID returns the identifier of a model of a node in Home Assistant.
func DeviceID(node, model string) string { return "edge_" + node + "_" + model }

// Announcement returns the topic on which a node announces a model.
func (c Config) Announcement(node, model string) string {
	return c.DiscoveryPrefix + "/device/" + DeviceID(node, model) + "/config"
}

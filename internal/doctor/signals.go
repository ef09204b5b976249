package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/terminal"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// maxPerSecond is the number of samples a second above which check warns.
const maxPerSecond = 1

// dayAndTime returns the weekday and the time that clocks of a zone show.
func dayAndTime(at time.Time, zone *time.Location) string { return at.In(zone).Format("Mon 15:04 MST") }

// describeSignals describes the stage of a stream with signals.
func describeSignals(w io.Writer, name string, s codec.Stream, verbose bool) {
	names, stage := s.FeatureNames(), s.StageConfig()
	from := strings.Join(slices.Compact(s.Filters()), ", ")
	as := ", as " + format(s)
	if n := len(s.Raw.Inputs); n > 0 {
		as = ", by " + terminal.Count(n, "input")
	}
	fmt.Fprintf(w, "stream   %s: %s from %s%s\n", name, terminal.Count(len(s.SignalNames()), "signal"), from, as)
	describeEntries(w, "", s)
	list := ": " + strings.Join(names, ", ")
	if !verbose && len(names) > 6 {
		list = fmt.Sprintf(": %s, … (-v lists them)", strings.Join(names[:4], ", "))
	}
	fmt.Fprintf(w, "         %s%s\n", terminal.Count(len(names), "feature"), list)
	if zone, err := stage.Zone(); err == nil && len(stage.Calendar) > 0 { // TZ that Go does not know is UTC
		fmt.Fprintf(w, "         the calendar has %s now; time_zone sets its zone\n", dayAndTime(time.Now(), zone))
	}
	size := stage.Size(s.Raw.Rate.Hz)
	if window := stage.Window; window.Length.Message {
		fmt.Fprintf(w, "         each message is a window; no rows are kept\n")
	} else if window.Length.Set() {
		late := ""
		if s.Raw.Rate.Hz > 0 && window.MaxGap == 0 {
			late = ", or of half of a message without times if that is longer"
		}
		fmt.Fprintf(w, "         windows of %s every %s, which begin anew after a silence of %v%s\n", rowsOrTime(window.Length), rowsOrTime(stage.Hop()), stage.Gap(s.Raw.Rate.Hz), late)
		kept, most := "at most", uint64(size.Most*size.RowBytes)
		if size.Rows > 0 && size.Rows < size.Most {
			kept = fmt.Sprintf("%d rows of %s, %s a device; at most", size.Rows, terminal.Count(size.Signals, "signal"), terminal.Bytes(uint64(size.Rows*size.RowBytes)))
		}
		with := ""
		if n := s.Devices(); n > 1 {
			with = fmt.Sprintf(", %s with %d devices", terminal.Bytes(most*uint64(n)), n)
		}
		fmt.Fprintf(w, "         memory: %s %d rows of %s, %s a device%s, and %s to compute the features\n",
			kept, size.Most, terminal.Count(size.Signals, "signal"), terminal.Bytes(most), with, terminal.Bytes(uint64(size.Shared)))
	}
	if size.PerHour >= 10 {
		fmt.Fprintf(w, "         %.0f samples an hour of each device\n", size.PerHour)
	} else if size.PerHour > 0 {
		fmt.Fprintf(w, "         %.2g samples an hour of each device\n", size.PerHour)
	}
}

// describeEntries describes which entries of a payload a stream takes, and where they name a device.
func describeEntries(w io.Writer, input string, s codec.Stream) {
	if at := s.Entries.Device.String(); at != "" {
		fmt.Fprintf(w, "         %sthe payload has the device at %s\n", input, at)
	}
	for _, path := range field.Names(s.Entries.Where) {
		is := "is " + strings.Join(s.Entries.Where[path], " or ")
		if slices.Contains(s.Entries.Where[path], codec.Every) {
			is = "has a value"
		}
		fmt.Fprintf(w, "         %sonly where %s %s\n", input, path, is)
	}
	for _, in := range s.Raw.Inputs {
		describeEntries(w, in.Name+": ", s.From(in))
	}
}

// rowsOrTime returns a span for people.
func rowsOrTime(s signal.Span) string {
	if s.Rows > 0 {
		return fmt.Sprintf("%d rows", s.Rows)
	}
	return s.String()
}

// StreamWarnings returns the settings of streams, and of their labels, that are likely not meant.
func StreamWarnings(c *config.Config) (warnings []string) {
	used := map[string]bool{}
	for _, m := range c.Models {
		for _, name := range m.Streams {
			used[name] = true
		}
	}
	for _, name := range field.Names(c.Streams) {
		s := c.Streams[name]
		if !used[name] {
			warnings = append(warnings, fmt.Sprintf("streams.%s: no model uses it, so that nothing subscribes to its topics: name it in the streams of a model", name))
		}
		stage := s.StageConfig()
		if !stage.Set() {
			continue
		}
		key, window := "streams."+name+".window", stage.Window
		size := stage.Size(s.Raw.Rate.Hz)
		if second := size.PerHour / 3600; second > maxPerSecond {
			at, fewer := key, "a longer hop"
			if !window.Length.Set() {
				at, fewer = "streams."+name, "a window or a longer hold.every"
			}
			warnings = append(warnings, fmt.Sprintf("%s: %.3g samples a second of each device; %s learns as well from fewer (edge doctor measures what this machine can learn)", at, second, fewer))
		}
		if window.Length.Time > 0 && c.MQTT.PersistentSession && s.Raw.QoS != "0" && s.ArrivalTimes() {
			warnings = append(warnings, fmt.Sprintf("%s: the payloads have no time, so that what the broker kept during an outage (mqtt.persistent_session) is a window of the moment in which it comes: qos: 0 on the stream drops it", key))
		}
		if size.Thin {
			warnings = append(warnings, fmt.Sprintf("%s: no sample is made: %v has %s, and min_rows is %d: a longer length, or a smaller min_rows", key, window.Length, terminal.Count(size.Rows, "row"), window.MinRows))
		}
		together := !window.Length.Set() || window.Correlations && size.Signals > 1 && !size.Uncorrelated
		if together && len(s.Raw.Inputs) > 1 && !stage.Hold.Set() && s.OnMissing == codec.OnMissingReject {
			warnings = append(warnings, fmt.Sprintf("streams.%s: samples that need the signals of two inputs at once, as correlations do, are refused: without hold a row has those of one: hold; or on_missing: marginalise; or window.correlations: false", name))
		}
		if size.Uncorrelated {
			warnings = append(warnings, fmt.Sprintf("%s: correlations are no features, as %d signals have windows: at most 6 have them; window.of names fewer, correlations: false says so", key, size.Signals))
		}
	}
	return append(warnings, DeviceWarnings(c)...)
}

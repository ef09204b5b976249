package formula

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the test
)

func TestCalendar(t *testing.T) {
	// Phases by hand from the local time, which is beside the moment.
	for _, c := range []struct {
		zone, moment           string
		hour, weekday, yearday float64 // hours; days since Monday; days since 1 January
	}{
		{"UTC", "1970-01-01T00:00:00Z", 0, 3, 0},                                     // Thursday
		{"UTC", "2024-02-29T12:30:00Z", 12.5, 3, 59},                                 // Thursday of a leap year
		{"UTC", "1969-12-31T18:00:00Z", 18, 2, 364},                                  // before 1970
		{"Europe/Berlin", "2026-11-22T22:59:59.5Z", 24 - 0.5/3600, 6, 325},           // Sunday, 23:59:59.5
		{"Europe/Berlin", "2026-11-22T23:00:00Z", 0, 0, 326},                         // Monday begins
		{"Europe/Berlin", "2026-03-29T00:59:00Z", 1 + 59.0/60, 6, 87},                // the last minute of winter time
		{"Europe/Berlin", "2026-03-29T01:00:00Z", 3, 6, 87},                          // summer time begins
		{"Europe/Berlin", "2026-10-25T00:30:00Z", 2.5, 6, 297},                       // 2:30 for the first time
		{"Europe/Berlin", "2026-10-25T01:30:00Z", 2.5, 6, 297},                       // and for the second
		{"America/St_Johns", "2026-07-04T02:30:00Z", 0, 5, 184},                      // half an hour off, Saturday
		{"Pacific/Apia", "2026-12-31T11:00:00Z", 0, 4, 0},                            // 13 hours ahead: 1 January, Friday
		{"Asia/Kathmandu", "2026-01-01T00:00:00.000000001Z", 5.75 + 1e-9/3600, 3, 0}, // 5:45
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, c.moment)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(nil, nil, []string{"weekday", "hour", "yearday"}, zone)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Append(nil, p.NewMemory(), &Row{Time: at.UnixNano()})
		for i, phase := range []float64{(c.weekday + c.hour/24) / 7, c.hour / 24, (c.yearday + c.hour/24) / 365.25} {
			if sin, cos := math.Sin(2*math.Pi*phase), math.Cos(2*math.Pi*phase); math.Abs(got[2*i]-sin) > 1e-14 || math.Abs(got[2*i+1]-cos) > 1e-14 {
				t.Errorf("%s %s: %s, %s = %v, want %v %v", c.zone, c.moment, p.Names()[2*i], p.Names()[2*i+1], got[2*i:2*i+2], sin, cos)
			}
		}
	}
}

// The host's zone is the default.
func TestHostZone(t *testing.T) {
	at := time.Date(2026, 5, 4, 6, 0, 0, 0, time.Local)
	p, _ := Compile(nil, nil, []string{"hour"}, nil)
	if got := p.Append(nil, p.NewMemory(), &Row{Time: at.UnixNano()}); math.Abs(got[0]-1) > 1e-14 || math.Abs(got[1]) > 1e-14 {
		t.Errorf("at 6:00 hour.sin, hour.cos = %v, want 1, 0", got)
	}
}

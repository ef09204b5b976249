package signal

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test needs a zone, also where the machine has none
)

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixNano()
	for raw, want := range map[string]int64{
		`"2026-11-22T12:00:00Z"`:           noon,
		`2026-11-22T12:00:00Z`:             noon,
		`"2026-11-22T13:00:00+01:00"`:      noon,
		`"2026-11-22T13:00:00\u002b01:00"`: noon,
		`"2026-11-22T13:00:00+0100"`:       noon,
		`"2026-11-22T10:00:00-02:00"`:      noon,
		`"2026-11-22 13:00:00.5+01"`:       noon + 5e8, // as PostgreSQL
		`"2026-11-22T10:00:00-02"`:         noon,
		`"2026-11-22T13:00:00"`:            noon, // as Tasmota
		`"2026-11-22t12:00:00z"`:           noon,
		`"2026-11-22t13:00:00.5+01:00"`:    noon + 5e8,
		`"2026-11-22 12:00:00z"`:           noon,
		`"2026-11-22 13:00:00"`:            noon,       // as rtl_433
		`"2026-11-22 12:00:00.5 UTC"`:      noon + 5e8, // as BigQuery
		`"2026-11-22 13:00:00.25"`:         noon + 25e7,
		`"2026-07-01T14:00:00"`:            time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).UnixNano(),
		`"2026-11-22T12:00:00.123456789Z"`: noon + 123456789,
		`"20261122T120000Z"`:               noon,
		`"20261122t130000"`:                noon,
		`"20261122T130000.5+0100"`:         noon + 5e8,
		`"2026-11-22T12:00Z"`:              noon,
		`"2026-11-22 13:00"`:               noon,
		`"2026-11-22T10:00-02:00"`:         noon,
		`1795348800`:                       noon,
		`"1795348800"`:                     noon,
		` 1795348800.5 `:                   noon + 5e8,
		`1795348800.1234567894`:            noon + 123456789,
		`1795348800.1234567895`:            noon + 123456790,
		`1795348800000`:                    noon,
		`1795348800000.25`:                 noon + 250000,
		`1795348800000000`:                 noon,
		`1795348800000000000`:              noon,
		`1.7953488e9`:                      noon,
		`1.70000006425e9`:                  1700000064250000000, // floats of CBOR
		`1.7953488000001e9`:                noon + 1e5,
		`1.795348800001e12`:                noon + 1e6,
		`0`:                                0,
		`0.00008`:                          80000,
		`1300876758.031`:                   1300876758031000000,
		`"1970-01-01T00:00:00Z"`:           0,
	} {
		if got, ok := ParseTime(raw, berlin); !ok || got != want {
			t.Errorf("ParseTime(%s) = %d, %t, want %d", raw, got, ok, want)
		}
	}
	for _, raw := range []string{``, `""`, `"`, `null`, `-1`, `"-1"`, `1e30`, `99999999999`, `9223372036854775808`, `"1969-12-31T23:59:59Z"`, `"2300-01-01T00:00:00Z"`, `"2200-01-01T00:00:00Z"`, `7258118400`, `9223372036854775806`, `9.2e18`,
		`"0000-00-00T00:00:00"`, `"2026-13-01T00:00:00Z"`, `"noon"`, `"2026-11-22"`, `"2026-11-2 UTC"`, `"2026-11-22 UTC"`, `" UTC"`, `"1795348800 UTC"`, `0x10`, `1_0`, `NaN`, `Inf`, `.5`, `5.`, `"2026-11-22T12:00:00Q"`, `"20261122120000"`, `"20261122T1200Z"`, `"20261322T120000Z"`, `"2026-11-22T12:0Z"`, `"2026-11-22T12Z"`, `"28.11.2026 09:00:00"`, `{"s":1}`, `"\q"`} {
		if got, ok := ParseTime(raw, berlin); ok {
			t.Errorf("ParseTime(%s) = %d, want none", raw, got)
		}
	}
}

// A time of any precision reads as itself.
func TestParseTimeReadsBack(t *testing.T) {
	for _, ns := range []int64{0, 1, 999999999, 1e18, 1763827200123456789, endOfTime - 1} {
		at := time.Unix(0, ns)
		for _, raw := range []string{at.UTC().Format(`"` + time.RFC3339Nano + `"`), Seconds(ns)} {
			if got, ok := ParseTime(raw, time.UTC); !ok || got != ns {
				t.Errorf("ParseTime(%s) = %d, %t, want %d", raw, got, ok, ns)
			}
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, raw := range []string{`"2026-11-22T12:00:00+01:00"`, `1795348800.5`, `1e12`, `"\u0031"`, `"2026-11-22 1"`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if ns, ok := ParseTime(raw, time.UTC); ns < 0 || ns >= endOfTime || !ok && ns != 0 {
			t.Errorf("ParseTime(%q) = %d, %t", raw, ns, ok)
		}
	})
}

func TestParseTimeAllocatesNothing(t *testing.T) {
	for _, raw := range []string{`"2026-11-22T12:00:00Z"`, `1795348800.5`, `"2026-11-22T12:00:00"`, `"2026-11-22 12:00:00.5+01"`} {
		if n := testing.AllocsPerRun(100, func() { ParseTime(raw, time.UTC) }); n > 0 {
			t.Errorf("ParseTime(%s) allocates %v times", raw, n)
		}
	}
}

// The error of a name that is no zone is told from that of a system without a database of zones.
func TestZoneOf(t *testing.T) {
	none := func(string) (*time.Location, error) { return nil, errors.New("unknown time zone") }
	for _, c := range []struct {
		name string
		load func(string) (*time.Location, error)
		want string
	}{
		{"Europe/Nowhere", time.LoadLocation, "time_zone Europe/Nowhere: want the name of a zone, such as Europe/Berlin"},
		{"Europe/Berlin", none, "time_zone Europe/Berlin: want a database of time zones on this system: install tzdata"},
	} {
		if _, err := zoneOf(c.name, c.load); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

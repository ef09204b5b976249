package signal

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseTime returns the time of a payload in ns since 1970. raw is a JSON text or number,
// or the text without quotes:
//
//	RFC 3339, T or a space between date and time, a zone, +01 as PostgreSQL writes it
//	among them, or none, which is zone; without seconds, or as 20261128T090005Z
//	Unix time: below 1e11 in s, below 1e14 in ms, below 1e17 in µs, else in ns, with
//	fraction
//
// A time before 1970 or after 2199 is not ok. Of a time that occurs twice as the clocks go
// back, the result is one.
func ParseTime(raw string, zone *time.Location) (ns int64, ok bool) {
	text := raw
	if strings.HasPrefix(text, `"`) {
		if strings.IndexByte(text, '\\') >= 0 {
			if text, ok = unquote(text); !ok {
				return 0, false
			}
		} else if text = strings.TrimPrefix(text, `"`); strings.HasSuffix(text, `"`) {
			text = text[:len(text)-1]
		} else {
			return 0, false
		}
	}
	text = strings.TrimSpace(text)
	if at, utc := strings.CutSuffix(text, " UTC"); utc {
		text = at + "Z"
	}
	text = extended(text)
	if len(text) > 10 && text[4] == '-' && text[7] == '-' {
		ns, ok = parseCalendar(text, zone)
	} else {
		ns, ok = parseUnix(text)
	}
	if ns >= endOfTime {
		return 0, false
	}
	return ns, ok
}

// Seconds returns a time in ns since 1970 as Unix time in s, exact to the ns and without zeros at
// its end, as ParseTime reads it.
func Seconds(ns int64) string {
	text := fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// endOfTime is the beginning of the year 2200 in ns since 1970. The sum of an earlier time and the
// length of any window is a number of 64 bits.
const endOfTime = 7_258_118_400 * int64(time.Second)

// extended returns a time of the basic format of ISO 8601, or one without seconds, as RFC 3339 has it.
func extended(text string) string {
	if len(text) >= 15 && (text[8] == 'T' || text[8] == 't') && strings.Trim(text[:8]+text[9:15], "0123456789") == "" {
		return text[:4] + "-" + text[4:6] + "-" + text[6:8] + "T" + text[9:11] + ":" + text[11:13] + ":" + text[13:]
	}
	if len(text) >= 16 && text[7] == '-' && text[13] == ':' && (len(text) == 16 || strings.IndexByte("Zz+-", text[16]) >= 0) {
		return text[:16] + ":00" + text[16:]
	}
	return text
}

// unquote returns the text of a JSON text with escapes.
func unquote(quoted string) (text string, ok bool) {
	err := json.Unmarshal([]byte(quoted), &text)
	return text, err == nil
}

func parseCalendar(text string, zone *time.Location) (int64, bool) {
	if text[10] == 't' || strings.HasSuffix(text, "z") { // as RFC 3339 allows
		text = strings.ToUpper(text)
	}
	layouts := [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"}
	if text[10] == ' ' {
		layouts = [...]string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07"}
	}
	of := 1
	switch at := strings.LastIndexAny(text, "Z+-"); {
	case at < len(layouts[0]): // of the date
		of = 0
	case len(text)-at == len("+0100"):
		of = 2
	case len(text)-at == len("+01"):
		of = 3
	}
	t, err := time.ParseInLocation(layouts[of], text, zone)
	const most = math.MaxInt64 / int64(time.Second)
	if s := t.Unix(); err != nil || s < 0 || s >= most {
		return 0, false
	}
	return t.UnixNano(), true
}

// parseUnix reads a decimal number, exact to the rounded ns.
func parseUnix(text string) (int64, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || strings.Trim(whole, "0123456789") != "" || strings.Trim(fraction, "0123456789") != "" {
		return parseFloat(text)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.HasSuffix(text, ".") {
		return 0, false
	}
	unit := unitOf(float64(n))
	if n > (math.MaxInt64-unit)/unit {
		return 0, false
	}
	ns, i := n*unit, 0
	for digit := unit / 10; i < len(fraction) && digit > 0; i, digit = i+1, digit/10 {
		ns += int64(fraction[i]-'0') * digit
	}
	if i < len(fraction) && fraction[i] >= '5' {
		ns++
	}
	return ns, true
}

// parseFloat reads a number with an exponent, as decoders write floats of CBOR: its shortest decimal
// digits are the time, since a float64 of ns is exact to 256 of them only.
func parseFloat(text string) (int64, bool) {
	if text == "" || text[0]-'0' > 9 || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v >= math.MaxInt64 {
		return 0, false
	}
	return parseUnix(strconv.FormatFloat(v, 'f', -1, 64))
}

// unitOf returns the ns in the unit of a Unix time of this magnitude.
func unitOf(v float64) int64 {
	switch {
	case v < 1e11:
		return 1e9
	case v < 1e14:
		return 1e6
	case v < 1e17:
		return 1e3
	}
	return 1
}

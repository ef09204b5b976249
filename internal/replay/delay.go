package replay

import (
	"errors"
	"strconv"
	"time"
)

// Delay is the time from a sample to its label, in rows or as a duration.
type Delay struct {
	Rows int
	Time time.Duration
}

// String and Set make Delay a flag: "50" is rows, "5s" a duration.
func (d *Delay) String() string {
	if d.Time > 0 {
		return d.Time.String()
	}
	return strconv.Itoa(d.Rows)
}

// Set reads the format of String.
func (d *Delay) Set(s string) error {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		*d = Delay{Rows: n}
		return nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t < 0 {
		return errors.New("want a number of rows, such as 50, or a duration, such as 5s")
	}
	*d = Delay{Time: t}
	return nil
}

// Type returns the flag's type for the help.
func (d *Delay) Type() string { return "ROWS|DURATION" }

package signal

import (
	"fmt"
	"strconv"
	"time"
)

// Span is the length of a window or the distance of two: a number of rows, a time, or
// the rows of one message. The zero value: not configured.
type Span struct {
	Rows    int
	Time    time.Duration
	Message bool
}

// Set reports whether the span is configured.
func (s Span) Set() bool { return s != Span{} }

// String returns the span as it is configured: 256, 2s, message, or "".
func (s Span) String() string {
	switch {
	case s.Message:
		return "message"
	case s.Time != 0:
		return s.Time.String()
	case s.Rows != 0:
		return strconv.Itoa(s.Rows)
	}
	return ""
}

// MarshalText is String.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a number of rows, a duration, or the word message.
func (s *Span) UnmarshalText(text []byte) error {
	word := string(text)
	if word == "" {
		*s = Span{}
		return nil
	}
	if word == "message" {
		*s = Span{Message: true}
		return nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		*s = Span{Rows: n}
		return nil
	}
	d, err := time.ParseDuration(word)
	if err != nil {
		return fmt.Errorf("%q: want a number of rows (256), a time (2s), or message", word)
	}
	*s = Span{Time: d}
	return nil
}

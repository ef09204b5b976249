package field

import (
	"fmt"
	"strconv"
	"strings"
)

// ByteSize is a size in bytes with the text form "64KiB" or "8MiB".
type ByteSize int64

// Units of ByteSize.
const (
	KiB ByteSize = 1 << 10
	MiB ByteSize = 1 << 20
	GiB ByteSize = 1 << 30
)

var byteUnits = []struct {
	suffix string
	size   ByteSize
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}, {"", 1}}

// String writes the largest unit that divides the size.
func (b ByteSize) String() string {
	for _, u := range byteUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.suffix
		}
	}
	return "0B"
}

// MarshalText implements encoding.TextMarshaler.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a whole number of B, KiB, MiB or GiB; a bare number is bytes.
func (b *ByteSize) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/int64(u.size) {
			break
		}
		*b = ByteSize(n) * u.size
		return nil
	}
	return fmt.Errorf("size %q: want a whole number with B, KiB, MiB or GiB, such as 64KiB", s)
}

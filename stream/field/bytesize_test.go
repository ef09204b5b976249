package field

import (
	"testing"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"8MiB": 8 * MiB, "64KiB": 64 * KiB, "1GiB": GiB, "512": 512, "512B": 512, " 3 KiB ": 3 * KiB, "0": 0,
	} {
		var b ByteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("UnmarshalText(%q) = %d, %v, want %d", text, b, err, want)
		}
		var again ByteSize
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%d is written as %q and read as %d, %v", b, b.String(), again, err)
		}
	}
	for _, text := range []string{"", "8MB", "-1", "1.5MiB", "MiB", "9999999999999GiB", "8 M"} {
		var b ByteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q) = %d, want an error", text, b)
		}
	}
}

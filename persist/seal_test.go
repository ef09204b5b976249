package persist

import (
	"bytes"
	"errors"
	"testing"
)

// TestSealRefuses flips every bit of small values, truncates them, and unseals them at
// a wrong key.
func TestSealRefuses(t *testing.T) {
	bucket, key := journalBucket("bearing"), numberKey(17)
	for name, ev := range events {
		if name == "largest" {
			continue
		}
		value := seal(nil, kindRecord, bucket, key, appendRecord(nil, &ev))
		if _, err := unseal(kindRecord, bucket, key, value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range value {
			for bit := range 8 {
				value[i] ^= 1 << bit
				if _, err := unseal(kindRecord, bucket, key, value); !errors.Is(err, errSeal) {
					t.Errorf("%s: bit %d of byte %d of %d flipped: %v, want %v", name, bit, i, len(value), err, errSeal)
				}
				value[i] ^= 1 << bit
			}
			if _, err := unseal(kindRecord, bucket, key, value[:i]); !errors.Is(err, errSeal) {
				t.Errorf("%s: cut to %d of %d bytes: %v, want %v", name, i, len(value), err, errSeal)
			}
		}
		for _, wrong := range []struct {
			kind   kind
			bucket string
			key    []byte
		}{
			{kindPending, bucket, key},
			{kindRecord, journalBucket("pump"), key},
			{kindRecord, bucket, numberKey(18)},
			{kindRecord, bucket + "\x01", key},
		} {
			if _, err := unseal(wrong.kind, wrong.bucket, wrong.key, value); !errors.Is(err, errSeal) {
				t.Errorf("%s: accepted as kind %c of %q %x", name, wrong.kind, wrong.bucket, wrong.key)
			}
		}
	}
}

func TestSealParts(t *testing.T) {
	whole := seal([]byte("before"), kindShape, "b", []byte("k"), []byte("head and state"))
	parts := seal([]byte("before"), kindShape, "b", []byte("k"), []byte("head"), nil, []byte(" and state"))
	if !bytes.Equal(whole, parts) {
		t.Errorf("in parts %x, whole %x", parts, whole)
	}
}

// FuzzUnseal checks that unseal accepts only values that seal writes.
func FuzzUnseal(f *testing.F) {
	f.Add(seal(nil, kindShape, "meta", []byte("k"), []byte("payload")))
	f.Add(sealFormat(1))
	f.Fuzz(func(t *testing.T, value []byte) {
		payload, err := unseal(kindShape, "meta", []byte("k"), value)
		if err == nil && sealOf(seal(nil, kindShape, "meta", []byte("k"), payload)) != sealOf(value) && value[2] < 0x80 {
			t.Errorf("unseal(%x) = %x, which seals otherwise", value, payload)
		}
	})
}

// A value that takes the memory of a state is that of one that does not.
func TestSealAround(t *testing.T) {
	head, state := []byte("head"), []byte("state")
	want := seal(nil, kindCheckpoint, "bucket", stateKey, head, state)
	for _, room := range []int{0, 100} {
		in := append(make([]byte, 0, len(state)+room), state...)
		value, at := sealAround(in, kindCheckpoint, "bucket", stateKey, head)
		if !bytes.Equal(value, want) || !bytes.HasPrefix(value[at:], state) {
			t.Errorf("with room for %d bytes the value is %q, its state at %d, want %q", room, value, at, want)
		}
		if taken := &value[0] == &in[0]; taken != (room > 0) {
			t.Errorf("with room for %d bytes the memory is taken: %t", room, taken)
		}
	}
}

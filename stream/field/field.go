// Package field makes the errors of configuration fields: key, value and allowed range,
// as in "mqtt.ring.max_bytes 1B: want at least 64KiB", and the known word closest to a
// misspelt one. ByteSize is a size with its unit. The packages below stream and stream itself
// validate their configurations with it.
package field

import (
	"errors"
	"fmt"
)

// Check returns an error with key, value and allowed range unless ok.
func Check(ok bool, key string, value any, want string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s %v: want %s", key, value, want)
}

// Within puts the prefix of a key before every joined error.
func Within(prefix string, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s.%w", prefix, err)
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, Within(prefix, e))
	}
	return Join(errs...)
}

// Join joins errors as errors.Join does. It is not inlined, as errors.Join is: so each of its many
// callers is 350 bytes smaller.
//
//go:noinline
func Join(errs ...error) error { return errors.Join(errs...) }

package field_test

import (
	"errors"
	"fmt"

	"edge/stream/field"
)

func ExampleWithin() {
	err := errors.Join(field.Check(false, "max_bytes", "1B", "at least 64KiB"), field.Check(true, "max_messages", 10, "1 to 1000000"))
	fmt.Println(field.Within("mqtt.ring", err))
	// Output: mqtt.ring.max_bytes 1B: want at least 64KiB
}

// Package load measures edge under load: more samples than it can learn, many
// messages with faults between them, and its rate beside a plain MQTT client.
package load

import (
	"os"
	"testing"

	"edge/test/harness"
)

func TestMain(m *testing.M) {
	if broker := os.Getenv(beEcho); broker != "" {
		echo(broker)
	}
	harness.Main(m)
}

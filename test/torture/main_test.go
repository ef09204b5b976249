// Package torture kills daemons under load from real brokers and checks after each
// start that nothing acknowledged is lost, repeated or out of order.
package torture

import (
	"testing"

	"edge/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

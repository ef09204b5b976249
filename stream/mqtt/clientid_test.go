package mqtt

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"edge/test/files"
)

// Two devices with the host name that their image came with are two clients; a
// name of its own counts for more than its network card.
func TestMachineID(t *testing.T) {
	file := files.Write(t, "machine-id", "b08dfa6083e7567a1921a715000001fb\n")
	blank := files.Write(t, "blank", "\n")
	none := filepath.Join(t.TempDir(), "none")
	named := func(name string) func() (string, error) { return func() (string, error) { return name, nil } }
	card := func(address ...byte) func() ([]net.Interface, error) {
		return func() ([]net.Interface, error) {
			return []net.Interface{{Name: "lo", Flags: net.FlagLoopback}, {Name: "eth0", HardwareAddr: address}}, nil
		}
	}
	noCards := func() ([]net.Interface, error) { return nil, errors.New("not permitted") }
	for name, tc := range map[string]struct {
		file string
		host string
		of   func() ([]net.Interface, error)
		want string
	}{
		"systemd":           {file, "pi4", card(1, 2), "b08dfa6083e7567a1921a715000001fb\n"},
		"a name":            {none, "pi4", card(1, 2), "pi4"},
		"one of many":       {none, "OpenWrt", card(1, 2), "\x01\x02"},
		"another of them":   {none, "OpenWrt", card(1, 3), "\x01\x03"},
		"an empty file":     {blank, "localhost", card(1, 2), "\x01\x02"},
		"no card, no name":  {none, "localhost", noCards, "localhost"},
		"a card without id": {none, "localhost", card(), "localhost"},
	} {
		if got := machineID(tc.file, named(tc.host), tc.of); string(got) != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

package mqtt

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"slices"
	"strings"
)

// DefaultClientID returns an id that is the same after a restart and differs between
// machines.
func DefaultClientID(node string) string {
	return fmt.Sprintf("edge-%s-%04x", node, crc32.ChecksumIEEE(machineID("/etc/machine-id", os.Hostname, net.Interfaces))&0xffff)
}

// sameEverywhere are default host names, which many devices share.
var sameEverywhere = []string{"", "localhost", "openwrt", "lede", "alpine", "buildroot", "edge", "raspberrypi"}

// machineID identifies this machine by its machine-id file; without one by its host
// name; and if the host name is a default one, by the address of its network card.
func machineID(file string, hostname func() (string, error), interfaces func() ([]net.Interface, error)) []byte {
	if id, err := os.ReadFile(file); err == nil && len(bytes.TrimSpace(id)) > 0 {
		return id
	}
	host, _ := hostname()
	if !slices.Contains(sameEverywhere, strings.ToLower(host)) {
		return []byte(host)
	}
	cards, _ := interfaces()
	for _, card := range cards {
		if len(card.HardwareAddr) > 0 && card.Flags&net.FlagLoopback == 0 {
			return card.HardwareAddr
		}
	}
	return []byte(host)
}

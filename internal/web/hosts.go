package web

import (
	"net"
	"net/netip"
	"os"
	"strings"
)

// hosts are the names of this machine, in lower case, that a Host header may have. A
// page of another site whose name was made to resolve to this machine (DNS rebinding)
// sends that name and is refused. Addresses are allowed: such a page has a name.
type hosts map[string]bool

// newHosts returns localhost, the machine's own name and others.
func newHosts(others []string) hosts {
	h := hosts{"localhost": true}
	if name, err := os.Hostname(); err == nil && name != "" {
		name = strings.ToLower(name)
		h[name], h[name+".local"] = true, true
	}
	for _, name := range others {
		h[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	return h
}

// has reports whether a Host header is an address or one of the names, with or
// without a port.
func (h hosts) has(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return h[strings.ToLower(strings.TrimSuffix(host, "."))]
}

package brokertest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Cluster is a NATS cluster that speaks MQTT and keeps each message on three servers.
type Cluster struct {
	addrs   []string // of MQTT
	configs []string
	program string
	stops   []func()
}

// NewCluster starts a cluster of three servers, until the end of the test. It skips the
// test if nats-server is not installed.
func NewCluster(t *testing.T) *Cluster {
	t.Helper()
	const size = 3
	c := &Cluster{program: lookUp(t, "nats-server"), stops: make([]func(), size)}
	var routes, listen []string
	for range size {
		routes = append(routes, FreeAddress(t))
		listen = append(listen, FreeAddress(t))
		c.addrs = append(c.addrs, FreeAddress(t))
	}
	for i := range size {
		c.configs = append(c.configs, writeFile(t, "nats.conf", fmt.Sprintf(`
server_name: s%d
listen: %q
cluster {name: test, listen: %q, routes: ["nats://%s"]}
jetstream {store_dir: %q}
mqtt {listen: %q, ack_wait: "5s", stream_replicas: %d, consumer_replicas: %d}
`, i, listen[i], routes[i], strings.Join(routes, `", "nats://`), t.TempDir(), c.addrs[i], size, size)))
	}
	for i := range size {
		c.Start(t, i)
	}
	return c
}

// Start starts server i.
func (c *Cluster) Start(t *testing.T, i int) {
	t.Helper()
	c.stops[i] = serve(t, c.addrs[i], exec.Command(c.program, "-c", c.configs[i]), kill)
}

// Kill ends server i by SIGKILL.
func (c *Cluster) Kill(i int) { c.stops[i]() }

// Size is the number of servers.
func (c *Cluster) Size() int { return len(c.addrs) }

// Addrs are the addresses of all servers.
func (c *Cluster) Addrs() []string { return c.addrs }

// URLs returns the addresses of all servers, beginning with server i.
func (c *Cluster) URLs(i int) (urls []string) {
	for j := range c.addrs {
		urls = append(urls, "mqtt://"+c.addrs[(i+j)%len(c.addrs)])
	}
	return urls
}

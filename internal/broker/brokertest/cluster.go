package brokertest

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"edge/test/files"
)

// Cluster is a cluster of three servers that speak MQTT.
type Cluster struct {
	addrs   []string // of MQTT
	command func(i int) *exec.Cmd
	stops   []func()
}

// Clusters start a cluster by the name of its servers, until the end of the test. They skip the test if these are not installed.
var Clusters = map[string]func(t *testing.T) *Cluster{"nats": NATSCluster, "emqx": EMQXCluster}

const clusterSize = 3

// newCluster returns a cluster of servers that do not run yet.
func newCluster(t *testing.T) *Cluster {
	c := &Cluster{stops: make([]func(), clusterSize)}
	for range clusterSize {
		c.addrs = append(c.addrs, FreeAddress(t))
	}
	return c
}

// NATSCluster starts a NATS cluster that keeps each message on three servers.
func NATSCluster(t *testing.T) *Cluster {
	t.Helper()
	program := lookUp(t, "nats-server")
	c := newCluster(t)
	var routes, listen, configs []string
	for range clusterSize {
		routes = append(routes, FreeAddress(t))
		listen = append(listen, FreeAddress(t))
	}
	for i := range clusterSize {
		configs = append(configs, files.Write(t, "nats.conf", fmt.Sprintf(`
server_name: s%d
listen: %q
cluster {name: test, listen: %q, routes: ["nats://%s"]}
jetstream {store_dir: %q}
mqtt {listen: %q, ack_wait: "5s", stream_replicas: %d, consumer_replicas: %d}
`, i, listen[i], routes[i], strings.Join(routes, `", "nats://`), t.TempDir(), c.addrs[i], clusterSize, clusterSize)))
	}
	c.command = func(i int) *exec.Cmd { return exec.Command(program, "-c", configs[i]) }
	for i := range clusterSize {
		c.Start(t, i)
	}
	return c
}

// EMQXCluster starts an EMQX cluster, whose sessions are in memory and whose retained messages are on disk, too.
func EMQXCluster(t *testing.T) *Cluster {
	t.Helper()
	program := emqx(t)
	c := newCluster(t)
	var names, dirs []string
	for range clusterSize {
		_, port, _ := net.SplitHostPort(FreeAddress(t))
		n, _ := strconv.Atoi(port)
		names = append(names, fmt.Sprintf("edge%d@127.0.0.1", n-4370)) // a node listens for others at 4370 and its number
		dirs = append(dirs, t.TempDir())
	}
	c.command = func(i int) *exec.Cmd {
		cmd := exec.Command(program, "foreground")
		cmd.Env = append(emqxSettings(c.addrs[i], dirs[i], names[i]), "EMQX_NODE__COOKIE=test", "EMQX_RETAINER__BACKEND__STORAGE_TYPE=disc",
			"EMQX_CLUSTER__DISCOVERY_STRATEGY=static", "EMQX_CLUSTER__STATIC__SEEDS=["+strings.Join(names, ",")+"]")
		return cmd
	}
	for i := range clusterSize {
		c.Start(t, i)
		if i > 0 { // a node that joins ends its connections, and listens again
			conn, err := net.Dial("tcp", c.addrs[i])
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, conn)
			conn.Close()
			if !listens(c.addrs[i]) {
				t.Fatalf("node %d does not listen after it has joined", i)
			}
		}
	}
	return c
}

// Start starts server i.
func (c *Cluster) Start(t *testing.T, i int) {
	t.Helper()
	c.stops[i] = serve(t, c.addrs[i], c.command(i), kill)
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

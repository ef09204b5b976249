//go:build slow

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"edge/internal/broker/brokertest"
)

// realBroker is one that the tests without ids run against. They differ in what
// they do with packet identifiers and with the DUP flag.
type realBroker struct {
	start func(t *testing.T, addr string) (stop func())
	// inOrder: messages that it sends again come before new ones.
	inOrder bool
}

var realBrokers = map[string]realBroker{
	"mosquitto": {func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, "max_queued_messages 0")
	}, true},
	"nats":     {startNATS, false},
	"rabbitmq": {startRabbitMQ, false}, // a new consumer may be given the messages after those that come back
}

// startNATS starts a NATS server that speaks MQTT at addr.
func startNATS(t *testing.T, addr string) (stop func()) {
	t.Helper()
	program := lookUp(t, "nats-server")
	config := writeFile(t, "nats.conf", fmt.Sprintf("server_name: test\nlisten: %q\njetstream {store_dir: %q}\nmqtt {listen: %q, ack_wait: \"1s\"}\n",
		brokertest.FreeAddress(t), t.TempDir(), addr))
	return startServer(t, addr, exec.Command(program, "-c", config))
}

// startRabbitMQ starts a RabbitMQ with its plugin for MQTT at addr, and the
// port mapper that Erlang needs.
func startRabbitMQ(t *testing.T, addr string) (stop func()) {
	t.Helper()
	const program = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one in PATH wants another user
	if _, err := os.Stat(program); err != nil {
		brokertest.Missing(t, "rabbitmq-server is not installed: "+err.Error())
	}
	port := func(addr string) string {
		_, port, _ := net.SplitHostPort(addr)
		return port
	}
	mapper := brokertest.FreeAddress(t)
	stopMapper := startServer(t, mapper, exec.Command(lookUp(t, "epmd"), "-address", "127.0.0.1", "-port", port(mapper)))
	dir := t.TempDir()
	writeTo := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := writeTo("rabbitmq.conf", "listeners.tcp = none\nmqtt.listeners.tcp.1 = "+addr+"\nmqtt.allow_anonymous = true\n")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(),
		"HOME="+dir, "ERL_EPMD_PORT="+port(mapper), "RABBITMQ_NODENAME=test"+port(addr)+"@localhost", "RABBITMQ_DIST_PORT="+port(brokertest.FreeAddress(t)),
		"RABBITMQ_CONFIG_FILE="+config, "RABBITMQ_ENABLED_PLUGINS_FILE="+writeTo("plugins", "[rabbitmq_mqtt]."),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"), "RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
	)
	stopServer := startServer(t, addr, cmd)
	return func() {
		stopServer()
		stopMapper()
	}
}

func lookUp(t *testing.T, program string) string {
	t.Helper()
	for _, name := range []string{program, "/usr/sbin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	brokertest.Missing(t, program+" is not installed")
	return ""
}

// startServer starts a server in a process group of its own, and waits until it
// listens at addr.
func startServer(t *testing.T, addr string, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	t.Cleanup(stop)
	if !brokertest.Eventually(func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		stop()
		t.Fatalf("%s does not listen on %s: %s", cmd.Path, addr, &log)
	}
	return stop
}

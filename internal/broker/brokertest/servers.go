package brokertest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"edge/test/files"
)

// Server is a broker that runs as a program of its own.
type Server struct {
	Start func(t *testing.T, addr string) (stop func())
	// InOrder reports that messages which the broker repeats precede new ones.
	InOrder bool
}

// Servers are brokers by name. They differ in their use of packet identifiers and
// of the DUP flag for messages that they repeat.
var Servers = map[string]Server{
	"mosquitto": {func(t *testing.T, addr string) func() {
		return MosquittoWith(t, addr, "max_queued_messages 0")
	}, true},
	"nats":     {NATS, false},
	"activemq": {ActiveMQ, true},  // denies each session that it resumes
	"rabbitmq": {RabbitMQ, false}, // a new consumer may get new messages before those of its predecessor
	"flashmq":  {FlashMQ, true},   // sets no DUP flag
	"emqx":     {EMQX, true},
}

// Mosquitto starts a mosquitto with its default settings.
func Mosquitto(t *testing.T, addr string) (stop func()) { return MosquittoWith(t, addr, "") }

// MosquittoWith starts a mosquitto with further settings.
func MosquittoWith(t testing.TB, addr, settings string) (stop func()) {
	t.Helper()
	program := lookUp(t, "mosquitto")
	host, port, _ := net.SplitHostPort(addr)
	config := files.Write(t, "mosquitto.conf", fmt.Sprintf("listener %s %s\nallow_anonymous true\nuser root\n%s", port, host, settings))
	return serve(t, addr, exec.Command(program, "-c", config), terminate)
}

// Keeping returns a starter of a mosquitto that keeps sessions in a folder through
// restarts, and keeps every message for a client that is away.
func Keeping(folder string) func(*testing.T, string) func() {
	return func(t *testing.T, addr string) func() {
		return MosquittoWith(t, addr, fmt.Sprintf("persistence true\npersistence_location %s/\nmax_queued_messages 1000000\nmax_inflight_messages 20\n", folder))
	}
}

// NATS starts a NATS server that speaks MQTT at addr.
func NATS(t *testing.T, addr string) (stop func()) {
	t.Helper()
	program := lookUp(t, "nats-server")
	config := files.Write(t, "nats.conf", fmt.Sprintf("server_name: test\nlisten: %q\njetstream {store_dir: %q}\nmqtt {listen: %q, ack_wait: \"1s\"}\n",
		FreeAddress(t), t.TempDir(), addr))
	return serve(t, addr, exec.Command(program, "-c", config), kill)
}

// RabbitMQ starts a RabbitMQ with its MQTT plugin at addr, and the port mapper that
// Erlang needs.
func RabbitMQ(t *testing.T, addr string) (stop func()) {
	t.Helper()
	const program = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one in PATH requires another user
	if _, err := os.Stat(program); err != nil {
		Missing(t, "rabbitmq-server is not installed: "+err.Error())
	}
	port := func(addr string) string {
		_, port, _ := net.SplitHostPort(addr)
		return port
	}
	mapper := FreeAddress(t)
	stopMapper := serve(t, mapper, exec.Command(lookUp(t, "epmd"), "-address", "127.0.0.1", "-port", port(mapper)), kill)
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
		"HOME="+dir, "ERL_EPMD_PORT="+port(mapper), "RABBITMQ_NODENAME=test"+port(addr)+"@localhost", "RABBITMQ_DIST_PORT="+port(FreeAddress(t)),
		"RABBITMQ_CONFIG_FILE="+config, "RABBITMQ_ENABLED_PLUGINS_FILE="+writeTo("plugins", "[rabbitmq_mqtt]."),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"), "RABBITMQ_PID_FILE="+filepath.Join(dir, "pid"),
	)
	stopServer := serve(t, addr, cmd, kill)
	return func() {
		stopServer()
		stopMapper()
	}
}

// ActiveMQ starts an ActiveMQ that speaks MQTT at addr and keeps nothing on disk. CI does not
// install it and its Java: the simulation has a broker that hides its sessions as this one does.
func ActiveMQ(t *testing.T, addr string) (stop func()) {
	t.Helper()
	const folder = "/usr/share/activemq/lib/*"
	path := []string{folder}
	for _, name := range []string{"mqtt-client", "hawtdispatch", "hawtdispatch-transport", "hawtbuf", "slf4j-api", "slf4j-simple"} {
		path = append(path, "/usr/share/java/"+name+".jar")
	}
	for _, file := range []string{"/usr/share/activemq/lib/activemq-mqtt.jar", path[1]} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("activemq and libmqtt-client-java are not installed: " + err.Error())
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(lookUp(t, "java"), "-Xmx256m", "-cp", strings.Join(path, ":"),
		"-Dactivemq.home=/usr/share/activemq", "-Dactivemq.base="+dir, "-Dactivemq.data="+dir, "-Djava.io.tmpdir="+dir,
		"org.apache.activemq.console.Main", "start", "broker:(mqtt://"+addr+")?persistent=false&useJmx=false&brokerName=test")
	return serve(t, addr, cmd, kill)
}

// FlashMQ starts a FlashMQ at addr. CI does not install it, since Debian has none.
func FlashMQ(t *testing.T, addr string) (stop func()) {
	t.Helper()
	program, err := exec.LookPath("flashmq")
	if err != nil {
		t.Skip("flashmq is not installed: " + err.Error())
	}
	host, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	config := files.Write(t, "flashmq.conf", fmt.Sprintf("log_file %s/log\nstorage_dir %s\nallow_anonymous true\nmax_qos_msg_pending_per_client 65535\n"+
		"listen {\nprotocol mqtt\nport %s\ninet4_bind_address %s\ninet_protocol ip4\n}\n", dir, dir, port, host))
	return serve(t, addr, exec.Command(program, "--config-file", config), terminate)
}

// EMQX starts an EMQX 5 at addr, whose sessions are in memory. CI does not install it, since Debian has none.
func EMQX(t *testing.T, addr string) (stop func()) {
	t.Helper()
	cmd := exec.Command(emqx(t), "foreground")
	cmd.Env = emqxSettings(addr, t.TempDir(), "edge@127.0.0.1")
	return serve(t, addr, cmd, kill)
}

// emqx returns the path of EMQX, and skips the test if it is not installed.
func emqx(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("emqx")
	if err != nil {
		t.Skip("emqx is not installed: " + err.Error())
	}
	return program
}

// emqxSettings is the environment of an EMQX that speaks MQTT at addr.
func emqxSettings(addr, dir, name string) []string {
	return append(os.Environ(), "EMQX_NODE__DATA_DIR="+dir, "EMQX_NODE__NAME="+name, "EMQX_DASHBOARD__LISTENERS__HTTP__BIND=0",
		"EMQX_LISTENERS__TCP__DEFAULT__BIND="+addr, "EMQX_MQTT__MAX_MQUEUE_LEN=infinity",
		"EMQX_LISTENERS__SSL__DEFAULT__ENABLE=false", "EMQX_LISTENERS__WS__DEFAULT__ENABLE=false", "EMQX_LISTENERS__WSS__DEFAULT__ENABLE=false")
}

// lookUp returns the path of a program, and skips the test if it is not installed.
// Servers are often in /usr/sbin, which not every PATH contains.
func lookUp(t testing.TB, program string) string {
	t.Helper()
	for _, name := range []string{program, "/usr/sbin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, program+" is not installed")
	return ""
}

// serve starts a server in a process group of its own, and waits until it listens
// at addr. stop calls end once, at the end of the test if not before.
func serve(t testing.TB, addr string, cmd *exec.Cmd, end func(*exec.Cmd)) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { end(cmd) })
	t.Cleanup(stop)
	if !listens(addr) {
		stop()
		t.Fatalf("%s does not listen on %s: %s", cmd.Path, addr, &log)
	}
	return stop
}

// listens waits until a server listens at addr, and reports whether it does.
func listens(addr string) bool {
	return Eventually(func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill ends a server and its children.
func kill(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
}

// terminate ends a mosquitto by SIGTERM, so that it writes its sessions. It
// repeats the signal, because a mosquitto that has just begun to listen ignores it.
func terminate(cmd *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	for {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

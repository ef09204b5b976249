package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// A server that accepts connections and never answers is no MQTT broker, most likely:
// the error says so, as for one that ends them.
func TestSilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://" + l.Addr().String()}
	// The server is reached however slow the machine is; only the answer is waited for in vain.
	dial := func(ctx context.Context, server *url.URL, tlsConfig *tls.Config, _ time.Duration) (net.Conn, error) {
		return Dial(ctx, server, tlsConfig, longWait)
	}
	client := NewClient(Options{Config: cfg, ID: "edge-test", ConnectTimeout: 50 * time.Millisecond, Dial: dial})
	_, err = client.connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is this the address of an MQTT 3.1.1 broker") {
		t.Errorf("the error is %v", err)
	}
}

// A broker that ends the connection upon CONNECT may refuse the Last Will alone: the error names who tells.
func TestConnectRefusedWithoutAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Read(make([]byte, 1000))
			c.Close()
		}
	}()
	cfg := DefaultConfig()
	cfg.Servers = []string{"mqtt://" + l.Addr().String()}
	client := NewClient(Options{Config: cfg, ID: "edge-test", ConnectTimeout: longWait, Dial: Dial})
	if _, err = client.connect(t.Context()); err == nil || !strings.Contains(err.Error(), "refuse retained messages, or mqtt.qos? `edge doctor` tells") {
		t.Errorf("the error is %v", err)
	}
}

// A broker that is not reached has a remedy as well.
func TestAdviceWithoutBroker(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for server, want := range map[string]string{
		"mqtt://" + closed.Addr().String(): "nothing listens there: is the broker running",
		"mqtt://broker.invalid":            "this machine does not find the name in mqtt.servers",
	} {
		cfg := DefaultConfig()
		cfg.Servers = []string{server}
		client := NewClient(Options{Config: cfg, ID: "edge-test", ConnectTimeout: longWait, Dial: Dial})
		if _, err := client.connect(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "mqtt: connect: dial tcp") {
			t.Errorf("%s: %v", server, err)
		}
	}
	cfg := DefaultConfig()
	cfg.Password.File = filepath.Join(t.TempDir(), "missing")
	if _, err := cfg.ClientOptions("edge-test"); !strings.Contains(Advice(err), "put the file in its place") {
		t.Errorf("%v: %q", err, Advice(err))
	}
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, "subjectAltName=DNS:NAME"}, {[]string{"broker.lan"}, "mqtt.tls.server_name has to be"}} {
		err := x509.HostnameError{Certificate: &x509.Certificate{DNSNames: c.names}, Host: "localhost"}
		if got := Advice(fmt.Errorf("tls: %w", err)); !strings.Contains(got, c.want) {
			t.Errorf("a certificate of %v: %q", c.names, got)
		}
	}
	if got := Advice(fmt.Errorf("dial: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})); !strings.Contains(got, "its port the one for TLS") {
		t.Errorf("a port without TLS: %q", got)
	}
	if got := Advice(fmt.Errorf("the broker refuses: %w", packets.ErrorRefusedIDRejected)); !strings.Contains(got, "mqtt.client_id, or mqtt.keepalive") {
		t.Errorf("an identifier, or an interval, that the broker rejects: %q", got)
	}
	for reason, want := range map[error]string{syscall.EHOSTUNREACH: "no way to the broker", syscall.EMFILE: "ulimit -n"} {
		if got := Advice(&net.OpError{Op: "dial", Net: "tcp", Err: reason}); !strings.Contains(got, want) {
			t.Errorf("the advice about %v is %q", reason, got)
		}
	}
}

// The error of a refusal says who refuses, and has a remedy; paho's is "server Unavailable" and the like.
func TestBrokerRefuses(t *testing.T) {
	for code, want := range packets.ConnErrors {
		if code == packets.Accepted || code > packets.ErrRefusedNotAuthorised {
			continue
		}
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtt://broker.test"}
		client := NewClient(Options{Config: cfg, ID: "edge-test", ConnectTimeout: longWait, Dial: func(context.Context, *url.URL, *tls.Config, time.Duration) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				if _, err := packets.ReadPacket(there); err == nil {
					there.Write([]byte{packets.Connack << 4, 2, 0, code})
				}
			}()
			return here, nil
		}})
		_, err := client.connect(t.Context())
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), fmt.Sprintf("mqtt: connect: the broker refuses the connection: %v: ", want)) {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

package mqtt

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/stream/field"
	"edge/stream/topic"
)

// TLS configures the verification of the broker and the certificate of the node. The
// certificate and the name of the broker are always verified; the files are read for
// each connection, so that renewed certificates need no restart.
type TLS struct {
	// CA is a file of trusted PEM certificates. Empty: those of the system.
	CA string `yaml:"ca"`
	// Cert and Key are certificate and key of the node, PEM files. Both or none. ${NAME} in a
	// path, that of CA too, is replaced by that environment variable, which has to be set.
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// ServerName is the expected name in the broker's certificate. Empty: the host of
	// the server's address.
	ServerName string `yaml:"server_name"`
	// MinVersion is the lowest version of TLS: 1.2 or 1.3. Default 1.2.
	MinVersion string `yaml:"min_version"`
}

// Validate reports every field that is out of range, joined.
func (t TLS) Validate() error {
	return field.Join(
		field.Check((t.Cert == "") == (t.Key == ""), "cert, key", fmt.Sprintf("%q, %q", t.Cert, t.Key), "both or none"),
		field.Check(t.MinVersion == "1.2" || t.MinVersion == "1.3", "min_version", t.MinVersion, `"1.2" or "1.3"`),
	)
}

// Ring bounds the received messages that wait for their prediction. Messages of QoS 1
// that are answered and wait for the journal or the learner take up at most half of
// it. When it is full, a message of QoS 0 displaces the oldest of QoS 0. A message of
// QoS 1 is answered and left unacknowledged, and so are its successors: once the ring
// is empty the node reconnects, and the broker sends them again, in order, to be
// learnt and answered again.
type Ring struct {
	// MaxMessages, default 2048, range 1 to 1000000.
	MaxMessages int `yaml:"max_messages"`
	// MaxBytes of payload, default 4MiB, at least 64KiB.
	MaxBytes field.ByteSize `yaml:"max_bytes"`
}

// Validate reports every field that is out of range, joined.
func (r Ring) Validate() error {
	return field.Join(
		field.Check(r.MaxMessages >= 1 && r.MaxMessages <= 1e6, "max_messages", r.MaxMessages, "1 to 1000000"),
		field.Check(r.MaxBytes >= 64*field.KiB, "max_bytes", r.MaxBytes, "at least 64KiB"),
	)
}

// Config configures the connection to the broker.
type Config struct {
	// Servers are tried in this order: tcp:// or mqtt://, ssl:// or mqtts://,
	// ws://, wss://. Without a port: 1883, 8883, 80, 443. Default [tcp://127.0.0.1:1883].
	Servers []string `yaml:"servers"`
	// ClientID must differ from that of every other client of the broker and stay
	// the same over restarts. Empty: edge-<node>-<4 digits that identify the machine>.
	ClientID string `yaml:"client_id"`
	// Username, empty for none.
	Username string `yaml:"username"`
	// Password of Username.
	Password Secret `yaml:"password"`
	// TLS applies to ssl, mqtts and wss.
	TLS TLS `yaml:"tls"`
	// Keepalive is the longest silence before the broker is sent a ping. Whole
	// seconds. Default 30s, range 1s to 18h.
	Keepalive time.Duration `yaml:"keepalive"`
	// PersistentSession makes the broker keep messages while the node is away.
	// Default true; without it they are lost.
	PersistentSession bool `yaml:"persistent_session"`
	// QoS of subscriptions and publications: 0 or 1. With 0 nothing is acknowledged,
	// so that messages in progress are lost in a crash. Default 1.
	QoS int `yaml:"qos"`
	// MaxReconnectInterval bounds the growing pause between attempts to connect.
	// Default 30s, range 100ms to 1h.
	MaxReconnectInterval time.Duration `yaml:"max_reconnect_interval"`
	// InflightWindow is the number of messages that may wait for one commit of the
	// journal. A broker sends only a limited number of messages without an
	// acknowledgement: stay below it (mosquitto: 20, max_inflight_messages). Default
	// 16, range 1 to 1000.
	InflightWindow int `yaml:"inflight_window"`
	// BaseTopic begins all topics of the node: <base>/<node>/…. Default edge.
	BaseTopic string `yaml:"base_topic"`
	// Ring bounds the received messages that wait.
	Ring Ring `yaml:"ring"`
}

// DefaultConfig returns the defaults that configs/edge.yaml documents.
func DefaultConfig() Config {
	return Config{
		Servers:              []string{"tcp://127.0.0.1:1883"},
		TLS:                  TLS{MinVersion: "1.2"},
		Keepalive:            30 * time.Second,
		PersistentSession:    true,
		QoS:                  1,
		MaxReconnectInterval: 30 * time.Second,
		InflightWindow:       16,
		BaseTopic:            "edge",
		Ring:                 Ring{MaxMessages: 2048, MaxBytes: 4 * field.MiB},
	}
}

// serverPorts are the schemes of a server's address and their default ports.
var serverPorts = map[string]string{
	"tcp": "1883", "mqtt": "1883", "ssl": "8883", "tls": "8883", "mqtts": "8883", "ws": "80", "wss": "443",
}

// Encrypted reports whether the address of a server asks for TLS.
func Encrypted(server string) bool {
	scheme, _, _ := strings.Cut(server, "://")
	return slices.Contains([]string{"ssl", "tls", "mqtts", "wss"}, scheme)
}

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	errs := []error{
		field.Check(len(c.Servers) > 0, "servers", "[]", "at least one address"),
		field.Check(len(c.ClientID) <= 128 && (c.ClientID == "" || topic.Check(c.ClientID) == nil), "client_id", c.ClientID, "at most 128 bytes, without + and #"),
		field.Check(c.Username != "" || c.Password.IsZero(), "username", `""`, "a name, since there is a password"),
		field.Within("password", c.Password.Validate()),
		field.Within("tls", c.TLS.Validate()),
		field.Check(c.Keepalive >= time.Second && c.Keepalive <= 18*time.Hour && c.Keepalive%time.Second == 0, "keepalive", c.Keepalive, "whole seconds, 1s to 18h"),
		field.Check(c.QoS == 0 || c.QoS == 1, "qos", c.QoS, "0 or 1"),
		field.Check(c.MaxReconnectInterval >= 100*time.Millisecond && c.MaxReconnectInterval <= time.Hour, "max_reconnect_interval", c.MaxReconnectInterval, "100ms to 1h"),
		field.Check(c.InflightWindow >= 1 && c.InflightWindow <= 1000, "inflight_window", c.InflightWindow, "1 to 1000"),
		field.Within("ring", c.Ring.Validate()),
	}
	for _, s := range c.Servers {
		u, err := url.Parse(s)
		first, _, _ := strings.Cut(s, ":")
		switch {
		case strings.Contains(s, "@"): // it may have a password, also where it cannot be read
			errs = append(errs, errors.New("servers: an address has a user or password in it: want username and password as keys, and %40 for any other @"))
		case s != "" && serverPorts[first] == "" && !strings.Contains(s, "://"): // a host, and perhaps a port, as other programs take it
			errs = append(errs, field.Check(false, "servers", s, "mqtt://"+hostOf(s)+", or mqtts:// with TLS"))
		case err != nil && strings.Contains(s, "[") && strings.Contains(s, "%"): // a zone as the system writes it
			errs = append(errs, field.Check(false, "servers", s, strings.Replace(s, "%", "%25", 1)+", a zone after %25"))
		case err != nil:
			errs = append(errs, errors.New("servers: an address cannot be read: want scheme://host:port"))
		case serverPorts[u.Scheme] == "" || u.Hostname() == "":
			errs = append(errs, field.Check(false, "servers", s, "tcp://, mqtt://, ssl://, mqtts://, ws:// or wss:// and a host"))
		case strings.Contains(u.Hostname(), ":") && hostOf(u.Hostname()) == u.Hostname(): // its last part was taken for a port
			errs = append(errs, field.Check(false, "servers", s, u.Scheme+"://"+hostOf(u.Host)+", an address of IPv6 in brackets"))
		case u.Port() != "":
			port, err := strconv.Atoi(u.Port())
			errs = append(errs, field.Check(err == nil && port >= 1 && port <= 65535, "servers", s, "a port of 1 to 65535"))
		}
	}
	for level := range strings.SplitSeq(c.BaseTopic, "/") {
		if !topic.IsName(level) {
			errs = append(errs, field.Check(false, "base_topic", c.BaseTopic, "levels of [a-z0-9_-], no / at either end"))
			break
		}
	}
	return field.Join(errs...)
}

// hostOf returns a host as an address of a server has it: that of IPv6 in brackets, with %25 before its zone.
func hostOf(host string) string {
	if at, err := netip.ParseAddr(host); err == nil && at.Is6() {
		return "[" + strings.Replace(host, "%", "%25", 1) + "]"
	}
	return host
}

// OutboxConfig bounds the publications that wait. When it is full the oldest one
// that is not retained is discarded and counted.
type OutboxConfig struct {
	// MaxMessages, default 10000, range 16 to 10000000.
	MaxMessages int `yaml:"max_messages"`
	// MaxBytes of payload, default 8MiB, at least 64KiB.
	MaxBytes field.ByteSize `yaml:"max_bytes"`
	// Policy when it is full: drop_oldest.
	Policy string `yaml:"policy"`
}

// DefaultOutboxConfig returns the defaults that configs/edge.yaml documents.
func DefaultOutboxConfig() OutboxConfig {
	return OutboxConfig{MaxMessages: 10000, MaxBytes: 8 * field.MiB, Policy: "drop_oldest"}
}

// Validate reports every field that is out of range, joined.
func (o OutboxConfig) Validate() error {
	return field.Join(
		field.Check(o.MaxMessages >= 16 && o.MaxMessages <= 1e7, "max_messages", o.MaxMessages, "16 to 10000000"),
		field.Check(o.MaxBytes >= 64*field.KiB, "max_bytes", o.MaxBytes, "at least 64KiB"),
		field.Check(o.Policy == "drop_oldest", "policy", o.Policy, "drop_oldest"),
	)
}

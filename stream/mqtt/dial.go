package mqtt

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/gorilla/websocket"
	"golang.org/x/net/proxy"
)

const plainPayload = 8 << 20 // largest payload that a client of the tools reads

// ClientOptions returns the options of a paho client for the broker of m: MQTT 3.1.1,
// messages in order, one attempt at the first connection. It reads password and
// certificates; no error contains them. A packet from the broker that the standard
// forbids ends the connection with a ProtocolError. A payload above 8 MiB is cut.
func (c Config) ClientOptions(id string) (*paho.ClientOptions, error) {
	password, err := c.Password.Resolve()
	if err != nil {
		return nil, fmt.Errorf("mqtt: mqtt.password: %w", err)
	}
	tlsConfig, err := c.TLS.load()
	if err != nil {
		return nil, fmt.Errorf("mqtt: mqtt.tls: %w", err)
	}
	opts := paho.NewClientOptions().
		SetClientID(id).
		SetUsername(c.Username).SetPassword(password).
		SetProtocolVersion(4).SetOrderMatters(true).
		SetKeepAlive(c.Keepalive).SetPingTimeout(pingTimeout).
		SetConnectTimeout(connectTimeout).SetWriteTimeout(writeTimeout).
		SetConnectRetry(false).
		SetTLSConfig(tlsConfig).
		SetCustomOpenConnectionFn(func(u *url.URL, o paho.ClientOptions) (net.Conn, error) {
			nc, err := Dial(context.Background(), u, o.TLSConfig, o.ConnectTimeout)
			if err != nil {
				return nil, err
			}
			return plainConn{newFrameConn(nc, plainPayload, writeTimeout)}, nil
		})
	for _, s := range c.Servers {
		opts.AddBroker(s)
	}
	return opts, nil
}

// ConnectError returns the error of a failed connection in place of paho's: that of the network
// alone, or that the broker refuses.
func ConnectError(err error) error {
	if both, ok := err.(interface{ Unwrap() []error }); ok && errors.Is(err, packets.ErrorNetworkError) {
		causes := both.Unwrap()
		return causes[len(causes)-1]
	}
	if err != nil {
		err = fmt.Errorf("the broker refuses the connection: %w", err)
	}
	return err
}

// Advice returns the remedy for a failed connection, as the end of a sentence; "" if there is none.
func Advice(err error) string {
	switch alert := brokersAlert(err); {
	case strings.Contains(alert, "certificate required"):
		return "the broker wants a certificate of an authority that it trusts: set mqtt.tls.cert and mqtt.tls.key"
	case strings.Contains(alert, "protocol version"):
		return "the broker speaks other versions of TLS than mqtt.tls.min_version allows; or update it"
	case alert != "":
		return "the broker refuses TLS with this node, most likely its certificate: see when mqtt.tls.cert is valid (edge doctor), the broker's clock, and the authority that the broker trusts; its log may say more"
	case errors.As(err, new(*ProtocolError)), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, os.ErrDeadlineExceeded): // of reading; a server that is not reached has another error
		return "is this the address of an MQTT 3.1.1 broker, and its port the one for TLS (mqtts) or without (mqtt)?"
	case errors.Is(err, websocket.ErrBadHandshake):
		return "is the path in mqtt.servers that of the broker's websocket, such as /mqtt, and its port, too?"
	case errors.Is(err, packets.ErrorRefusedNotAuthorised), errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword):
		return "check mqtt.username and mqtt.password, and the broker's access list"
	case errors.Is(err, packets.ErrorRefusedIDRejected):
		return "the broker does not accept mqtt.client_id, or mqtt.keepalive is longer than it allows (mosquitto: max_keepalive)"
	case errors.Is(err, packets.ErrorRefusedServerUnavailable):
		return "it starts, stops, or has no room for another connection: its log may say more"
	case errors.Is(err, packets.ErrorRefusedBadProtocolVersion):
		return "it has to accept MQTT 3.1.1"
	case errors.As(err, new(x509.CertificateInvalidError)):
		return "check the clock of this machine, and the broker's certificate"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "set mqtt.tls.ca, or --ca of a command, to the certificate of the broker's authority"
	case nameless(err):
		return "the broker's certificate has no name of a host (SAN): it needs another one, with subjectAltName=DNS:NAME, or IP:ADDRESS, as in mqtt.servers"
	case errors.As(err, new(x509.HostnameError)):
		return "mqtt.tls.server_name has to be a name (SAN) in the broker's certificate"
	case errors.As(err, new(*fs.PathError)):
		return "put the file in its place, and let the daemon's user read it: the broker was not asked"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is the broker running, and are address and port right? mosquitto without a listener in its configuration serves its own machine alone"
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of this process: ulimit -n, or LimitNOFILE of the unit"
	case errors.As(err, new(*net.DNSError)):
		return "this machine does not find the name in mqtt.servers: check its spelling, the network, and the name service; an address needs none"
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		return "there is no way to the broker, or no answer: is its machine on, is this one on the network, and does a firewall let the port pass?"
	}
	return ""
}

// nameless reports whether the broker's certificate has neither the name nor the address of a host.
func nameless(err error) bool {
	var host x509.HostnameError
	return errors.As(err, &host) && len(host.Certificate.DNSNames)+len(host.Certificate.IPAddresses) == 0
}

// Dialer opens a connection to a server within a time, or until ctx ends.
type Dialer func(ctx context.Context, server *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error)

// Dial opens the network connection to one server. Unlike the function of paho, it
// ends with ctx and knows the default ports.
func Dial(ctx context.Context, u *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if u.Scheme == "ws" || u.Scheme == "wss" {
		return dialWebsocket(ctx, u, tlsConfig, within)
	}
	nc, err := proxy.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), serverPorts[u.Scheme])))
	if err != nil {
		return nil, err
	}
	if nc = quiet(nc); u.Scheme == "tcp" || u.Scheme == "mqtt" {
		return nc, nil
	}
	cfg := tlsConfig.Clone()
	cfg.ServerName = cmp.Or(cfg.ServerName, u.Hostname())
	secure := tls.Client(nc, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, err
	}
	return &tlsConn{Conn: secure}, nil
}

// noStore stores nothing. paho would store every unacknowledged message of QoS 1 to
// resume the connection; here, no connection is resumed.
type noStore struct{}

func (noStore) Open() {}

func (noStore) Put(string, packets.ControlPacket) {}

func (noStore) Get(string) packets.ControlPacket { return nil }

func (noStore) All() []string { return nil }

func (noStore) Del(string) {}

func (noStore) Close() {}

func (noStore) Reset() {}

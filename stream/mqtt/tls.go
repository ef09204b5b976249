package mqtt

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// load reads the certificates.
func (t TLS) load() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.MinVersion == "1.3" {
		cfg.MinVersion = tls.VersionTLS13
	}
	if t.CA != "" {
		path, err := expand(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read ca: %w", err)
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca %s: holds no PEM certificate; one in DER becomes PEM by openssl x509 -inform der -in %[1]s -out ca.pem", path)
		}
	}
	if t.Cert != "" {
		pair, err := LoadKeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// LoadKeyPair reads a certificate and its key from PEM files. ${NAME} in a path is replaced
// by that environment variable, which has to be set. The error names the files and the remedy.
func LoadKeyPair(cert, key string) (pair tls.Certificate, err error) {
	if cert, err = expand(cert); err == nil {
		key, err = expand(key)
	}
	if err != nil {
		return pair, fmt.Errorf("cert, key: %w", err)
	}
	if pair, err = tls.LoadX509KeyPair(cert, key); err == nil {
		return pair, nil
	}
	names, remedy := fmt.Sprintf("cert %s, key %s", cert, key), ""
	switch text := err.Error(); {
	case errors.Is(err, fs.ErrPermission):
		names, remedy = "cert, key", "; the daemon's user has to read it (edge.service: by ${CREDENTIALS_DIRECTORY})"
	case errors.As(err, new(*fs.PathError)):
		names = "cert, key"
	case strings.Contains(text, "does not match public key"):
		remedy = "; give the key with which this certificate was requested, and both of the same renewal"
	case strings.Contains(text, "failed to parse private key"):
		remedy = "; a key with a password cannot be used: openssl pkey -in KEY -out NEW writes it without"
	case strings.Contains(text, "any PEM data in certificate"):
		remedy = "; a certificate in DER becomes PEM by openssl x509 -inform der -in CERT -out NEW; a credential of edge.service is empty where its file is missing"
	case strings.Contains(text, "any PEM data in key"):
		remedy = "; a key in DER becomes PEM by openssl pkey -inform der -in KEY -out NEW; a credential of edge.service is empty where its file is missing"
	}
	return pair, fmt.Errorf("%s: %w%s", names, err, remedy)
}

// alertWait bounds the time in which a broker's alert is read after it ended the connection.
const alertWait = time.Second

// tlsConn is a connection under TLS whose writes fail by the reason that the broker gives. In
// TLS 1.3 a broker judges the certificate of a client after the handshake of the client: it
// sends an alert and ends the connection, perhaps before the first packet is written.
type tlsConn struct {
	net.Conn             // under TLS
	answered atomic.Bool // something was read: the broker admits the node
}

// Read implements net.Conn.
func (c *tlsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.answered.Load() {
		c.answered.Store(true)
	}
	return n, err
}

// Write implements net.Conn.
func (c *tlsConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && !c.answered.Load() {
		_ = c.SetReadDeadline(time.Now().Add(alertWait))
		if _, alert := c.Conn.Read(make([]byte, 1)); brokersAlert(alert) != "" {
			err = alert
		}
	}
	return n, err
}

// CloseWrite ends the direction from the node to the broker.
func (c *tlsConn) CloseWrite() error { return c.Conn.(*tls.Conn).CloseWrite() }

// brokersAlert returns the alert of TLS by which a broker ended a connection; "" if err is none.
func brokersAlert(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

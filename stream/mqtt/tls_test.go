package mqtt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"edge/test/files"
)

// The error of each certificate that cannot be used names its file and what to do.
func TestCertificatesThatCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	a := files.Certificate(t, in("a"), "a", nil, nil)
	files.Certificate(t, in("b"), "b", nil, nil)
	for name, data := range map[string][]byte{
		"empty": []byte("\n"), "a.der": a.Certificate[0],
		"a.locked": pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("locked")}),
	} {
		if err := os.WriteFile(in(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CERTIFICATES", folder)
	for name, tc := range map[string]struct {
		tls  TLS
		want []string // none: it can be used
	}{
		"a pair":                 {TLS{CA: in("a.pem"), Cert: in("a.pem"), Key: in("a.key")}, nil},
		"a pair by a variable":   {TLS{CA: "${CERTIFICATES}/a.pem", Cert: "${CERTIFICATES}/a.pem", Key: "${CERTIFICATES}/a.key"}, nil},
		"a variable that is not": {TLS{Cert: in("a.pem"), Key: "${ABSENT_VARIABLE}/a.key"}, []string{"${ABSENT_VARIABLE} is not set here; set it"}},
		"no CA by a variable":    {TLS{CA: "${ABSENT_VARIABLE}/a.pem"}, []string{"read ca: ${ABSENT_VARIABLE} is not set here"}},
		"another key":            {TLS{Cert: in("a.pem"), Key: in("b.key")}, []string{in("a.pem"), in("b.key"), "give the key with which this certificate was requested"}},
		"a key with a password":  {TLS{Cert: in("a.pem"), Key: in("a.locked")}, []string{in("a.locked"), "openssl pkey -in KEY"}},
		"a certificate in DER":   {TLS{Cert: in("a.der"), Key: in("a.key")}, []string{in("a.der"), "openssl x509 -inform der"}},
		"an empty key":           {TLS{Cert: in("a.pem"), Key: in("empty")}, []string{in("empty"), "empty where its file is missing"}},
		"both exchanged":         {TLS{Cert: in("a.key"), Key: in("a.pem")}, []string{in("a.key"), "switched"}},
		"an authority in DER":    {TLS{CA: in("a.der")}, []string{"no PEM certificate; one in DER becomes PEM by openssl x509 -inform der -in " + in("a.der")}},
		"no key":                 {TLS{Cert: in("a.pem"), Key: in("absent.key")}, []string{"cert, key: open " + in("absent.key")}},
	} {
		_, err := tc.tls.load()
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range tc.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %q in it", name, err, want)
			}
		}
	}
}

// A broker that refuses the certificate of the node may end the connection before CONNECT is
// written. The error is its alert and says what to do, not that the connection was reset.
func TestBrokerRefusesTheCertificate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems may discard what was received before a reset")
	}
	folder := t.TempDir()
	pair := files.Certificate(t, filepath.Join(folder, "broker"), "broker", nil, nil)
	files.Certificate(t, filepath.Join(folder, "stranger"), "stranger", nil, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reset := make(chan struct{}, 1)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_ = tls.Server(c, &tls.Config{
				Certificates: []tls.Certificate{*pair}, ClientAuth: tls.RequireAnyClientCert,
				VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { return errors.New("a stranger") },
			}).Handshake()
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
			reset <- struct{}{}
		}
	}()
	for name, tc := range map[string]struct{ key, want string }{
		"a stranger's": {"stranger", "the broker refuses TLS with this node, most likely its certificate"},
		"none":         {"", "the broker wants a certificate of an authority that it trusts: set mqtt.tls.cert and mqtt.tls.key"},
	} {
		cfg := DefaultConfig()
		cfg.Servers = []string{"mqtts://" + l.Addr().String()}
		cfg.TLS.CA = filepath.Join(folder, "broker.pem")
		if tc.key != "" {
			cfg.TLS.Cert, cfg.TLS.Key = filepath.Join(folder, tc.key+".pem"), filepath.Join(folder, tc.key+".key")
		}
		dial := func(ctx context.Context, server *url.URL, tlsConfig *tls.Config, within time.Duration) (net.Conn, error) {
			nc, err := Dial(ctx, server, tlsConfig, within)
			<-reset
			return nc, err
		}
		client := NewClient(Options{Config: cfg, ID: "edge-test", ConnectTimeout: longWait, Dial: dial})
		if _, err := client.connect(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
		opts, err := cfg.ClientOptions("edge-test") // of the tools, which write CONNECT themselves
		if err != nil {
			t.Fatal(err)
		}
		nc, err := dial(t.Context(), opts.Servers[0], opts.TLSConfig, longWait)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte("CONNECT")); !strings.Contains(Advice(err), tc.want) {
			t.Errorf("%s: the error of writing is %v", name, err)
		}
		nc.Close()
	}
}

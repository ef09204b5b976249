package stream

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"edge/stream/mqtt"
	"edge/test/files"
)

// authority makes certificates.
type authority struct {
	t   *testing.T
	dir string
	*tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.Certificate = files.Certificate(t, a.file("ca"), "ca", nil, nil)
	return a
}

// file is the path of a certificate or key that sign has written.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign makes a certificate for broker.lan, valid until end, or for an hour.
func (a *authority) sign(name string, end time.Time) *tls.Certificate {
	a.t.Helper()
	return files.Certificate(a.t, a.file(name), name, a.Certificate, func(c *x509.Certificate) {
		c.IPAddresses, c.DNSNames = nil, []string{"broker.lan"}
		if !end.IsZero() {
			c.NotAfter = end
		}
	})
}

// passwordHook admits one user.
type passwordHook struct {
	auth.AllowHook
	user, password string
}

func (h *passwordHook) OnConnectAuthenticate(_ *mochi.Client, pk packets.Packet) bool {
	return string(pk.Connect.Username) == h.user && string(pk.Connect.Password) == h.password
}

func TestTLSAndPassword(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	pair := a.sign("broker", time.Time{})
	a.sign("edge", time.Time{})
	stranger := newAuthority(t)
	stranger.sign("edge", time.Time{})
	clients := x509.NewCertPool()
	clients.AddCert(a.Leaf)
	b := newMochi(t, &tls.Config{Certificates: []tls.Certificate{*pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert},
		&passwordHook{user: "edge", password: "hunter2"})
	b.start(t)
	if err := os.WriteFile(a.file("password"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := func(m *mqtt.Config) {
		m.Servers = []string{"mqtts://" + b.addr}
		m.TLS = mqtt.TLS{CA: a.file("ca.pem"), Cert: a.file("edge.pem"), Key: a.file("edge.key"), ServerName: "broker.lan", MinVersion: "1.3"}
		m.Username, m.Password = "edge", mqtt.Secret{File: a.file("password")}
	}
	for name, c := range map[string]struct {
		change func(*mqtt.Config)
		want   string // in the log; empty: it connects
	}{
		"good":              {func(*mqtt.Config) {}, ""},
		"another name":      {func(m *mqtt.Config) { m.TLS.ServerName = "" }, "mqtt.tls.server_name has to be"},
		"another authority": {func(m *mqtt.Config) { m.TLS.CA = stranger.file("ca.pem") }, "set mqtt.tls.ca"},
		"system's":          {func(m *mqtt.Config) { m.TLS.CA = "" }, "certificate"},
		"no certificate":    {func(m *mqtt.Config) { m.TLS.Cert, m.TLS.Key = "", "" }, "certificate required"},
		"a stranger's":      {func(m *mqtt.Config) { m.TLS.Cert, m.TLS.Key = stranger.file("edge.pem"), stranger.file("edge.key") }, "certificate"},
		"no CA file":        {func(m *mqtt.Config) { m.TLS.CA = "/absent/ca.pem" }, "mqtt.tls: read ca: open /absent/ca.pem"},
		"no password file":  {func(m *mqtt.Config) { m.Password.File = "/absent/password" }, "mqtt.password: read secret: open /absent/password"},
		"wrong password":    {func(m *mqtt.Config) { m.Password = mqtt.Secret{File: a.file("edge.pem")} }, "check mqtt.username and mqtt.password"},
		"no password":       {func(m *mqtt.Config) { m.Password = mqtt.Secret{} }, "check mqtt.username and mqtt.password"},
		"plain text":        {func(m *mqtt.Config) { m.Servers = []string{"tcp://" + b.addr} }, "cannot connect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startNode(t, b, newFakeJournal(), func(cfg *Config, _ *ModelConfig) {
				good(&cfg.MQTT)
				c.change(&cfg.MQTT)
				cfg.MQTT.ClientID = strings.ReplaceAll(name, " ", "-")
			})
			if c.want == "" {
				d.ready(t)
				return
			}
			eventually(t, c.want+" in the log", func() bool { return strings.Contains(string(d.log.tail(1<<20)), c.want) })
			if s := d.Stats(); s.Connected {
				t.Error("connected")
			}
			if strings.Contains(string(d.log.tail(1<<20)), "hunter2") {
				t.Errorf("the password is in the log: %s", d.log.tail(1<<20))
			}
		})
	}
}

func TestWebsocket(t *testing.T) {
	t.Parallel()
	server := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := server.AddHook(new(auth.AllowHook), nil); err != nil {
		t.Fatal(err)
	}
	ws := listeners.NewWebsocket(listeners.Config{ID: "ws", Address: freePort(t)})
	tcp := listeners.NewTCP(listeners.Config{ID: "tcp", Address: freePort(t)})
	for _, l := range []listeners.Listener{ws, tcp} {
		if err := server.AddListener(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for late := time.Now().Add(time.Second); atomic.LoadInt64(&server.Info.ClientsConnected) > 0 && time.Now().Before(late); {
			time.Sleep(time.Millisecond) // mochi can block while clients leave, see package embedded
		}
		server.Close()
	})
	d := startNode(t, &broker{addr: tcp.Address()}, newFakeJournal(), func(c *Config, _ *ModelConfig) {
		c.MQTT.Servers = []string{"ws://" + ws.Address()}
	}).ready(t)
	newProbe(t, &broker{addr: tcp.Address()}).send("factory/p7/vibration", withID(0))
	eventually(t, "a sample to be learnt", func() bool { return d.Stats().Learned == 1 })
}

// The first server that answers is used.
func TestSecondServer(t *testing.T) {
	t.Parallel()
	b := newMochi(t, nil, nil)
	b.start(t)
	startNode(t, b, newFakeJournal(), func(c *Config, _ *ModelConfig) {
		c.MQTT.Servers = []string{"tcp://" + freePort(t), "mqtt://" + b.addr}
	}).ready(t)
}

package daemon

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// A reload changes password and certificate, or is refused with the reason.
func TestReloadHTTP(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	web := brokertest.FreeAddress(t)
	write := func(keys string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), `http: {listen: ""}`, fmt.Sprintf("http: {listen: %q, %s}", web, keys))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts: [edge.lan]")
	r := startReloadable(t, config).ready()
	write(fmt.Sprintf("password: {file: %q}", t.TempDir()+"/none"))
	if _, err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "http.password") {
		t.Errorf("a password that is not there: %v", err)
	}
	write(fmt.Sprintf("password: {file: %q}", files.Write(t, "password", secretForTests)))
	changed, err := r.Reload(t.Context())
	slices.Sort(changed)
	if err != nil || !slices.Contains(changed, "http.password.file") {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if !brokertest.Eventually(func() bool {
		resp, err := http.Get("http://" + web + "/api/v1/models")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	}) {
		t.Error("the password is not asked for")
	}
}

// After a reload the client connects to a broker whose address, certificate,
// authority or password has changed, with its new credentials.
func TestReloadCredentials(t *testing.T) {
	if _, err := exec.LookPath("mosquitto_passwd"); err != nil {
		brokertest.Missing(t, "mosquitto_passwd is not installed: "+err.Error())
	}
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	secret := func(word string) {
		if err := os.WriteFile(file("secret"), []byte(word+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mosquitto_passwd", "-b", "-c", file("users"), "edge", word).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %s", out)
		}
	}
	certify := func() {
		ca := files.Certificate(t, file("ca"), "ca", nil, nil)
		files.Certificate(t, file("server"), "127.0.0.1", ca, nil)
		files.Certificate(t, file("client"), "edge", ca, nil)
	}
	secret("first")
	certify()
	start := func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, fmt.Sprintf("allow_anonymous false\npassword_file %s\ncafile %s\ncertfile %s\nkeyfile %s\nrequire_certificate true\n",
			file("users"), file("ca.pem"), file("server.pem"), file("server.key")))
	}
	b := brokertest.New(t, start)
	path, _ := harness.WaveformConfig(t, "mqtts://"+b.Addr)
	d := &reloadable{t: t, path: path}
	d.edit("mqtt: {", fmt.Sprintf("mqtt: {username: edge, password: {file: %s}, tls: {ca: %s, cert: %s, key: %s}, ", file("secret"), file("ca.pem"), file("client.pem"), file("client.key")))
	d = startReloadable(t, path).ready()
	if changed, err := d.reload(); err != nil || len(changed) > 0 {
		t.Errorf("nothing has changed, but %q, %v", changed, err)
	}
	connected := func() int { return strings.Count(d.log.String(), `msg="connected to the broker"`) }
	for name, renew := range map[string]func(){
		"password": func() { secret("second") }, "certificates": certify,
	} {
		b.Stop()
		renew()
		b.Stop = b.Start(t, b.Addr)
		n := connected()
		if changed, err := d.reload(); err != nil || !slices.Equal(changed, []string{"mqtt.password or mqtt.tls renewed"}) {
			t.Fatalf("%s: changed %q, %v", name, changed, err)
		}
		if !brokertest.Eventually(func() bool { return connected() > n && d.current().Node.Stats().Subscribed }) {
			t.Errorf("%s: it does not connect again", name)
		}
	}
	elsewhere := brokertest.New(t, start)
	d.change("mqtt.servers", b.Addr, elsewhere.Addr)
	d.ready()
	if text := d.log.String(); strings.Contains(text, "first") || strings.Contains(text, "second") {
		t.Error("a secret is in the log")
	}
}

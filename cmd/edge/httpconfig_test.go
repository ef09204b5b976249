package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"edge/stream/mqtt"
)

// Labels of anyone on the network have to be allowed twice.
func TestHTTPConfig(t *testing.T) {
	secret := mqtt.Secret{Env: "HTTP_PASSWORD"}
	pair := Certificate{"a.pem", "a.key"}
	for name, tc := range map[string]struct {
		http    HTTP
		control bool
		want    string // part of the error; "": none
		exposed string // part of the warning; "": none
	}{
		"loopback":                         {HTTP{Listen: "127.0.0.1:9107"}, true, "", ""},
		"loopback by name":                 {HTTP{Listen: "localhost:9107"}, true, "", ""},
		"loopback of IPv6":                 {HTTP{Listen: "[::1]:9107"}, true, "", ""},
		"nowhere":                          {HTTP{}, true, "", ""},
		"network":                          {HTTP{Listen: "0.0.0.0:9107"}, false, "", "without a password"},
		"network, control":                 {HTTP{Listen: "0.0.0.0:9107"}, true, "http.control_without_password: true", "labels are taken"},
		"network of IPv6, control":         {HTTP{Listen: "[::]:9107"}, true, "http.control_without_password: true", "labels are taken"},
		"no host, control":                 {HTTP{Listen: ":9107"}, true, "http.control_without_password: true", "labels are taken"},
		"a name, control":                  {HTTP{Listen: "edge.lan:9107"}, true, "http.control_without_password: true", "labels are taken"},
		"network, control, told twice":     {HTTP{Listen: "0.0.0.0:9107", ControlWithoutPassword: true}, true, "", "labels are taken"},
		"network, control, password":       {HTTP{Listen: "0.0.0.0:9107", Password: secret}, true, "", "unencrypted"},
		"network, control, both":           {HTTP{Listen: "0.0.0.0:9107", Password: secret, TLS: pair}, true, "", ""},
		"two sources of a password":        {HTTP{Password: mqtt.Secret{File: "a", Env: "B"}}, false, "http.password: ", ""},
		"certificate without a key":        {HTTP{TLS: Certificate{Cert: "a.pem"}}, false, "http.tls: ", ""},
		"key without a certificate":        {HTTP{TLS: Certificate{Key: "a.key"}}, false, "http.tls: ", ""},
		"host with a port":                 {HTTP{Hosts: []string{"edge.lan:80"}}, false, "http.hosts[0]: ", ""},
		"host with a scheme":               {HTTP{Hosts: []string{"a", "https://edge.lan"}}, false, "http.hosts[1]: ", ""},
		"hosts of a domain":                {HTTP{Hosts: []string{"*.lan"}}, false, "http.hosts[0]: ", ""},
		"empty host":                       {HTTP{Hosts: []string{""}}, false, "http.hosts[0]: ", ""},
		"without a port":                   {HTTP{Listen: "127.0.0.1"}, false, "http.listen: ", ""},
		"port that is none, with a secret": {HTTP{Listen: "127.0.0.1:http", Password: secret}, false, "http.listen: ", ""},
	} {
		err := tc.http.Validate(tc.control)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		exposed := ""
		for _, e := range tc.http.exposures(tc.control) {
			exposed += e.Reason
		}
		if (exposed == "") != (tc.exposed == "") || !strings.Contains(exposed, tc.exposed) {
			t.Errorf("%s: warns %q, want %q", name, exposed, tc.exposed)
		}
	}
}

// `edge check` refuses and warns as `edge run` does.
func TestCheckHTTP(t *testing.T) {
	config, _ := waveformConfig(t, "mqtt://127.0.0.1:1")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		keys string
		code int
		want string
	}{
		"open":              {"http: {listen: 0.0.0.0:0}", 0, "warning  http.listen 0.0.0.0:0: the page, the API and the metrics can be reached"},
		"open, with labels": {"http: {listen: 0.0.0.0:0}\ncontrol: {enabled: true}", exitConfig, "http.control_without_password: true"},
	} {
		if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), `http: {listen: ""}`, tc.keys)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"check", "run"} {
			if command == "run" && tc.code == 0 {
				continue // it would go on
			}
			code, out, errOut := edge(t, command, "-c", config)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("%s: edge %s ends with %d, want %d and %q: %s%s", name, command, code, tc.code, tc.want, out, errOut)
			}
		}
	}
}

// A reload changes password and certificate, or says why not.
func TestReloadHTTP(t *testing.T) {
	b := newTestBroker(t, startEmbedded)
	config, _ := waveformConfig(t, b.url())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	web := freeAddress(t)
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
	write(fmt.Sprintf("password: {file: %q}", writeFile(t, "password", secretForTests)))
	changed, err := r.Reload(t.Context())
	slices.Sort(changed)
	if err != nil || !slices.Contains(changed, "http.password.file") {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if !eventually(func() bool {
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

// A password or a key of the page that all users may read is warned of.
func TestHTTPExposures(t *testing.T) {
	c := DefaultConfig()
	c.HTTP.Password.File, c.HTTP.TLS.Key = writeFile(t, "password", "x"), writeFile(t, "key", "x")
	if found := c.exposures(""); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	for _, path := range []string{c.HTTP.Password.File, c.HTTP.TLS.Key} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found := c.exposures(""); len(found) != 2 {
		t.Errorf("found %v, want both files", found)
	}
}

package config

import (
	"os"
	"strings"
	"testing"

	"edge/stream/mqtt"
	"edge/test/files"
)

func TestOpenToNetwork(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:9107": false, "[::1]:9107": false, "localhost:9107": false, ":9107": true, "0.0.0.0:9107": true, "192.168.1.4:9107": true, "": false} {
		if open := openToNetwork(listen); open != want {
			t.Errorf("%q is open: %v", listen, open)
		}
	}
}

// Accepting labels from the network without a password takes two keys.
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
		"network, control, both keys":      {HTTP{Listen: "0.0.0.0:9107", ControlWithoutPassword: true}, true, "", "labels are taken"},
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
		for _, e := range tc.http.Exposures(tc.control) {
			exposed += e.Reason
		}
		if (exposed == "") != (tc.exposed == "") || !strings.Contains(exposed, tc.exposed) {
			t.Errorf("%s: warns %q, want %q", name, exposed, tc.exposed)
		}
	}
}

// A password or a key of the page that any user may read is an exposure.
func TestHTTPExposures(t *testing.T) {
	c := Default()
	c.HTTP.Password.File, c.HTTP.TLS.Key = files.Write(t, "password", "x"), files.Write(t, "key", "x")
	if found := c.Exposures(""); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	for _, path := range []string{c.HTTP.Password.File, c.HTTP.TLS.Key} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found := c.Exposures(""); len(found) != 2 {
		t.Errorf("found %v, want both files", found)
	}
}

// The address of a page on all interfaces has the name of the machine, since no browser finds [::].
func TestHTTPURL(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	secure := HTTP{TLS: Certificate{Cert: "cert", Key: "key"}}
	for listen, want := range map[string]string{
		":9107": "http://" + name + ":9107/", "0.0.0.0:9107": "http://" + name + ":9107/", "[::]:9107": "http://" + name + ":9107/",
		"127.0.0.1:9107": "http://127.0.0.1:9107/", "[::1]:9107": "http://[::1]:9107/", "edge.lan:9107": "http://edge.lan:9107/",
	} {
		if got := (HTTP{}).URL(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
	if got := secure.URL("127.0.0.1:9107"); got != "https://127.0.0.1:9107/" {
		t.Errorf("with a certificate: %s", got)
	}
}

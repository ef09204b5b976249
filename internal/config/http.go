package config

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"edge/stream/field"
	"edge/stream/mqtt"
)

// HTTP configures the server of the page, the metrics and the health checks.
type HTTP struct {
	// Listen is host:port; port 0 takes a free one. Empty: nowhere. Default
	// 127.0.0.1:9107, for this machine alone.
	Listen string `yaml:"listen"`
	// Hosts are the names that requests may use for the machine, besides its
	// addresses, localhost, its host name and that with .local.
	Hosts []string `yaml:"hosts"`
	// TLS is the certificate of the server. Default none: the server speaks plain HTTP.
	TLS Certificate `yaml:"tls"`
	// Password is required on every path but /healthz and /readyz. Default none.
	Password mqtt.Secret `yaml:"password"`
	// ControlWithoutPassword accepts labels from any machine that reaches an address
	// of the network, where control is enabled. Default false.
	ControlWithoutPassword bool `yaml:"control_without_password"`
	// Pprof serves Go's profiles under /debug/pprof/. Default false.
	Pprof bool `yaml:"pprof"`
}

// Certificate names the files of a server's certificate and key. ${NAME} in a
// path is replaced by that environment variable.
type Certificate struct {
	// Cert is a PEM file of the certificate, followed by its intermediate
	// certificates.
	Cert string `yaml:"cert"`
	// Key is a PEM file of the certificate's key.
	Key string `yaml:"key"`
}

// Enabled reports whether the server has a certificate.
func (c Certificate) Enabled() bool { return c != Certificate{} }

// Files returns the paths of both files.
func (c Certificate) Files() []string {
	return []string{os.Expand(c.Cert, os.Getenv), os.Expand(c.Key, os.Getenv)}
}

// Load reads the certificate and its key.
func (c Certificate) Load() (tls.Certificate, error) {
	return mqtt.LoadKeyPair(c.Cert, c.Key)
}

// Validate returns the error of every wrong key. control reports whether the page
// accepts labels.
func (h HTTP) Validate(control bool) error {
	var errs problems
	if h.Listen != "" {
		host, port, err := net.SplitHostPort(h.Listen)
		_, bad := strconv.ParseUint(port, 10, 16)
		address := strings.Trim(host, "0123456789.") == "" && host != "" // not a host name
		if err != nil || bad != nil || address && net.ParseIP(host) == nil || strings.ContainsAny(host, " /") {
			errs.add("http.listen", "%s: want host:port, such as 127.0.0.1:9107, or nothing", h.Listen)
		}
	}
	if openToNetwork(h.Listen) && control && h.Password.IsZero() && !h.ControlWithoutPassword {
		errs.add("http.listen", "%s can be reached from other machines, control.enabled is true and there is no password, so that anyone there could label samples: set http.password, or listen on 127.0.0.1, or, if that is meant, set http.control_without_password: true as well", h.Listen)
	}
	for i, name := range h.Hosts {
		if name == "" || strings.ContainsAny(name, "/:*@[] \t") {
			errs.add(fmt.Sprintf("http.hosts[%d]", i), "%q: want the name of a host, such as edge.lan, without scheme and port", name)
		}
	}
	if (h.TLS.Cert == "") != (h.TLS.Key == "") {
		errs.add("http.tls", "cert and key: want both or none")
	}
	if err := h.Password.Validate(); err != nil {
		errs.add("http.password", "%v", err)
	}
	return field.Join(errs...)
}

// Readable returns the errors of reading the password and the certificate, which
// the server reads when it starts.
func (h HTTP) Readable() error {
	var errs []error
	if !h.Password.IsZero() {
		if _, err := h.Password.Resolve(); err != nil {
			errs = append(errs, fmt.Errorf("http.password: %w", err))
		}
	}
	if h.TLS.Enabled() {
		if _, err := h.TLS.Load(); err != nil {
			errs = append(errs, fmt.Errorf("http.tls: %w", err))
		}
	}
	return field.Join(errs...)
}

// Exposures returns the ways in which other machines can use the page that may
// not be intended. control reports whether the page accepts labels.
func (h HTTP) Exposures(control bool) (found []Exposure) {
	if !openToNetwork(h.Listen) {
		return nil
	}
	add := func(reason, advice string) {
		found = append(found, Exposure{"http.listen " + h.Listen, reason, advice})
	}
	switch {
	case h.Password.IsZero() && control:
		add("the page, the API and the metrics can be reached from other machines without a password, and labels are taken from anyone there", "http.password and http.tls, or listen on 127.0.0.1")
	case h.Password.IsZero():
		add("the page, the API and the metrics can be reached from other machines without a password", "http.password and http.tls, or listen on 127.0.0.1")
	case !h.TLS.Enabled():
		add("the page can be reached from other machines, and its password goes over the network unencrypted", "http.tls, or a proxy in front that speaks TLS")
	}
	return found
}

// URL returns the address of the page that is served on a network address; where that is one of
// all interfaces, with the name of this machine.
func (h HTTP) URL(listen string) string {
	scheme := "http"
	if h.TLS.Enabled() {
		scheme = "https"
	}
	if host, port, err := net.SplitHostPort(listen); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		if name, err := os.Hostname(); err == nil {
			listen = net.JoinHostPort(name, port)
		}
	}
	return scheme + "://" + listen + "/"
}

// openToNetwork reports whether an address accepts connections from other
// machines.
func openToNetwork(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

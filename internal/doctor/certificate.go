package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"edge/internal/broker"
)

// expiresSoon is the remaining validity of a certificate below which the doctor
// warns.
const expiresSoon = 14 * 24 * time.Hour

// certificate examines the broker's certificate.
func (p *brokerProbe) certificate(c *broker.Client) {
	if len(c.TLS.PeerCertificates) == 0 {
		return
	}
	p.d.validity("broker's certificate", tls.VersionName(c.TLS.Version)+"; the broker's certificate is valid", c.TLS.PeerCertificates[0])
}

// validity examines from when until when a certificate is valid.
func (d *Diagnosis) validity(check, detail string, c *x509.Certificate) {
	late := time.Now().Before(c.NotBefore)
	if late {
		detail += " from " + c.NotBefore.Format(time.DateOnly)
	}
	detail += " until " + c.NotAfter.Format(time.DateOnly)
	switch left := time.Until(c.NotAfter); {
	case late:
		d.fail(check, detail, "check the clock of this machine, or take another certificate")
	case left < 0:
		d.fail(check, detail, "renew it, or check the clock of this machine")
	case left < expiresSoon:
		d.warn(check, detail, "renew it")
	default:
		d.ok(check, "%s", detail)
	}
}

package diagnosis

import (
	"crypto/x509"
	"time"
)

// expiresSoon is the remaining validity of a certificate below which Certificate warns.
const expiresSoon = 14 * 24 * time.Hour

// Certificate adds a finding on a certificate: from when until when it is valid.
func (d *Diagnosis) Certificate(check, detail string, c *x509.Certificate) {
	late := time.Now().Before(c.NotBefore)
	if late {
		detail += " from " + c.NotBefore.Format(time.DateOnly)
	}
	detail += " until " + c.NotAfter.Format(time.DateOnly)
	switch left := time.Until(c.NotAfter); {
	case late:
		d.Fail(check, detail, "check the clock of this machine, or take another certificate")
	case left < 0:
		d.Fail(check, detail, "renew it, or check the clock of this machine")
	case left < expiresSoon:
		d.Warn(check, detail, "renew it")
	default:
		d.OK(check, "%s", detail)
	}
}

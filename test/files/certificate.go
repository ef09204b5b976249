package files

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"
)

// Certificate writes a certificate of a name, for 127.0.0.1 and an hour, and its key as PATH.pem and
// PATH.key. It is signed by an authority, or else is one; change, which may be nil, gives it other
// properties.
func Certificate(t testing.TB, path, name string, by *tls.Certificate, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes([]byte(rand.Text()[:16])), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: by == nil, BasicConstraintsValid: true,
	}
	if change != nil {
		change(c)
	}
	if by == nil {
		by = &tls.Certificate{Leaf: c, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.Leaf, &key.PublicKey, by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for end, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path+end, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(path+".pem", path+".key")
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

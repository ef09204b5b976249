package mqtt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
)

// Credentials reads all secrets and certificates as the next connect will, and
// returns a digest that changes with any of them and reveals nothing. The error names
// the key that cannot be used.
func (c Config) Credentials() (digest string, err error) {
	password, err := c.Password.Resolve()
	if err != nil {
		return "", fmt.Errorf("mqtt.password: %w", err)
	}
	if _, err := c.TLS.load(); err != nil {
		return "", fmt.Errorf("mqtt.tls: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", c.Username, password)
	for _, path := range c.Files() {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("mqtt.tls: %w", err)
		}
		fmt.Fprintf(h, "%d\n", len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Files returns the paths of the files that Credentials reads.
func (c Config) Files() (paths []string) {
	for _, path := range []string{c.Password.File, c.TLS.CA, c.TLS.Cert, c.TLS.Key} {
		if path = os.Expand(path, os.Getenv); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

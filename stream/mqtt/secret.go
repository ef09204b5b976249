package mqtt

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret says where a secret is; it never holds the secret itself, so that
// printing a configuration cannot give it away. At most one field is set.
type Secret struct {
	// File holds the secret; a final line break is not part of it. ${NAME} is
	// replaced by that environment variable.
	File string `yaml:"file"`
	// Env is the name of an environment variable that holds the secret.
	Env string `yaml:"env"`
}

// IsZero reports whether no secret is configured.
func (s Secret) IsZero() bool { return s == Secret{} }

// Validate reports a secret that has two sources.
func (s Secret) Validate() error {
	if s.File != "" && s.Env != "" {
		return errors.New("file and env are both set: want one of them")
	}
	return nil
}

// Resolve reads the secret: whoever connects calls it each time, so that a
// renewed secret is used at the next connection. It is empty where none is
// configured. No error of it contains the secret.
func (s Secret) Resolve() (string, error) {
	switch {
	case s.File != "":
		path := os.Expand(s.File, os.Getenv)
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	case s.Env != "":
		v, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("read secret: environment variable %s is not set", s.Env)
		}
		return v, nil
	}
	return "", nil
}

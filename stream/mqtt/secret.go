package mqtt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret is the location of a secret. It never holds the secret itself, so that a
// printed configuration does not reveal it. At most one field is set.
type Secret struct {
	// File is the path of a file with the secret; a final line break is ignored, and so is a
	// byte-order mark. ${NAME} is replaced by that environment variable, which has to be set.
	File string `yaml:"file"`
	// Env is the name of an environment variable with the secret.
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

// Resolve reads the secret. It is called for each connection, so that a renewed
// secret is used by the next one. The result is empty if no secret is configured; an empty
// secret is an error. No error contains the secret.
func (s Secret) Resolve() (string, error) {
	switch {
	case s.File != "":
		path, err := expand(s.File)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		text := string(data)
		if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			return "", fmt.Errorf("read secret: %s is UTF-16: save it as UTF-8", path)
		}
		if text = strings.TrimRight(strings.TrimPrefix(text, "\ufeff"), "\r\n"); text == "" {
			return "", fmt.Errorf("read secret: %s is empty", path)
		}
		return text, nil
	case s.Env != "":
		v := os.Getenv(s.Env)
		if v == "" {
			return "", fmt.Errorf("read secret: environment variable %s is not set, or empty", s.Env)
		}
		return v, nil
	}
	return "", nil
}

// expand replaces each ${NAME} of a path by that environment variable, which has to be set: as
// empty it would name another file.
func expand(path string) (string, error) {
	unset := ""
	path = os.Expand(path, func(name string) string {
		value, ok := os.LookupEnv(name)
		if !ok {
			unset = cmp.Or(unset, name)
		}
		return value
	})
	if unset != "" {
		return "", fmt.Errorf("${%s} is not set here; set it to the folder of the file, as root: %[1]s=/etc/edge", unset)
	}
	return path, nil
}

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Exposure is a file that more users may read or write than is good.
type Exposure struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Advice string `json:"advice"`
}

// Exposures finds the files of a configuration that everybody may read although
// they hold secrets, or write although they decide what the daemon does. A
// group is trusted: it is how a secret is shared with a service. path is that
// of the configuration file, "" for none.
func (c *Config) Exposures(path string) []Exposure {
	if runtime.GOOS == "windows" { // which has other rights than these
		return nil
	}
	const read, write = 0o004, 0o002
	var found []Exposure
	look := func(file string, bits fs.FileMode, reason, advice string) {
		info, err := os.Stat(file)
		if file == "" || err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&bits == 0 {
			return // what cannot be read is told where it is needed
		}
		found = append(found, Exposure{file, reason, advice + " " + file})
	}
	secret := os.Expand(c.MQTT.Password.File, os.Getenv)
	look(path, write, "everybody may change the configuration", "chmod o-w")
	for _, s := range []struct{ file, what string }{
		{secret, "the password"}, {c.MQTT.TLS.Key, "the private key"},
		{os.Expand(c.HTTP.Password.File, os.Getenv), "the page's password"}, {os.Expand(c.HTTP.TLS.Key, os.Getenv), "the page's private key"},
	} {
		look(s.file, read|write, "everybody may read or change "+s.what, "chmod o=")
	}
	store := c.StorePath()
	look(store, 0o077, "others may read what the model was taught", "the daemon takes that right away when it starts; or chmod 600")
	folder := filepath.Dir(store)
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&write != 0 && info.Mode()&fs.ModeSticky == 0 {
		found = append(found, Exposure{folder, "everybody may put another file in the place of the state", "chmod o-w " + folder})
	}
	return found
}

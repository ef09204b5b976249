package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Exposure is a file or an address that more users can reach than is safe.
type Exposure struct {
	Path   string `json:"path"` // or http.listen with its address
	Reason string `json:"reason"`
	Advice string `json:"advice"`
}

// Exposures returns the files of a configuration that any user can read although
// they hold secrets, or write although they configure the daemon. Groups are
// trusted: a secret is shared with a service through its group. path is that of
// the configuration file, "" without one.
func (c *Config) Exposures(path string) []Exposure {
	if runtime.GOOS == "windows" { // which has no such permission bits
		return nil
	}
	const read, write = 0o004, 0o002
	var found []Exposure
	look := func(file string, bits fs.FileMode, reason, advice string) {
		info, err := os.Stat(file)
		if file == "" || err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&bits == 0 {
			return // the reader of an unreadable file reports it
		}
		found = append(found, Exposure{file, reason, advice + " " + file})
	}
	look(path, write, "any user may change the configuration", "chmod o-w")
	for _, s := range []struct{ file, name string }{
		{c.MQTT.Password.File, "the password"}, {c.MQTT.TLS.Key, "the private key"},
		{c.HTTP.Password.File, "the page's password"}, {c.HTTP.TLS.Key, "the page's private key"},
	} {
		look(os.Expand(s.file, os.Getenv), read|write, "any user may read or change "+s.name, "chmod o=")
	}
	store, err := c.StorePath()
	if err != nil {
		return found
	}
	look(store, 0o077, "other users may read what the model has learnt", "the daemon removes that permission when it starts; or chmod 600")
	folder := filepath.Dir(store)
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&write != 0 && info.Mode()&fs.ModeSticky == 0 {
		found = append(found, Exposure{folder, "any user may replace the state file", "chmod o-w " + folder})
	}
	return found
}

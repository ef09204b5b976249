package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExposures(t *testing.T) {
	folder := t.TempDir()
	file := func(name string, mode fs.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		config, password, key, state, folder fs.FileMode
		want                                 []string
	}{
		"as it should be":            {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o755},
		"a group is trusted":         {config: 0o664, password: 0o640, key: 0o640, state: 0o600, folder: 0o775},
		"any user reads a password":  {config: 0o644, password: 0o644, key: 0o600, state: 0o600, folder: 0o755, want: []string{"password: any user may read or change the password"}},
		"any user reads a key":       {config: 0o644, password: 0o600, key: 0o604, state: 0o600, folder: 0o755, want: []string{"key: any user may read or change the private key"}},
		"any user configures":        {config: 0o646, password: 0o600, key: 0o600, state: 0o600, folder: 0o755, want: []string{"config: any user may change the configuration"}},
		"others read the state":      {config: 0o644, password: 0o600, key: 0o600, state: 0o640, folder: 0o755, want: []string{"state: other users may read what the model has learnt"}},
		"any user replaces it":       {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o777, want: []string{": any user may replace the state file"}},
		"any user, but not replaces": {config: 0o644, password: 0o600, key: 0o600, state: 0o600, folder: 0o777 | fs.ModeSticky},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Default()
			cfg.MQTT.Password.File, cfg.MQTT.TLS.Key = file("password", tc.password), file("key", tc.key)
			cfg.Store.Path = file("state", tc.state)
			if err := os.Chmod(folder, tc.folder); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(folder, 0o700)
			var got []string
			for _, e := range cfg.Exposures(file("config", tc.config)) {
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(e.Path, folder), "/")+": "+e.Reason)
				if e.Advice == "" {
					t.Errorf("no advice on %s", e.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
	if found := parsed(t, minimal).Exposures(filepath.Join(folder, "none")); len(found) > 0 {
		t.Errorf("files that are not there are exposed: %v", found)
	}
}

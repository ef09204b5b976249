package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenWrtUpgrade checks what the scripts of the ipk ask of the service: opkg runs the
// removal of the old package and the installation of the new one with PKG_UPGRADE=1.
func TestOpenWrtUpgrade(t *testing.T) {
	for name, tc := range map[string]struct{ script, upgrade, enabled, want string }{
		"removal":                       {"ipk.prerm", "0", "yes", "disable stop"},
		"removal of the old one":        {"ipk.prerm", "1", "yes", "stop"},
		"first installation":            {"ipk.postinst", "0", "no", ""},
		"upgrade":                       {"ipk.postinst", "1", "yes", "enabled start"},
		"upgrade of a disabled service": {"ipk.postinst", "1", "no", "enabled"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			service, asked := filepath.Join(folder, "edge"), filepath.Join(folder, "asked")
			stub := "#!/bin/sh\necho \"$1\" >>" + asked + "\n[ \"$1\" != enabled ] || [ " + tc.enabled + " = yes ]\n"
			if err := os.WriteFile(service, []byte(stub), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(read(t, "packaging/scripts/"+tc.script), "/etc/init.d/edge", service))
			cmd.Env = append(os.Environ(), "PKG_UPGRADE="+tc.upgrade, "IPKG_INSTROOT=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text, _ := os.ReadFile(asked)
			if got := strings.Join(strings.Fields(string(text)), " "); got != tc.want {
				t.Errorf("asked %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPurgeRemovesCredentials runs the script of a purge: no file stays that the unit passes
// as a credential, and neither does the folder.
func TestPurgeRemovesCredentials(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc/edge"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(read(t, "configs/edge.service")) {
		if _, file, is := strings.Cut(strings.TrimSpace(line), ":/etc/edge/"); is && strings.HasPrefix(line, "LoadCredential=") {
			n++
			if err := os.WriteFile(filepath.Join(root, "etc/edge", file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n == 0 {
		t.Fatal("the unit passes no credentials")
	}
	script := strings.NewReplacer("/etc/edge", root+"/etc/edge", "/var/lib", root+"/var/lib", "/run/systemd", root+"/run/systemd",
		"deb-systemd-helper", "no-such-program").Replace(read(t, "packaging/scripts/deb.postrm"))
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "postrm", "purge").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "etc/edge*", "*")); len(left) > 0 {
		t.Errorf("a purge leaves %q", left)
	}
	if _, err := os.Stat(filepath.Join(root, "etc/edge")); err == nil {
		t.Error("a purge leaves the folder")
	}
}

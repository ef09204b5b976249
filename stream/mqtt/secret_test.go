package mqtt

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS", dir)
	t.Setenv("PASSWORD", "hunter3")
	for _, c := range []struct {
		secret Secret
		want   string
	}{{Secret{}, ""}, {Secret{File: "${CREDENTIALS}/password"}, "hunter2"}, {Secret{Env: "PASSWORD"}, "hunter3"}} {
		if got, err := c.secret.Resolve(); err != nil || got != c.want {
			t.Errorf("%+v resolves to %q, %v, want %q", c.secret, got, err, c.want)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("secret", "it", c.secret)
		yamlText, _ := yaml.Marshal(c.secret)
		if all := fmt.Sprintf("%v %+v %#v %s %s", c.secret, c.secret, c.secret, log.String(), yamlText); strings.Contains(all, "hunter") {
			t.Errorf("printed: %s", all)
		}
	}
	for _, text := range []string{"\ufeffhunter2\r\n", "hunter2\n\n"} { // the first as Notepad saves it
		file := filepath.Join(dir, "edited")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := (Secret{File: file}).Resolve(); err != nil || got != "hunter2" {
			t.Errorf("%q resolves to %q, %v", text, got, err)
		}
	}
	wide := filepath.Join(dir, "wide")
	if err := os.WriteFile(wide, []byte("\xff\xfeh\x00\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Secret{File: wide}).Resolve(); err == nil || !strings.Contains(err.Error(), "UTF-16: save it as UTF-8") {
		t.Errorf("the error of UTF-16: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EMPTY_VARIABLE", "")
	for _, s := range []Secret{{File: filepath.Join(dir, "absent")}, {File: empty}, {Env: "ABSENT_VARIABLE"}, {Env: "EMPTY_VARIABLE"}} {
		if got, err := s.Resolve(); err == nil {
			t.Errorf("%+v resolves to %q, want an error", s, got)
		}
	}
	if _, err := (Secret{File: "${ABSENT_VARIABLE}/password"}).Resolve(); err == nil || !strings.Contains(err.Error(), "${ABSENT_VARIABLE} is not set here; set it") {
		t.Errorf("the error of an unset variable: %v", err)
	}
	if (Secret{File: "a", Env: "B"}).Validate() == nil {
		t.Error("a secret with two sources is valid")
	}
}

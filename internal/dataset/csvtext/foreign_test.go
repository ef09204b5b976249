package csvtext

import (
	"regexp"
	"strings"
	"testing"

	"edge/test/files"
)

// An archive of NumPy is no file to unpack into a table, and one of a table is.
func TestArchives(t *testing.T) {
	for member, want := range map[string]string{
		"X.npy":    "data: arrays of NumPy: want CSV with a header line; python3 -c 'import numpy; ",
		"data.csv": "data: a zip archive: unpack it, unzip -p FILE >FILE.csv",
	} {
		archive := "PK\x03\x04\x2d\x00\x00\x00\x00\x00\x00\x00\x21\x00\x0b\xed\xe6\x9e\xff\xff\xff\xff\xff\xff\xff\xff\x05\x00\x14\x00" + member + "\x01\x00\x10\x00"
		if _, err := NewReader(strings.NewReader(archive), "data", 0, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", member, err, want)
		}
	}
}

// The command for LIBSVM writes the values as they are.
func TestCommandForLIBSVM(t *testing.T) {
	const text = "1 1:1234567.891 3:-1e-9\n2 2:0.5\n"
	_, err := NewReader(strings.NewReader(text), "data", 0, "")
	if err == nil {
		t.Fatal("no error")
	}
	command := regexp.MustCompile(`awk.* FILE`).FindString(err.Error())
	command = strings.NewReplacer("D=9", "D=3", " FILE", " "+files.Write(t, "data", text)).Replace(command)
	if out, err := files.Shell(t, "awk", command); err != nil || out != "1,1234567.891,0,-1e-9\n2,0,0.5,0\n" {
		t.Errorf("%s: %q, %v", command, out, err)
	}
}

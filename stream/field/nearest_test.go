package field

import (
	"testing"
)

func TestNearest(t *testing.T) {
	keys := []string{"keepalive", "servers", "qos", "tls"}
	for word, want := range map[string]string{"keepaliv": "keepalive", "server": "servers", "Servers": "servers", "qs": "qos", "password": "", "host": "", "SERVERS": "servers", "": ""} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Settings are a configuration, flat: each key and its value, without secrets,
// of which a configuration has none.
type Settings map[string]string

// SettingsOf must be called before anybody else reads c.
func SettingsOf(c *Config) Settings {
	s := Settings{}
	add := func(key string, v reflect.Value) {
		s[key] = fmt.Sprint(v.Interface())
	}
	visitKeys(reflect.ValueOf(c).Elem(), "", add)
	for i := range c.Labels {
		visitKeys(reflect.ValueOf(&c.Labels[i]).Elem(), fmt.Sprintf("labels[%d]", i), add)
	}
	return s
}

// Digest identifies the configuration. Its environment variables count as keys.
func (s Settings) Digest() string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%q %q\n", key, s[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// group returns the thing with a name of its own that a key belongs to: a
// stream, a model or an entry of labels; "" if it is none of them.
func group(key string) string {
	if strings.HasPrefix(key, "labels[") {
		return key[:strings.Index(key, "]")+1]
	}
	parts := strings.SplitN(key, ".", 3)
	if len(parts) == 3 && (parts[0] == "streams" || parts[0] == "models") {
		return parts[0] + "." + parts[1]
	}
	return ""
}

func (s Settings) has(name string) bool {
	for key := range s {
		if group(key) == name {
			return true
		}
	}
	return false
}

// Changes returns the keys whose values are not the same in next, in order. A
// stream or a model that comes or goes is one of them, with a word that says so.
func (s Settings) Changes(next Settings) []string {
	var changed []string
	add := func(change string) {
		if !slices.Contains(changed, change) {
			changed = append(changed, change)
		}
	}
	note := func(key, word string, other Settings) {
		if g := group(key); g != "" && !other.has(g) {
			key = g
		} else if !strings.HasPrefix(key, "streams.") { // whose fields are keys of their own
			word = ""
		}
		add(strings.TrimSpace(key + " " + word))
	}
	for key, value := range s {
		if other, ok := next[key]; !ok {
			note(key, "removed", next)
		} else if other != value {
			add(key)
		}
	}
	for key := range next {
		if _, ok := s[key]; !ok {
			note(key, "added", s)
		}
	}
	slices.Sort(changed)
	return changed
}

// Joined writes changes for people, bounded.
func Joined(changed []string) string {
	const most = 20
	if len(changed) > most {
		return strings.Join(changed[:most], ", ") + fmt.Sprintf(" and %d more", len(changed)-most)
	}
	return strings.Join(changed, ", ")
}

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"edge/stream/field"
)

// Settings are the keys of a configuration with their values, flat. They hold no
// secret: a configuration names the file or the variable of each.
type Settings map[string]string

// Settings returns the settings of c. It writes to c's maps, equal values in
// place of the old ones, so c must not be read at the same time.
func (c *Config) Settings() Settings {
	s := Settings{}
	add := func(key string, v reflect.Value) {
		s[key] = fmt.Sprint(v.Interface())
	}
	order := func(key string, names []string) {
		if len(names) > 0 {
			s[key] = strings.Join(names, ", ")
		}
	}
	walk(reflect.ValueOf(c).Elem(), "", add, order)
	for i := range c.Labels {
		walk(reflect.ValueOf(&c.Labels[i]).Elem(), fmt.Sprintf("labels[%d]", i), add, order)
	}
	return s
}

// PackedSettings are Settings in a small part of their memory, as JSON.
type PackedSettings []byte

// Pack returns the settings as JSON.
func (s Settings) Pack() PackedSettings {
	p, _ := json.Marshal(s) // strings alone
	return p
}

// Unpack returns the settings that Pack has written.
func (p PackedSettings) Unpack() Settings {
	var s Settings
	_ = json.Unmarshal(p, &s) // Pack wrote it
	return s
}

// Digest returns an identifier of the settings.
func (s Settings) Digest() string {
	h := sha256.New()
	for _, key := range field.Names(s) {
		fmt.Fprintf(h, "%q %q\n", key, s[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// group returns the prefix of a key that names its stream, its model or its entry
// of labels; "" for a key outside them.
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

// has reports whether a key of s is in a group.
func (s Settings) has(name string) bool {
	for key := range s {
		if group(key) == name {
			return true
		}
	}
	return false
}

// Changes returns the keys whose values differ in next, sorted. A stream, a model
// or an entry of labels that is added or removed counts as one key, followed by
// "added" or "removed".
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
		} else if !strings.HasPrefix(key, "streams.") { // which have keys that users name
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

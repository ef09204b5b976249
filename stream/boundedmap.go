package stream

const (
	maxCached     = 1024 // number of entries; at one more, the map is cleared
	maxCachedName = 256  // longest key, in bytes
)

// putBounded adds a value to a map that is bounded to maxCached entries. It ignores keys
// longer than maxCachedName.
func putBounded[T any](in *map[string]T, key string, v T) {
	if len(key) > maxCachedName {
		return
	}
	if len(*in) == maxCached || *in == nil {
		*in = map[string]T{}
	}
	(*in)[key] = v
}

package stream

const (
	maxCached     = 1024 // topics or devices that a map remembers something of
	maxCachedName = 256  // bytes of the name of one
)

// remember puts a value into a map that does not grow beyond maxTopics. What has
// a longer name than maxKnown is not remembered.
func putBounded[T any](in *map[string]T, key string, v T) {
	if len(key) > maxCachedName {
		return
	}
	if len(*in) == maxCached || *in == nil {
		*in = map[string]T{}
	}
	(*in)[key] = v
}

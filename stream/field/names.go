package field

import "slices"

// Names returns the keys of a map in order, nil if there are none. Called in place of slices.Sorted(maps.Keys(m)) it
// keeps the program small: each call of these makes functions of its own.
func Names[K ~string, V any](m map[K]V) []K {
	var names []K
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

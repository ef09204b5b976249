package field

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Names returns the keys of a map in order, nil if there are none. It is one function for the maps of all
// types, in place of one for each as with slices.Sorted(maps.Keys(m)): so the program stays small.
func Names[K ~string, V any](m map[K]V) []string { return names(reflect.ValueOf(m)) }

func names(of reflect.Value) []string {
	var names []string
	for key := of.MapRange(); key.Next(); {
		names = append(names, key.Key().String())
	}
	slices.Sort(names)
	return names
}

// Distinct returns the words in order, each once.
func Distinct(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}

// Listed joins words with commas, at most 20 of them, for a message.
func Listed(words []string) string {
	const most = 20
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

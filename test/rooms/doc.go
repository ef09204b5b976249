// Package rooms holds the tests of the import rules between packages; see
// ARCHITECTURE.md.
package rooms

// Package configs holds the sample configuration, so that the program can print
// what it was built with.
package configs

import _ "embed"

// Sample is edge.yaml: every key with its default and a comment.
//
//go:embed edge.yaml
var Sample []byte

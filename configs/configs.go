// Package configs holds the sample configuration, so that the program can print
// what it was built with, and what a device is set up with.
package configs

import _ "embed"

// Sample is edge.yaml: every key with its default and a comment.
//
//go:embed edge.yaml
var Sample []byte

// Schema is the JSON schema of the configuration, for editors; go generate
// writes it anew.
//
//go:generate go test ../internal/config -run ^TestSchema$ -count 1 -update
//go:embed edge.schema.json
var Schema []byte

// Grafana is a dashboard of the program's metrics.
//
//go:embed grafana.json
var Grafana []byte

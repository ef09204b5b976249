// Package configs embeds the sample configuration, its schema and a dashboard, so that
// the program can print them and set up a device with them.
package configs

import _ "embed"

// Sample is edge.yaml: every key with its default and a comment.
//
//go:embed edge.yaml
var Sample []byte

// Schema is the JSON schema of the configuration, for editors; go generate
// regenerates it.
//
//go:generate go test ../internal/config -run ^TestSchema$ -count 1 -update
//go:embed edge.schema.json
var Schema []byte

// Grafana is a Grafana dashboard of the program's metrics.
//
//go:embed grafana.json
var Grafana []byte

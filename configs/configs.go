// Package configs embeds the sample configuration, its schema and a dashboard, so that
// the program can print them and set up a device with them.
package configs

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

// Sample is edge.yaml: every key with its default and a comment.
//
//go:embed edge.yaml
var Sample []byte

// packedSchema is edge.schema.json, packed: that takes 34 kB less of a device's program.
//
//go:generate go test ../internal/config -run ^TestSchema$ -count 1 -update
//go:embed edge.schema.json.gz
var packedSchema []byte

// Schema returns the JSON schema of the configuration, for editors; go generate
// regenerates it.
func Schema() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packedSchema))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Grafana is a Grafana dashboard of the program's metrics.
//
//go:embed grafana.json
var Grafana []byte

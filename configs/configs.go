// Package configs embeds the sample configuration, its schema and a dashboard, so that
// the program can print them and set up a device with them.
package configs

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

// The sample and the schema are packed: that takes 50 kB less of a device's program.
//
//go:generate go test ../internal/config -run ^(TestSample|TestSchema)$ -count 1 -update
var (
	//go:embed edge.yaml.gz
	packedSample []byte
	//go:embed edge.schema.json.gz
	packedSchema []byte
)

// Sample returns edge.yaml: every key with its default and a comment.
func Sample() ([]byte, error) { return unpack(packedSample) }

// Schema returns the JSON schema of the configuration, for editors; go generate
// regenerates it.
func Schema() ([]byte, error) { return unpack(packedSchema) }

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Grafana is a Grafana dashboard of the program's metrics.
//
//go:embed grafana.json
var Grafana []byte

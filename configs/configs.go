// Package configs embeds the sample configuration and its schema, so that
// the program can print them and set up a device with them.
package configs

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"io"
)

// The sample and the schema, without its spaces, are packed: that takes 50 kB less of a device's
// program.
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
func Schema() ([]byte, error) {
	compact, err := unpack(packedSchema)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, append(compact, '\n'), "", " "); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

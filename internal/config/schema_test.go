package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"go.yaml.in/yaml/v4"

	"edge/configs"
	"edge/online"
	"edge/stream/codec"
)

// The schema that the program prints is that of its configuration. The test
// generates it, since the generator would add 0.4 MB to the binary.
func TestSchema(t *testing.T) {
	schema, err := configSchema()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(schema); err != nil {
		t.Fatal(err)
	}
	compareGolden(t, filepath.Join("..", "..", "configs", "edge.schema.json"), text.String())
}

// configSchema returns the JSON schema of Config; its descriptions are the comments
// of the sample.
func configSchema() (*jsonschema.Schema, error) {
	text := func(pattern string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern}
	}
	reflector := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[time.Duration]():
				return text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`)
			case reflect.TypeFor[codec.ByteSize]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text(`^[0-9]+ ?(B|KiB|MiB|GiB)?$`), {Type: "integer"}}}
			case reflect.TypeFor[online.Horizon]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "number"}, text(`^\.?inf$`)}}
			case reflect.TypeFor[slog.Level]():
				return &jsonschema.Schema{Type: "string", Enum: []any{"debug", "info", "warn", "error"}}
			}
			return nil
		},
	}
	schema := reflector.Reflect(Config{})
	schema.Title = "edge"
	var tree yaml.Node
	if err := yaml.Unmarshal(configs.Sample, &tree); err != nil {
		return nil, fmt.Errorf("the sample configuration: %w", err)
	}
	describe(schema, tree.Content[0])
	return schema, nil
}

// describe sets the descriptions of a schema from the comments of a YAML tree of
// the same shape.
func describe(schema *jsonschema.Schema, node *yaml.Node) {
	if node.Kind == yaml.SequenceNode && schema.Items != nil && len(node.Content) > 0 {
		describe(schema.Items, node.Content[0])
		return
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		of := schema.AdditionalProperties
		if schema.Properties != nil {
			of, _ = schema.Properties.Get(key.Value)
		}
		if of == nil {
			continue
		}
		if key.HeadComment != "" {
			of.Description = commentText(key.HeadComment)
		}
		describe(of, value)
	}
}

// commentText returns the text of the comment directly above a key, one paragraph a
// line.
func commentText(comment string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(comment, "\n") {
		if line == "" {
			b.Reset() // after an empty line begins another comment
			continue
		}
		text := strings.TrimSpace(strings.TrimPrefix(line, "#"))
		switch {
		case text == "":
			b.WriteString("\n")
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "\n"):
			b.WriteString(" " + text)
		default:
			b.WriteString(text)
		}
	}
	return b.String()
}

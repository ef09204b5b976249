package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
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
	"edge/stream/field"
	"edge/stream/membership"
	"edge/stream/signal"
	"edge/test/files"
)

// The schema that the program prints is that of its configuration. The test
// generates it, since the generator would add 0.4 MB to the binary.
func TestSchema(t *testing.T) {
	schema, err := configSchema(t)
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
	path := filepath.Join("..", "..", "configs", "edge.schema.json")
	files.Golden(t, path, text.String())
	var compact bytes.Buffer
	if err := json.Compact(&compact, text.Bytes()); err != nil {
		t.Fatal(err)
	}
	comparePacked(t, path, compact.Bytes(), configs.Schema)
}

// comparePacked checks that the program holds a file, of which packed is kept beside it. With
// -update it packs that; the program has the former one until it is built again.
func comparePacked(t *testing.T, path string, packed []byte, held func() ([]byte, error)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *files.Update {
		if err := os.WriteFile(path+".gz", []byte(files.Gzip(t, string(packed))), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if printed, err := held(); err != nil || !bytes.Equal(printed, text) {
		t.Errorf("the program prints something else than %s (%v): run go generate ./configs", path, err)
	}
}

// configSchema returns the JSON schema of Config; its descriptions are the comments
// of the sample.
func configSchema(t *testing.T) (*jsonschema.Schema, error) {
	text := func(pattern string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern}
	}
	anyOf := func(forms ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: forms} }
	list := &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
	mapping := func(of *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", AdditionalProperties: of}
	}
	var reflector jsonschema.Reflector
	reflector = jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[time.Duration]():
				return text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`)
			case reflect.TypeFor[field.ByteSize]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{text(`^[0-9]+ ?(B|KiB|MiB|GiB)?$`), {Type: "integer"}}}
			case reflect.TypeFor[membership.Trust]():
				return anyOf(&jsonschema.Schema{Type: "number"}, text(`^-\.?inf$`))
			case reflect.TypeFor[online.Horizon]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "number"}, text(`^\.?inf$`)}}
			case reflect.TypeFor[signal.Span]():
				return anyOf(&jsonschema.Schema{Type: "integer"}, text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^message$|^$`))
			case reflect.TypeFor[signal.Formulas](), reflect.TypeFor[codec.Paths]():
				return mapping(&jsonschema.Schema{Type: "string"})
			case reflect.TypeFor[signal.Choice]():
				return anyOf(list, mapping(list))
			case reflect.TypeFor[codec.Device]():
				return anyOf(&jsonschema.Schema{Type: "string"}, mapping(&jsonschema.Schema{Type: "string"}))
			case reflect.TypeFor[field.Words]():
				return anyOf(&jsonschema.Schema{Type: "string"}, list)
			case reflect.TypeFor[codec.Rate]():
				path := jsonschema.NewProperties()
				path.Set("path", &jsonschema.Schema{Type: "string"})
				return anyOf(&jsonschema.Schema{Type: "number"}, &jsonschema.Schema{Type: "object", Properties: path, AdditionalProperties: jsonschema.FalseSchema})
			case reflect.TypeFor[codec.QoS]():
				return &jsonschema.Schema{Enum: []any{0, 1, 2, "", "0", "1", "2"}}
			case reflect.TypeFor[codec.Other]():
				return anyOf(&jsonschema.Schema{Type: "number"}, text(`^(refuse|missing|[-+0-9.eE]+)$`))
			case reflect.TypeFor[codec.Age]():
				return text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$|^$`)
			case reflect.TypeFor[codec.Switch]():
				return &jsonschema.Schema{Enum: []any{true, false, "auto", "true", "false"}}
			case reflect.TypeFor[codec.Inputs]():
				in := reflector.ReflectFromType(reflect.TypeFor[codec.Input]())
				in.Version = ""
				return mapping(in)
			case reflect.TypeFor[slog.Level]():
				return &jsonschema.Schema{Type: "string", Enum: []any{"debug", "info", "warn", "error"}}
			}
			return nil
		},
	}
	schema := reflector.Reflect(Config{})
	schema.Title = "edge"
	var tree yaml.Node
	if err := yaml.Unmarshal(sample(t), &tree); err != nil {
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

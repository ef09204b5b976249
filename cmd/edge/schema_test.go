package main

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

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/invopop/jsonschema"

	"edge/configs"
	"edge/online"
	"edge/stream"
)

// The schema that the program prints is that of its configuration. It is made
// here, since what makes it would be 0.4 MB of the binary.
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

// configSchema is the JSON schema of Config; its descriptions are the comments
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
			case reflect.TypeFor[stream.ByteSize]():
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
	tree, err := parser.ParseBytes(configs.Sample, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("the sample configuration: %w", err)
	}
	describe(schema, tree.Docs[0].Body)
	return schema, nil
}

// describe gives a schema the comments of a YAML tree of its shape.
func describe(schema *jsonschema.Schema, node ast.Node) {
	if list, ok := node.(*ast.SequenceNode); ok && schema.Items != nil && len(list.Values) > 0 {
		describe(schema.Items, list.Values[0])
		return
	}
	m, ok := node.(ast.MapNode)
	if !ok {
		return
	}
	for it := m.MapRange(); it.Next(); {
		of := schema.AdditionalProperties
		if schema.Properties != nil {
			of, _ = schema.Properties.Get(scalarText(it.Key()))
		}
		if of == nil {
			continue
		}
		if c := it.KeyValue().GetComment(); c != nil {
			of.Description = commentText(c)
		}
		describe(of, it.Value())
	}
}

// commentText is the comment that ends right above a key, without its signs,
// one paragraph a line.
func commentText(c *ast.CommentGroupNode) string {
	var b strings.Builder
	at := 0
	for _, line := range c.Comments {
		if at > 0 && line.Token.Position.Line > at+1 {
			b.Reset() // after an empty line begins another comment
		}
		at = line.Token.Position.Line
		text := strings.TrimSpace(strings.TrimPrefix(line.Token.Value, "#"))
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

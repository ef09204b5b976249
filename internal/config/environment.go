package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"edge/stream/field"
)

// envPrefix begins the environment variables that override keys: the key's path
// in capitals, with _ for every other character. Lists are separated by commas.
const envPrefix = "EDGE_"

// ApplyEnviron overrides keys by environment variables of the form NAME=value.
// It returns the variable of each key that it has set.
func (c *Config) ApplyEnviron(environ []string) (from map[string]string, err error) {
	values := map[string]string{}
	for _, s := range environ {
		if name, value, ok := strings.Cut(s, "="); ok && strings.HasPrefix(name, envPrefix) {
			values[name] = value
		}
	}
	from = map[string]string{}
	var errs []error
	c.visitKeys(func(key string, v reflect.Value) {
		name := envName(key)
		text, ok := values[name]
		if !ok {
			return
		}
		from[key] = name
		if err := setFromText(v, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", name, key, err))
		}
	})
	return from, field.Join(errs...)
}

// UnusedVariables returns, in order, a warning for each variable of an environment that looks
// like one that overrides a key, and is none: neither does it, nor does the configuration
// name it as the place of a secret or in a path.
func (c *Config) UnusedVariables(environ []string) (warnings []string) {
	var known, texts []string
	c.visitKeys(func(key string, v reflect.Value) {
		known = append(known, strings.TrimPrefix(envName(key), envPrefix))
		if v.Kind() == reflect.String {
			texts = append(texts, v.String())
		}
	})
	for _, s := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(s, "=")
		word, ok := strings.CutPrefix(name, envPrefix)
		named := func(text string) bool { return text == name || strings.Contains(text, "${"+name+"}") }
		if !ok || ofContainer(word) || slices.Contains(known, word) || slices.ContainsFunc(texts, named) {
			continue
		}
		hint := ""
		if key := word + "_ENV"; slices.Contains(known, key) {
			hint = fmt.Sprintf("; if it holds the secret, set %s%s=%s as well", envPrefix, key, name)
		} else if near := field.Nearest(word, known); near != "" {
			hint = "; did you mean " + envPrefix + near + "?"
		}
		warnings = append(warnings, fmt.Sprintf("the environment variable %s overrides no key of this configuration%s", name, hint))
	}
	return warnings
}

// ofContainer reports whether container runtimes set such a variable for a service named edge.
func ofContainer(word string) bool {
	return word == "PORT" || strings.HasPrefix(word, "PORT_") || strings.HasPrefix(word, "SERVICE_")
}

// envName returns the environment variable that overrides a key.
func envName(key string) string {
	return envPrefix + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(key))
}

// visitKeys calls visit with every key whose value is a scalar or a list of scalars. visit
// may set the value.
func (c *Config) visitKeys(visit func(key string, v reflect.Value)) {
	walk(reflect.ValueOf(c).Elem(), "", visit, func(string, []string) {})
}

// walk is visitKeys for the keys below v, at path. It also calls order with the keys of each
// ordered mapping.
func walk(v reflect.Value, path string, visit func(key string, v reflect.Value), order func(key string, names []string)) {
	t := v.Type()
	switch of := v.Addr().Interface().(type) {
	case variant:
		walk(reflect.ValueOf(of.Form(field.Present)).Elem(), path, visit, order)
		return
	case ordered:
		var names []string
		for key, value := range of.Entries() {
			names = append(names, key)
			walk(reflect.ValueOf(value).Elem(), joinKey(path, key), visit, order)
		}
		order(path, names)
		return
	}
	switch {
	case isScalar(t), t.Kind() == reflect.Slice && isScalar(t.Elem()):
		visit(path, v)
	case t.Kind() == reflect.Struct:
		visitFields(v, func(key string, field reflect.Value) { walk(field, joinKey(path, key), visit, order) })
	case t.Kind() == reflect.Map:
		keys, values := entries(v)
		for i, key := range keys {
			walk(values[i], joinKey(path, key.String()), visit, order)
			v.SetMapIndex(key, values[i])
		}
	}
}

// entries returns the keys of a map in the order of their texts, and copies of its elements:
// those of the map have no address.
func entries(v reflect.Value) (keys, values []reflect.Value) {
	byText := map[string]reflect.Value{}
	for _, key := range v.MapKeys() {
		byText[key.String()] = key
	}
	for _, text := range field.Names(byText) {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(byText[text]))
		keys, values = append(keys, byText[text]), append(values, value)
	}
	return keys, values
}

func joinKey(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// setFromText sets a scalar, or a list of scalars separated by commas.
func setFromText(v reflect.Value, text string) error {
	if v.Kind() != reflect.Slice || isText(v.Type()) {
		return parseScalar(v, text)
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := parseScalar(e, word); err != nil {
			return err
		}
		list = reflect.Append(list, e)
	}
	v.Set(list)
	return nil
}

// visitFields calls visit with the fields of a struct that have a key, in order,
// and with those of inlined structs.
func visitFields(v reflect.Value, visit func(key string, field reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case key == "-", !f.IsExported():
		case options == "inline":
			visitFields(v.Field(i), visit)
		default:
			visit(key, v.Field(i))
		}
	}
}

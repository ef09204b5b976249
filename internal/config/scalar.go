package config

import (
	"encoding"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// isScalar reports whether a value of type t is written as one word.
func isScalar(t reflect.Type) bool {
	if isText(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		return false
	}
	return true
}

// isText reports whether t implements encoding.TextUnmarshaler.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// switches are the booleans of YAML 1.2 and of YAML 1.1, which many files still
// use.
var switches = map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false, "off": false}

// parseScalar sets v from text, of the YAML file or of an environment variable.
// Its error names the values that it accepts.
func parseScalar(v reflect.Value, text string) error {
	if v.Type() == reflect.TypeFor[slog.Level]() && v.Addr().Interface().(*slog.Level).UnmarshalText([]byte(text)) != nil {
		return fmt.Errorf("%s: want debug, info, warn or error", text)
	}
	if isText(v.Type()) {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: want a duration with its unit, such as 250ms, 30s or 24h", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		on, ok := switches[strings.ToLower(text)]
		if !ok {
			return fmt.Errorf("%s: want true or false", text)
		}
		v.SetBool(on)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s: want a whole number", text)
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s: want a whole number, not negative", text)
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("%s: want a number", text)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("%s: a %s cannot be written as one word", text, v.Kind())
	}
	return nil
}

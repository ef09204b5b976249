package config

import (
	"reflect"
	"slices"
	"strings"
)

// customary lists keys of other programs that have another name here: those of brokers and
// clients of MQTT, of Telegraf, Home Assistant and zigbee2mqtt. A section is a path without the names
// of streams and models.
var customary = []struct{ section, keys, write string }{
	{"", "broker brokers server servers host url port mqtt_broker", "mqtt: {servers: [mqtt://HOST:1883]}"},
	{"", "state storage database path", "store: {path: FILE}"},
	{"", "logging loglevel log_level level", "log: {level: info}"},
	{"", "name id hostname", "node: NAME"},
	{"", "sensors inputs devices topic topics", "streams: {NAME: {topics: [TOPIC], features: [KEY, KEY]}}"},
	{"", "web ui dashboard frontend api prometheus", "http: {listen: 127.0.0.1:9107}"},
	{"mqtt", "host hostname broker brokers url uri address addr ip port", "servers: [mqtt://HOST:1883]"},
	{"mqtt", "ssl ca ca_cert ca_certs ca_file cafile certificate tls_ca", "servers: [mqtts://HOST:8883], and tls: {ca: FILE} for an authority of your own"},
	{"mqtt", "cert cert_file certfile tls_cert client_cert key key_file keyfile tls_key client_key", "tls: {cert: FILE, key: FILE}"},
	{"mqtt", "insecure insecure_skip_verify tls_insecure", "tls: {ca: FILE}, the certificate of the broker's authority: the broker's own is always verified"},
	{"mqtt.tls", "insecure insecure_skip_verify skip_verify verify rejectunauthorized", "ca: FILE, the certificate of the broker's authority: the broker's own is always verified"},
	{"mqtt.tls", "ca_file cafile ca_cert ca_certs", "ca: FILE"},
	{"mqtt.tls", "cert_file certfile client_cert key_file keyfile client_key", "cert: FILE, key: FILE"},
	{"mqtt", "user", "username: NAME"},
	{"mqtt", "pass passwd", "password: {file: FILE}"},
	{"mqtt", "clean clean_session cleansession clean_start", "persistent_session: true or false"},
	{"mqtt", "max_inflight receive_maximum", "inflight_window: NUMBER"},
	{"mqtt", "topic topics", "streams: {NAME: {topics: [TOPIC]}}, beside mqtt"},
	{"http", "port host address addr bind", "listen: 127.0.0.1:9107"},
	{"store", "file filename dir directory folder database", "path: FILE"},
	{"metrics", "interval period update_interval", "every: 30s"},
	{"homeassistant", "prefix discovery_topic", "discovery_prefix: homeassistant"},
	{"streams", "subscribe mqtt_topic state_topic", "topics: [TOPIC]"},
	{"streams", "type data_format dataformat payload_format decoder parser", "format: json, or another one"},
	{"streams", "timestamp timestamp_path time_key json_time_key", "time: KEY"},
	{"streams", "time_format timestamp_format json_time_format timestamp_unit timestamp_units json_timestamp_units", "time: KEY alone: RFC 3339, and Unix times in s, ms, µs and ns are told apart"},
	{"streams", "separator delimiter csv_delimiter decimal decimal_separator", "format: csv, which has commas between cells and points in numbers: convert others at their source"},
	{"streams", "encoding charset character_encoding", "format: json, csv, influx or value, which are UTF-8: convert others at their source"},
	{"streams", "byte_order byteorder endian endianness", "format: float32 or float64, which are little-endian: convert others at their source"},
	{"streams", "unit unit_of_measurement scale factor multiplier", "values: {SIGNAL: {unit: W}} or {SIGNAL: {scale: 0.1}}, with signals"},
	{"streams", "csv_column_names header headers", "columns: [NAME, NAME]"},
	{"streams", "retain retained", "allow_retained: true"},
	{"streams", "tag_keys tags device_id device_name", "device: KEY"},
	{"streams", "class target label_key label_path", "label: KEY"},
	{"streams", "json_path value_template value_key keys paths", "fields: {FEATURE: PATH}"},
	{"streams", "window_size interval", "window: {length: 2s}, with signals"},
	{"streams", "sample_rate frequency", "rate: 100, in Hz, with signals"},
	{"labels", "mapping words values label_map", "map: {WORD: CLASS}"},
	{"labels", "json_path value_template value_key key path", "label: KEY"},
	{"labels", "state_topic", "topics: [TOPIC]"},
	{"models", "batch_size", "batch: {max_size: NUMBER}"},
	{"models", "inducing_points num_inducing", "inducing: NUMBER"},
	{"models", "n_classes num_classes", "classes: {max: NUMBER}"},
	{"models", "labels class_names", "classes: {names: [NAME, NAME]}"},
	{"models", "threshold confidence", "abstain: {confidence_below: 0.6}"},
}

// principal is the key of a section that a single value in its place is most likely for.
var principal = map[string]string{
	"active": "strategy", "checkpoint": "every", "class_weights": "mode", "conformal": "coverage", "control": "enabled",
	"drift": "detector", "fleet": "concept", "hold": "every", "homeassistant": "enabled", "http": "listen", "log": "level", "store": "path",
	"window": "length",
}

// written returns how a key of other programs is written here, "" for one that is not known.
func written(path, key string) string {
	section, rest, _ := strings.Cut(path, ".")
	section, _, _ = strings.Cut(section, "[")
	switch named := section == "streams" || section == "models"; {
	case named && (rest == "" || strings.Contains(rest, ".")):
		return ""
	case !named && rest != "":
		section = path
	}
	for _, c := range customary {
		if c.section == section && slices.Contains(strings.Fields(c.keys), strings.ToLower(key)) {
			return c.write
		}
	}
	return ""
}

// belongs returns the sections that have a key, nil if they are many: those of a configuration, of a
// stream, of an entry of labels and of a model. Where kinds are given, they have a value of such a kind there.
func belongs(key string, kinds ...reflect.Kind) (sections []string) {
	var visit func(t reflect.Type, path string)
	visit = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
			if t.Kind() == reflect.Map {
				path += ".NAME"
			}
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		visitFields(reflect.New(t).Elem(), func(name string, field reflect.Value) {
			if name == key && path != "" && (kinds == nil || slices.Contains(kinds, field.Kind())) {
				sections = append(sections, path)
			}
			visit(field.Type(), joinKey(path, name))
		})
	}
	visit(reflect.TypeFor[Config](), "")
	if len(sections) > 3 {
		return nil
	}
	slices.Sort(sections)
	return sections
}

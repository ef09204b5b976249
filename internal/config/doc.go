// Package config is the configuration file: its shape, defaults, strict reading,
// environment overrides, validation and writing.
//
// Load reads a file; Config.Stream, Config.Learner and Config.Feed are the parts
// that the packages stream and online take. A Config is not changed after Load:
// Config.Effective returns a copy for the states that a file already holds.
//
//	config.go       Config and its sections, with their defaults
//	http.go         HTTP: the page, the metrics and the health checks
//	load.go         Load, Parse: defaults, file, environment, validation
//	decode.go       decoder: YAML to Go values, with every error and its position
//	forms.go        values with several forms, mappings whose order counts
//	scalar.go       values written as one word, in YAML and in the environment
//	environment.go  EDGE_* variables
//	encode.go       Write: a configuration that reads back as itself
//	validate.go     Config.Validate
//	parts.go        the parts for stream and online; Effective
//	settings.go     Settings: keys and values, to compare two configurations
//	exposure.go     Exposure: files and addresses that too many users can reach
//	files.go        what data files have to do with a configuration
//
// configs/edge.yaml documents every key; it and the JSON schema beside it are
// tested against Config.
package config

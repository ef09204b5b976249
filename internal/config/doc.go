// Package config is the configuration file: its shape, defaults, validation,
// environment variables, and how it is written and compared.
//
// Config is the shape of the YAML; stream and online own their parts of it. Load
// reads a file strictly: an unknown key, a value out of range and a wrong type are
// errors with file, line and column. Default and DefaultModel are the defaults,
// configs/edge.yaml documents them, and Write prints a configuration that reads
// back as itself. Settings is a flat list of keys and values by which a reload
// finds the changes.
//
// Read config.go (shape and validation), strict.go (decoder), yaml.go (encoder),
// http.go (the page's part) and exposure.go (files that others may read).
package config

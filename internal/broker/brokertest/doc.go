// Package brokertest starts brokers for tests: the embedded one, and mosquitto where
// it is installed. Missing skips a test, or fails it in CI; with the build tag slow
// ForEach runs a test against both brokers.
package brokertest

// Package brokertest starts brokers for tests: the embedded one, one with defects
// (Lacking), and mosquitto, NATS and others where they are installed (Servers, Clusters).
// ForEach runs a test against the first and mosquitto. Scripted is a broker of a few lines.
// Publisher and Broker.Retain send messages; Subscribe, Await and Retained read them.
// Eventually and Patience bound waits.
package brokertest

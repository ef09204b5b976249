// Package brokertest starts brokers for tests: the embedded one, one with defects
// (Lacking), and mosquitto where it is installed. ForEach runs a test against both.
// Scripted is a broker of a few lines. Subscribe, Await and Retained read messages;
// Eventually and Patience bound waits.
package brokertest

// Package brokertest starts brokers for tests: the embedded one, one with defects
// (Lacking), and mosquitto where it is installed. ForEach runs a test against both.
// Scripted is a broker of a few lines. Publisher and Broker.Retain send messages;
// Subscribe, Await and Retained read them. Eventually and Patience bound waits.
package brokertest

// Package broker connects the tools to an MQTT broker, and is the small broker of
// the demo and the tests.
//
// Client is one connection: Dial, Subscribe, Publish, Close. Publisher sends
// messages in order over as many connections as it takes, with a bounded number in
// flight. Request asks a running daemon for something and prints the answer. Server
// is a broker inside the process.
//
// The daemon has a client of its own in package stream, which keeps a session and
// acknowledges messages once they are durable; the tools need neither.
package broker

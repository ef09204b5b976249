// Package broker is the MQTT client of the tools beside the daemon. The daemon's own
// client is stream/mqtt.
//
//   - Client is one connection: Dial, or Connect with errors for a command, then
//     Subscribe, Publish, Close.
//   - Publisher sends messages in order over as many connections as that takes. It
//     is the client of edge replay, edge top and edge demo.
//   - Request sends a request to a node and prints the response (edge request).
//
// Package embedded is a broker inside the process. Package brokertest starts it, or
// mosquitto, for tests.
//
// The broker probe of package doctor is the user of Client's options: persistent
// sessions, messages without acknowledgement, the TLS state.
package broker

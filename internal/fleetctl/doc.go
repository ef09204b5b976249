// Package fleetctl reads and changes the retained messages of a fleet without being a member.
// It serves `edge fleet`.
//
//   - Keeper is a connection to the broker that keeps the contributions of a fleet: Read,
//     Forget, Publish. Each looks afterwards at the retained messages: many brokers
//     acknowledge messages that they do not allow.
//   - Export and Import move a contribution between a broker and a file.
//   - Print writes a node's part in a fleet for people.
package fleetctl

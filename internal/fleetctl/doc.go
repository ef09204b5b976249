// Package fleetctl reads and changes the retained messages of a fleet without being a member.
// It serves `edge fleet`.
//
//   - Fleet is a fleet at a broker. Read, Find and Online read what the broker keeps;
//     Forget removes a member; Export and Import move a contribution between the broker
//     and a file. What was published is read again: many brokers acknowledge messages
//     that they do not allow.
//   - Print writes a node's part in a fleet for people.
package fleetctl

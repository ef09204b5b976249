// Package demo runs a broker, simulated sensors and a daemon in one process and
// shows how the model learns.
package demo

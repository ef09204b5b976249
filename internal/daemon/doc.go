// Package daemon is edge run: one store, one learning loop for each model, one node
// that speaks MQTT, and the page.
//
// New opens the store and recovers every model from its checkpoint and journal; Run
// works until its context ends and then stops in order. Serve adds the service
// manager's protocol, reloads at SIGHUP or when a file changes, and the memory
// limit. A reload (reload.go) prepares a new deployment and replaces the old one, or
// keeps the old one and returns the reason.
package daemon

// Package daemon runs one edge node: the state file, one learning loop per model,
// the MQTT node and the page, under a configuration that can be replaced while
// they run.
//
// Serve is `edge run`; the demo and the tests use New and Daemon.Run. Read
// daemon.go first, then run.go; each other file holds one part:
//
//	daemon.go         Daemon: what outlives a configuration; New and Close
//	deployment.go     deployment: models, node and tasks under one configuration
//	recovery.go       a model from its checkpoint and its journal
//	journal.go        the store as the node's journal; a full or damaged file
//	run.go            run: start, main loop and orderly stop
//	reload.go         Daemon.Reload: a new deployment in place of the current one
//	compatibility.go  configuration changes that a running daemon refuses
//	commands.go       the daemon's side of the commands on the request topics
//	export.go         exported states beside the store
//	serve.go          Serve, with triggers.go and watcher.go (SIGHUP and changed
//	                  files), service.go (systemd) and memory.go (limit and trim)
//
// Goroutines: Run owns the daemon, starts one task per loop and for the node, the
// page, the monitor and the memory trim, and waits for each. Reload and the
// node's callbacks may be called from any goroutine; they read the current
// deployment, which is never changed, only replaced.
package daemon

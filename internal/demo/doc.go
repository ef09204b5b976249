// Package demo shows edge at work in one process: an MQTT broker on a free port of
// the loopback interface, sensors that publish on it, and a daemon with a state
// file that is removed at the end. It stands above package daemon, below the
// command.
//
//	demo.go     Config, Config.Run: broker, daemon and player, until the end
//	sensors.go  sensors: the generator or a data file, and the daemon's configuration
//	vibration.go sensor: rows of vibrations, of which the daemon makes windows
//	wait.go     the wait until all samples are learnt
//	view.go     view: the figures at the terminal
//	fleet.go    fleet: nodes that learn together, each with a twin that learns alone
package demo

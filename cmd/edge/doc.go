// Command edge classifies MQTT sensor streams on small machines with a sparse
// multi-class Gaussian process that it trains online, and publishes the class
// probabilities.
//
// This package is the wiring. What is computed is in package model, how it is
// learnt in online, how it is kept in persist, and how it meets MQTT in stream;
// data files and simulated sensors are in internal/dataset. main.go has the
// frame of the commands and the exit codes, and each command has a file of its
// name. What they share:
//
//	configuration    config.go, strict.go, yaml.go, settings.go, sample.go; reload.go, watch.go while it runs
//	the daemon       daemon.go; monitor.go, export.go, memory.go, service.go beside it
//	page, metrics    http.go, api.go, page.go, health.go, metrics.go, exposition.go
//	at a terminal    view.go of a demo; board.go, panel.go, screen.go of top; progress.go
//	as a client      publisher.go, follower.go, published.go
//	scores           report.go, arrivals.go, asking.go, holdout.go, trial.go, onlinepass.go, linear.go, plot.go
//	this machine     host.go, disk.go, exposure.go, speed.go, cputime_*.go, writable_*.go
package main

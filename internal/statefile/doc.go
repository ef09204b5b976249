// Package statefile reads the models of a state file under a configuration, for
// the commands that look at a file while no daemon runs (inspect, predict,
// doctor) and for the daemon's start.
//
//	Find       whether there is a file
//	Open       an existing file, read-only
//	Of         that of a configuration
//	Effective  the configuration that applies beside the states in it
//	Unused     the models that the configuration does not name
//	Vacant     whether a model has learnt nothing
//	Restore    the learner of one model
//
// The file itself is package persist's.
package statefile

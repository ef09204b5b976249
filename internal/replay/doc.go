// Package replay publishes a data file as a stream of sensor messages and judges
// the predictions that a daemon publishes for them.
//
// Player paces and publishes rows, with their labels inline, delayed or when asked;
// follower watches the daemon's topics, so that the broker's queue does not
// overflow; File replays one file and returns a report for each model.
package replay

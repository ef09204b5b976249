// Package replay publishes a data file as a stream of sensor messages and scores the
// predictions that daemons publish for its rows. It serves `edge replay`.
//
//   - Source is the file and File replays it with a Player (source.go).
//   - Player publishes rows in order, with labels inline, delayed or on request
//     (player.go, delay.go, pacer.go).
//   - RawSource publishes rows of signals as sensors send them (raw.go), on topics of
//     its stream (route.go).
//   - progress reads the messages of the daemons, so that the player is never more
//     than Ahead rows before them (progress.go).
//   - publishedScores judges the predictions by the file's labels (published.go).
package replay

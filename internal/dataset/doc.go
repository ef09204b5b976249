// Package dataset reads labelled samples: a File row after row in bounded
// memory, as a stream is taught and replayed; a Table at once, for training in
// many passes and for splits; and the simulated sensors of Waveform.
package dataset

// Package wire encodes and decodes the values of which a learner's state and
// the journal consist: little-endian numbers, unsigned varints, and strings
// behind their length.
//
// An Encoder appends to a byte slice. A Decoder reads untrusted bytes: it keeps
// the first error, returns zero values from then on, and allocates no more than
// the bytes that are left can fill.
package wire

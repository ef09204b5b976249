// Package codec reads the payloads of streams and labels.
//
// A Stream configures topics and payload; NewDecoder returns its Decoder, which turns
// a payload into Readings or returns a *Refusal with a Reason. NewLabelDecoder does
// the same for topics of labels (Labels). A payload is first decompressed (gzip,
// zstd); then the codec of its format reads it: json.go with the fast path scan.go,
// cbor.go, csv.go, influx.go, raw.go, value.go. All formats share one schema, so that
// they accept and refuse the same. labelmap.go maps the labels in payloads to classes.
//
// A Stream with signals (signals.go), or with several inputs (inputs.go), has rows of
// signals in its payloads, of which package signal makes samples. Decoder.Row reads a row
// of a table by the same rules (table.go); an Encoder writes such payloads (encode.go).
//
// Time and memory are linear in the permitted size of a payload, whatever it contains.
package codec

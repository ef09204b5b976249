package fleet

import (
	"bytes"
	"compress/flate"
	"io"

	"edge/online/wire"
)

// packedMagic opens a packed contribution: the size of the bytes that are packed, that of one
// of its numbers, and a DEFLATE stream (RFC 1951).
const packedMagic = "EFC4"

// maxGain is the largest number of bytes that a packed byte may become: a Huffman code has one
// bit at least.
const maxGain = 8

// codeBytes is the number of bytes that have Huffman codes of their own.
const codeBytes = 8 << 10

// pack appends a packed form of data, whose numbers have a size of some bytes. First come the
// first bytes of all numbers, then the second ones, and so on: the bytes of the exponents have
// few values, and Huffman codes of their own make them short. Those of the mantissas are
// nearly random. Repetitions are not looked for: there are hardly any.
func pack(dst, data []byte, size Precision) []byte {
	start := len(dst)
	e := &wire.Encoder{Buf: append(dst, packedMagic...)}
	e.Int(len(data))
	e.Int(size.Bytes())
	e.Buf = deflate(e.Buf, planes(data, size.Bytes()))
	return wire.AppendChecksum(e.Buf, start)
}

// deflate appends a DEFLATE stream of fields. Each has codes of its own, or several if it is
// longer than codeBytes.
func deflate(dst []byte, fields ...[]byte) []byte {
	w := &bytes.Buffer{}
	stream, _ := flate.NewWriter(w, flate.HuffmanOnly) // fails for an unknown level alone
	for _, rest := range fields {
		for len(rest) > 0 {
			n := min(codeBytes, len(rest))
			_, _ = stream.Write(rest[:n]) // a Buffer takes all
			_ = stream.Flush()            // the next ones have codes of their own
			rest = rest[n:]
		}
	}
	_ = stream.Close()
	return append(dst, w.Bytes()...)
}

// inflate returns the n bytes of the DEFLATE stream that is left in d. Their number is checked
// against that of the stream before memory is made; nil after an error.
func inflate(d *wire.Decoder, n int) []byte {
	packed := d.Bytes(d.Len(), "packed bytes")
	if d.Err() == nil && n > maxGain*len(packed) {
		d.Fail("%d packed bytes of %d", len(packed), n)
	}
	if d.Err() != nil {
		return nil
	}
	from := bytes.NewReader(packed)
	stream, plain := flate.NewReader(from), make([]byte, n)
	if _, err := io.ReadFull(stream, plain); err != nil {
		d.Fail("unpack: %v", err)
	} else if more, err := stream.Read(make([]byte, 1)); more > 0 || err != io.EOF || from.Len() > 0 {
		d.Fail("more than %d bytes are packed", n)
	}
	return plain
}

// unpack returns the bytes that pack packed. Their number is checked against that of data
// before memory is made; the error is ErrContribution.
func unpack(data []byte) ([]byte, error) {
	d, err := newDecoder(data, packedMagic, "contribution", ErrContribution)
	if err != nil {
		return nil, err
	}
	n, size := d.Int(MaxBytes, "bytes"), d.Int(int(Float32), "size of a number")
	if d.Err() == nil && size < 1 {
		d.Fail("numbers of %d bytes", size)
	}
	plain := inflate(d, n)
	if err := d.End(); err != nil {
		return nil, err
	}
	return join(plain, size), nil
}

// planes returns the first bytes of all numbers of a size, then the second ones, and so on.
// The last number may be shorter.
func planes(data []byte, size int) []byte {
	all := make([]byte, 0, len(data))
	for first := range size {
		for i := first; i < len(data); i += size {
			all = append(all, data[i])
		}
	}
	return all
}

// join is the inverse of planes.
func join(all []byte, size int) []byte {
	data := make([]byte, len(all))
	for first := range size {
		for i := first; i < len(data); i += size {
			data[i], all = all[0], all[1:]
		}
	}
	return data
}

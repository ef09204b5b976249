package codec

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"edge/stream/field"
)

// Compressions of a payload.
const (
	compressionNone = "none"
	compressionGzip = "gzip"
	compressionZstd = "zstd"
	compressionAuto = "auto"
)

// The first bytes of a compressed payload (RFC 1952, section 2.3.1; RFC 8878, section
// 3.1.1). No payload of another format begins with them, except raw numbers.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// packed returns the compression of a payload, "" where it is none of these.
func packed(payload []byte) string {
	switch {
	case bytes.HasPrefix(payload, gzipMagic):
		return compressionGzip
	case bytes.HasPrefix(payload, zstdMagic):
		return compressionZstd
	}
	return ""
}

// unpacker decompresses payloads. The zero value returns them unchanged.
type unpacker struct {
	gzip, zstd bool // permitted compressions
	plain      bool // uncompressed payloads are permitted
	limit      int  // bytes after decompression
	frames     *zstdFrames
}

func newUnpacker(compression string, limit int) (*unpacker, error) {
	u := &unpacker{limit: limit, plain: compression == compressionAuto}
	u.gzip = u.plain || compression == compressionGzip
	u.zstd = u.plain || compression == compressionZstd
	if !u.zstd {
		return u, nil
	}
	var err error
	u.frames, err = newZstdFrames(limit)
	return u, err
}

// unpack returns the decompressed payload, or refuses it as soon as it exceeds the
// limit.
func (u *unpacker) unpack(payload []byte) ([]byte, *Refusal) {
	switch {
	case !u.gzip && !u.zstd || len(payload) == 0:
		return payload, nil
	case u.gzip && bytes.HasPrefix(payload, gzipMagic):
		return u.gunzip(payload)
	case u.zstd && bytes.HasPrefix(payload, zstdMagic):
		return u.unzstd(payload)
	case u.plain:
		return payload, nil
	}
	return nil, Refuse(Malformed, "not compressed as the stream's configuration requires; compression: auto takes both")
}

func (u *unpacker) gunzip(payload []byte) ([]byte, *Refusal) {
	r, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, Refuse(Malformed, "gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(u.limit)+1))
	switch {
	case len(out) > u.limit:
		return nil, u.tooLarge()
	case err != nil:
		return nil, Refuse(Malformed, "gzip: %w", err)
	}
	return out, nil
}

func (u *unpacker) unzstd(payload []byte) ([]byte, *Refusal) {
	out, err := u.frames.unpack(payload)
	switch {
	case errors.Is(err, errTooLong):
		return nil, u.tooLarge()
	case err != nil:
		return nil, Refuse(Malformed, "zstd: %w", err)
	}
	return out, nil
}

// errTooLong reports that a payload decompresses to more than the limit.
var errTooLong = errors.New("too long")

func (u *unpacker) tooLarge() *Refusal {
	return Refuse(TooLarge, "more than %s when it is unpacked: max_payload of the stream", field.ByteSize(u.limit))
}

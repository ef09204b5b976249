package codec

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the memory for a zstd frame, whatever the limit of the payload: a
// compressor that does not know the size of its input announces a window of that
// order (RFC 8878, section 3.1.1.1.2, recommends to support 8 MiB).
const zstdWindow = 8 << 20

// zstdFrames decompresses zstd frames.
type zstdFrames struct {
	decoder *zstd.Decoder
	limit   int // bytes after decompression
}

func newZstdFrames(limit int) (*zstdFrames, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), // no goroutines
		zstd.WithDecoderMaxMemory(uint64(max(limit, zstdWindow))))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &zstdFrames{d, limit}, nil
}

// unpack decompresses a payload; it returns errTooLong as soon as the limit is exceeded.
func (z *zstdFrames) unpack(payload []byte) ([]byte, error) {
	var head zstd.Header
	if err := head.Decode(payload); err == nil && head.HasFCS && head.FrameContentSize > uint64(z.limit) {
		return nil, errTooLong
	}
	out, err := z.decoder.DecodeAll(payload, nil)
	if len(out) > z.limit || errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, errTooLong
	}
	return out, err
}

package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// ChecksumBytes is the number of bytes of a checksum.
const ChecksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendChecksum appends the CRC-32C of the bytes from start on.
func AppendChecksum(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// CutChecksum returns the bytes before their checksum, and whether it is theirs.
func CutChecksum(data []byte) (body []byte, ok bool) {
	if len(data) < ChecksumBytes {
		return nil, false
	}
	body = data[:len(data)-ChecksumBytes]
	return body, crc32.Checksum(body, castagnoli) == binary.LittleEndian.Uint32(data[len(body):])
}

package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// kind is the first byte of a sealed value.
type kind byte

const (
	kindFormat     kind = 'F'
	kindShape      kind = 'S'
	kindLedger     kind = 'L'
	kindStamp      kind = 'T'
	kindRecord     kind = 'J'
	kindPending    kind = 'P'
	kindCheckpoint kind = 'C'
	kindSession    kind = 'B'
	kindTaken      kind = 'M'
	kindWindows    kind = 'W'
	kindEpoch      kind = 'E'
	kindFrame      kind = 'R'
)

const (
	sealVersion = 1 // second byte of a sealed value
	crcSize     = 4
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errSeal = errors.New("seal is broken")
)

// seal appends the sealed form of a payload, given in parts, to dst:
//
//	kind, version, uvarint length, payload, CRC-32C little-endian
//
// The CRC also covers bucket and key, so that a value is valid only at its own key.
func seal(dst []byte, k kind, bucket string, key []byte, payload ...[]byte) []byte {
	start, length := len(dst), 0
	for _, part := range payload {
		length += len(part)
	}
	dst = appendSealHead(dst, k, length)
	for _, part := range payload {
		dst = append(dst, part...)
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(bucket, key, dst[start:]))
}

func appendSealHead(dst []byte, k kind, length int) []byte {
	return binary.AppendUvarint(append(dst, byte(k), sealVersion), uint64(length))
}

// sealAround is seal for a payload of head and rest, in the memory of rest where its capacity is
// large enough. It also returns where rest begins then.
func sealAround(rest []byte, k kind, bucket string, key, head []byte) (value []byte, at int) {
	front := append(appendSealHead(nil, k, len(head)+len(rest)), head...)
	value = slices.Insert(rest, 0, front...)
	return binary.LittleEndian.AppendUint32(value, checksum(bucket, key, value)), len(front)
}

// unseal returns the payload of a sealed value; it aliases value.
func unseal(k kind, bucket string, key, value []byte) ([]byte, error) {
	if len(value) < 3+crcSize || value[0] != byte(k) || value[1] != sealVersion {
		return nil, fmt.Errorf("not a value of kind %c, version %d: %w", k, sealVersion, errSeal)
	}
	body := value[:len(value)-crcSize]
	if checksum(bucket, key, body) != sealOf(value) {
		return nil, fmt.Errorf("checksum differs: %w", errSeal)
	}
	n, size := binary.Uvarint(body[2:])
	if size <= 0 || n != uint64(len(body)-2-size) {
		return nil, fmt.Errorf("length differs: %w", errSeal)
	}
	return body[2+size:], nil
}

// sealOf returns the CRC at the end of a sealed value, 0 if it is too short for one.
func sealOf(value []byte) uint32 {
	if len(value) < crcSize {
		return 0
	}
	return binary.LittleEndian.Uint32(value[len(value)-crcSize:])
}

func checksum(bucket string, key, body []byte) uint32 {
	crc := crc32.Update(0, castagnoli, []byte(bucket))
	crc = crc32.Update(crc, castagnoli, []byte{0}) // separates bucket and key: no bucket's name contains it
	crc = crc32.Update(crc, castagnoli, key)
	return crc32.Update(crc, castagnoli, body)
}

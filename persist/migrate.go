package persist

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// formatVersion is that of the files that this package writes:
//
//	1  the first
//	2  records and pending samples may have extras, there are more kinds of records, and
//	   filters of the broker's session may be remembered
//	3  messages that the broker may send again are noted, and pending samples may have
//	   an identity
//
// Whatever changes in later ones, the bucket "meta" and the sealed form of "format" stay, so
// that every version can tell which one it sees.
const formatVersion = 3

func sealFormat(version uint64) []byte {
	return seal(nil, kindFormat, bucketMeta, []byte(keyFormat), binary.AppendUvarint(nil, version))
}

func decodeFormat(payload []byte) (uint64, error) {
	d := decoder{rest: payload}
	version := d.uvarint()
	if version == 0 {
		d.fail("version 0")
	}
	if err := d.end(); err != nil {
		return 0, fmt.Errorf("format: %w", err)
	}
	return version, nil
}

// checkVersion refuses what only a newer version of this package can read.
func checkVersion(version uint64) error {
	if version > formatVersion {
		return fmt.Errorf("format version %d, this edge knows versions up to %d: use the newer edge, or its backup of before: %w",
			version, formatVersion, ErrForeign)
	}
	return nil
}

// migrate brings a sound file of an older format version to this one, in one
// transaction. Earlier versions need no more than another number: all that they
// hold is valid in this one.
func (s *Store) migrate(version uint64) error {
	if version == formatVersion {
		return nil
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	return s.update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(keyFormat), sealFormat(formatVersion))
	})
}

package persist

import (
	"encoding/binary"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
)

// formatVersion is the version of the files that this package writes:
//
//	1  the first
//	2  records and pending samples may have extras, more kinds of records exist, and
//	   the file may contain the filters of the broker's session
//	3  the file contains the messages that the broker may send again, and pending
//	   samples may have an identity
//	4  the file may contain windows in progress, records of labels that were known
//	   before their samples, and the windows of pending samples
//	5  the file contains a redo log
//	6  records and pending samples may have the number of labels that the model of their
//	   prediction had learnt
//
// Later versions keep the bucket "meta" and the sealed form of "format", so that every
// version can read the version of a file.
const formatVersion = 6

func sealFormat(version uint64) []byte {
	return seal(nil, kindFormat, bucketMeta, []byte(keyFormat), binary.AppendUvarint(nil, version))
}

func decodeFormat(payload []byte) (uint64, error) {
	d := newDecoder(payload)
	version := d.Uint()
	if version == 0 {
		d.Fail("version 0")
	}
	if err := d.End(); err != nil {
		return 0, fmt.Errorf("format: %w", err)
	}
	return version, nil
}

// checkVersion rejects files that only a newer version of this package can read.
func checkVersion(version uint64) error {
	if version > formatVersion {
		return fmt.Errorf("format version %d, and this edge reads versions up to %d: a newer edge has written it: install that one again, or put the copy that it made at its first start (<state>%s<n>), or a backup, in its place (edge restore): %w",
			version, formatVersion, formerSuffix, ErrForeign)
	}
	return nil
}

// formerSuffix and a version come after the name of a state file in that of its copy from
// before a conversion.
const formerSuffix = ".format-"

// keepFormer copies the file from before its conversion, for a return to the older program, which
// refuses the converted one. Without room for the copy the file is converted nevertheless.
func (s *Store) keepFormer(version uint64) {
	if version == formatVersion {
		return
	}
	to := fmt.Sprint(s.path, formerSuffix, version)
	if _, err := copyChecked(s.file, to, os.Rename); err != nil {
		s.opts.Log.Warn("the state file is converted, and there is no copy of it for an older edge", "path", s.path, "format", version, "to", formatVersion, "error", err)
		return
	}
	s.opts.Log.Info("the state file is converted; an older edge can go on with the copy from before, by edge restore", "path", s.path, "format", version, "to", formatVersion, "copy", to)
}

// Conversion says what Open will do to a file of an older format that is open to read; "" for one of the present.
func (s *Store) Conversion() string {
	s.write.Lock()
	defer s.write.Unlock()
	version := uint64(formatVersion)
	err := s.view(func(t tree) error {
		return t.read(kindFormat, bucketMeta, []byte(keyFormat), "format", func(payload []byte) (err error) {
			version, err = decodeFormat(payload)
			return err
		})
	})
	if err != nil || version == formatVersion {
		return ""
	}
	return fmt.Sprintf("the next start converts the state file from format %d to %d, and keeps that of now as %s%s%[1]d", version, formatVersion, s.path, formerSuffix)
}

// migrate converts a sound file of an older format version to formatVersion, in one
// transaction. It adds the redo log, if there is none; every entry of an older version is valid
// in this one.
func (s *Store) migrate(version uint64) error {
	if version == formatVersion {
		return nil
	}
	if err := checkVersion(version); err != nil {
		return err
	}
	err := s.update(func(tx *bbolt.Tx) error {
		if version < 5 {
			if err := createRedo(tx); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(keyFormat), sealFormat(formatVersion))
	})
	if err != nil {
		return err
	}
	return s.locateRedo()
}

package persist

import (
	"bytes"
	"errors"
	"strings"

	"go.etcd.io/bbolt"
)

// tree reads the newest commit: bbolt's tree, and the changes of the redo log.
type tree struct {
	tx     *bbolt.Tx
	latest changes
}

// get returns a value, nil if there is none. It aliases the file.
func (t tree) get(bucket string, key []byte) []byte {
	if value, ok := t.latest[place{bucket, string(key)}]; ok {
		return value
	}
	return t.tx.Bucket([]byte(bucket)).Get(key)
}

// read calls decode with the payload of a value, if there is one. An error means damage since
// the file was opened, of what.
func (t tree) read(k kind, bucket string, key []byte, what string, decode func(payload []byte) error) error {
	value := t.get(bucket, key)
	if value == nil {
		return nil
	}
	payload, err := unseal(k, bucket, key, value)
	if err == nil {
		err = decode(payload)
	}
	if err != nil {
		return damaged(what, err)
	}
	return nil
}

// errEnough ends each without an error.
var errEnough = errors.New("enough")

// each calls fn for the keys of a bucket that begin with prefix, in order.
func (t tree) each(bucket, prefix string, fn func(key, value []byte) error) error {
	var logged []*place
	for _, p := range t.latest.places() {
		if p.bucket == bucket && strings.HasPrefix(p.key, prefix) {
			logged = append(logged, p)
		}
	}
	c := t.tx.Bucket([]byte(bucket)).Cursor()
	key, value := c.Seek([]byte(prefix))
	for {
		stored := bytes.HasPrefix(key, []byte(prefix)) && key != nil
		var k, v []byte
		switch {
		case !stored && len(logged) == 0:
			return nil
		case len(logged) == 0 || stored && string(key) < logged[0].key:
			k, v = key, value
			key, value = c.Next()
		default:
			if stored && string(key) == logged[0].key {
				key, value = c.Next()
			}
			k, v = []byte(logged[0].key), t.latest[*logged[0]]
			logged = logged[1:]
		}
		if v == nil {
			continue
		}
		if err := fn(k, v); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

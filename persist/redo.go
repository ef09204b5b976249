package persist

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// The redo log contains the commits after the newest transaction of bbolt, one frame
// each: the values that the commit puts and the keys that it deletes. A commit costs
// one page and one sync then, in place of four and two. The next transaction applies
// the frames to the tree.
//
// The log is one value in a bucket of its own, whose pages bbolt writes once and reads
// never: the store writes frames directly into them. It has two halves. Frames belong
// to an epoch, the number of transactions since the log was created, and to the half of
// its parity. So they are valid for the tree of their epoch alone, and the frames of
// the transaction before remain as long as its tree does.
//
//	value  slack up to a page's begin; 2 × redoPages pages
//	page   epoch u64, frame u32 (1, 2, 3, …), part u16, parts u16, body
//	frame  the bodies of its parts: a sealed list of changes
//	change 1 for put, 0 for delete; bucket, key; the value, if put
//
// A frame begins on a page of its own, so that no write touches a page with earlier
// frames, and every page has a header, so that no value can be taken for one. All
// numbers are little-endian.
const (
	bucketRedo = "redo"
	keyRedo    = "pages"
	keyEpoch   = "/redo" // in bucket ledger
	redoPages  = 56      // of each half: an empty file has 512 KiB
	redoFrame  = 4       // pages of the longest frame: a longer commit is a transaction, which writes less
	redoHeader = 16
	redoBody   = pageSize - redoHeader
	redoSlack  = pageSize - pageHeader - elementSize - len(keyRedo)
	redoSize   = redoSlack + 2*redoPages*pageSize
)

// place is where a value is.
type place struct{ bucket, key string }

// change is one changed value; nil: deleted.
type change struct {
	place
	value []byte
}

// changes are the latest values at the changed places; nil: deleted.
type changes map[place][]byte

func (cs changes) add(list []change) {
	for _, c := range list {
		cs[c.place] = c.value
	}
}

// places returns the changed places, in order.
func (cs changes) places() []*place {
	places := make([]*place, 0, len(cs)) // sorts of pointers share their code
	for p := range cs {
		places = append(places, &p)
	}
	slices.SortStableFunc(places, func(a, b *place) int { return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.key, b.key)) })
	return places
}

// visit visits the values that are put, in order.
func (cs changes) visit(visit func(bucket string, key, value []byte)) {
	for _, p := range cs.places() {
		if value := cs[*p]; value != nil {
			visit(p.bucket, []byte(p.key), value)
		}
	}
}

// apply makes the changes in a transaction.
func (cs changes) apply(tx *bbolt.Tx) error {
	for _, p := range cs.places() {
		if err := p.put(tx, cs[*p]); err != nil {
			return err
		}
	}
	return nil
}

// put stores a value in a transaction; nil deletes it.
func (p *place) put(tx *bbolt.Tx, value []byte) error {
	b := tx.Bucket([]byte(p.bucket))
	if b == nil {
		return fmt.Errorf("bucket %s is missing: %w", p.bucket, ErrDamaged)
	}
	if isSequence(p.bucket) {
		b.FillPercent = journalFill
	}
	if value == nil {
		return b.Delete([]byte(p.key))
	}
	return b.Put([]byte(p.key), value)
}

func appendChanges(dst []byte, list []change) []byte {
	for _, c := range list {
		put := byte(0)
		if c.value != nil {
			put = 1
		}
		dst = appendString(append(dst, put), c.bucket)
		dst = appendString(dst, c.key)
		if c.value != nil {
			dst = binary.AppendUvarint(dst, uint64(len(c.value)))
			dst = append(dst, c.value...)
		}
	}
	return dst
}

// decodeChanges takes the payload of a frame apart; the values alias it.
func decodeChanges(payload []byte) (list []change, err error) {
	d := newDecoder(payload)
	for d.Len() > 0 && d.Err() == nil {
		put := d.Bool()
		c := change{place: place{d.String(maxBucket), d.String(maxBucket)}}
		if put {
			c.value = d.Block(redoPages*pageSize, "value")
		}
		list = append(list, c)
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("redo log: %w", err)
	}
	return list, nil
}

// frameKey returns the key that a frame's seal covers.
func frameKey(epoch uint64, frame uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, epoch), frame)
}

// appendFrame appends the pages of a frame to dst.
func appendFrame(dst []byte, epoch uint64, frame uint32, payload []byte) []byte {
	key := frameKey(epoch, frame)
	sealed := seal(nil, kindFrame, bucketRedo, key, payload)
	parts := (len(sealed) + redoBody - 1) / redoBody
	for part := range parts {
		dst = append(dst, key...)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(part))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(parts))
		body := sealed[part*redoBody : min((part+1)*redoBody, len(sealed))]
		dst = append(dst, body...)
		dst = append(dst, make([]byte, redoBody-len(body))...)
	}
	return dst
}

// framePages returns the number of pages of a frame with a payload of n bytes.
func framePages(n int) int {
	return (n + 2 + binary.MaxVarintLen32 + crcSize + redoBody - 1) / redoBody
}

// redo is the content of a redo log of one epoch.
type redo struct {
	epoch  uint64
	frames uint32
	pages  int  // of the half, up to the end of the last frame
	gap    bool // a frame is missing before a later one
	short  bool // the file ends within the pages of the half
}

// readHalf reads the frames of an epoch, at most limit of them, from the pages of its
// half. It ends at the first page that is not the next frame: a power cut has left a
// part of it. If later frames follow, the disk has lost a write.
func readHalf(half []byte, epoch uint64, limit uint32, add func([]change)) redo {
	r := redo{epoch: epoch}
	for at := 0; at < len(half)/pageSize; {
		list, frame, parts := readFrame(half[at*pageSize:], epoch)
		if parts == 0 || frame <= r.frames {
			at++
			continue
		}
		if frame > limit {
			break
		}
		r.gap = r.gap || frame != r.frames+1 || at != r.pages
		add(list)
		at += parts
		r.frames, r.pages = frame, at
	}
	return r
}

// readFrame reads the frame at the beginning of pages; parts is 0 if there is none of the epoch.
func readFrame(pages []byte, epoch uint64) (list []change, frame uint32, parts int) {
	le := binary.LittleEndian
	frame, parts = le.Uint32(pages[8:]), int(le.Uint16(pages[14:]))
	if le.Uint64(pages) != epoch || le.Uint16(pages[12:]) != 0 || parts == 0 || parts > len(pages)/pageSize {
		return nil, 0, 0
	}
	var sealed []byte
	for part := range parts {
		page := pages[part*pageSize : (part+1)*pageSize]
		if le.Uint64(page) != epoch || le.Uint32(page[8:]) != frame || int(le.Uint16(page[12:])) != part {
			return nil, 0, 0
		}
		sealed = append(sealed, page[redoHeader:]...)
	}
	n, size := binary.Uvarint(sealed[2:])
	if size <= 0 || n > uint64(len(sealed)) || 2+size+int(n)+crcSize > len(sealed) {
		return nil, 0, 0
	}
	payload, err := unseal(kindFrame, bucketRedo, frameKey(epoch, frame), sealed[:2+size+int(n)+crcSize])
	if err == nil {
		list, err = decodeChanges(payload)
	}
	if err != nil {
		return nil, 0, 0
	}
	return list, frame, parts
}

const anyFrame = ^uint32(0) // no limit

// readRedo reads the redo log of the tree of m, at most limit frames, and the changes
// in it. The frames of the next epoch follow those of the tree's own: they are there if
// m is not the newest transaction. The zero value: the tree has no log. Its pages are read
// from their place in the file, so that a file that ends within them loses no frame before its end.
func readRedo(file io.ReaderAt, size int64, m meta, limit uint32) (redo, changes) {
	var epoch, root uint64
	newPages(file, size, m, &problems{}).buckets(m.root,
		func(name string, page uint64) bool {
			if name == bucketRedo && page < m.high {
				root = page
			}
			return name == bucketLedger
		},
		func(bucket string, key, v []byte) {
			if string(key) == keyEpoch {
				if payload, err := unseal(kindEpoch, bucket, key, v); err == nil {
					epoch, _ = decodeNumber(payload)
				}
			}
		})
	cs := changes{}
	if epoch == 0 || root == 0 {
		return redo{}, cs
	}
	own, short := readPages(file, root+1+epoch%2*redoPages, redoPages)
	after, _ := readPages(file, root+1+(epoch+1)%2*redoPages, redoPages)
	r := readHalf(own, epoch, limit, cs.add)
	next := readHalf(after, epoch+1, limit, cs.add)
	r.gap, r.short = r.gap || next.gap, short
	return r, cs
}

// readPages reads n pages from page id on. Those behind the end of the file are zeros, and short is true.
func readPages(file io.ReaderAt, id, n uint64) (pages []byte, short bool) {
	pages = make([]byte, n*pageSize)
	read, _ := file.ReadAt(pages, int64(id)*pageSize)
	clear(pages[read:])
	return pages, read < len(pages)
}

// readFrames reads the newest frames in a file that has lost the tree with the place of its redo log.
func readFrames(file io.ReaderAt, size int64) changes {
	var newest, at uint64
	for id := uint64(2); id < uint64(size/pageSize); id++ {
		pages, _ := readPages(file, id, redoFrame)
		if epoch := binary.LittleEndian.Uint64(pages); epoch > newest {
			if _, _, parts := readFrame(pages, epoch); parts > 0 {
				newest, at = epoch, id
			}
		}
	}
	cs := changes{}
	if newest > 0 {
		half, _ := readPages(file, at, redoPages)
		readHalf(half, newest, anyFrame, cs.add)
	}
	return cs
}

// createRedo creates an empty redo log, with epoch 1.
func createRedo(tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketRedo))
	if err != nil {
		return err
	}
	if err := b.Put([]byte(keyRedo), make([]byte, redoSize)); err != nil {
		return err
	}
	return putEpoch(tx, 1)
}

func putEpoch(tx *bbolt.Tx, epoch uint64) error {
	key := []byte(keyEpoch)
	value := seal(nil, kindEpoch, bucketLedger, key, binary.LittleEndian.AppendUint64(nil, epoch))
	return tx.Bucket([]byte(bucketLedger)).Put(key, value)
}

package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// This file reads bbolt's file format (version 2) without trusting it: it checks
// every offset, size and page number before it uses it, reads no page twice, and
// reads on after a damaged part. bbolt itself maps the file and follows its
// offsets unchecked.
//
// All numbers are in the machine's byte order, as bbolt writes them.
//
//	page    id u64, flags u16, count u16, overflow u32, then count elements
//	branch  pos u32, key size u32, page u64
//	leaf    flags u32, pos u32, key size u32, value size u32
//	bucket  root page u64 (0: the page follows inline), sequence u64
//	meta    magic, version, page size, flags u32; root u64, sequence u64,
//	        freelist u64, high-water mark u64, txid u64, FNV-1a of all that u64

const (
	pageHeader    = 16
	elementSize   = 16
	bucketHeader  = 16
	metaSize      = 64
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	branchPage    = 0x01
	leafPage      = 0x02
	metaPage      = 0x04
	freelistPage  = 0x10
	bucketElement = 0x01
	noFreelist    = ^uint64(0)
	maxDepth      = 32 // of a tree; four levels hold 64 MiB
	maxProblems   = 100
)

var byteOrder = binary.NativeEndian

// meta locates the tree of one transaction.
type meta struct {
	root, freelist, high, txid uint64
}

// readMeta reads meta page n (0 or 1).
func readMeta(file io.ReaderAt, n int64) (meta, error) {
	buf := make([]byte, pageHeader+metaSize)
	if _, err := file.ReadAt(buf, n*pageSize); err != nil {
		return meta{}, fmt.Errorf("meta page %d: %w", n, err)
	}
	b := buf[pageHeader:]
	h := fnv.New64a()
	_, _ = h.Write(b[:metaSize-8])
	switch {
	case byteOrder.Uint64(buf) != uint64(n) || byteOrder.Uint16(buf[8:]) != metaPage:
		return meta{}, fmt.Errorf("meta page %d is not a meta page: %w", n, ErrDamaged)
	case byteOrder.Uint32(b) != metaMagic || byteOrder.Uint32(b[4:]) != metaVersion:
		return meta{}, fmt.Errorf("meta page %d: no magic number: %w", n, ErrDamaged)
	case byteOrder.Uint64(b[metaSize-8:]) != h.Sum64():
		return meta{}, fmt.Errorf("meta page %d: checksum differs: %w", n, ErrDamaged)
	case byteOrder.Uint32(b[8:]) != pageSize:
		return meta{}, fmt.Errorf("pages of %d bytes, want %d: %w", byteOrder.Uint32(b[8:]), pageSize, ErrForeign)
	}
	return meta{root: byteOrder.Uint64(b[16:]), freelist: byteOrder.Uint64(b[32:]), high: byteOrder.Uint64(b[40:]), txid: byteOrder.Uint64(b[48:])}, nil
}

// newestMeta returns the newest valid meta page, the zero value if neither is valid.
func newestMeta(file io.ReaderAt) (newest meta) {
	for n := range int64(2) {
		if m, err := readMeta(file, n); err == nil && m.txid >= newest.txid {
			newest = m
		}
	}
	return newest
}

// pages reads the tree of one transaction.
type pages struct {
	file     io.ReaderAt
	high     uint64 // first page beyond the tree
	seen     []bool // pages read, or free
	used     int64  // pages reached, the meta pages included
	problems *problems
}

// problems collects descriptions of damage: the first maxProblems, and the number of
// the others.
type problems struct {
	list []string
	more int
}

// add adds a description. It is not inlined: there are some thirty calls.
//
//go:noinline
func (p *problems) add(format string, args ...any) {
	if len(p.list) >= maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

func (p *problems) all() []string {
	if p.more > 0 {
		return append(p.list, fmt.Sprintf("and %d more problems", p.more))
	}
	return p.list
}

// newPages prepares to read the tree of m in a file of size bytes.
func newPages(file io.ReaderAt, size int64, m meta, pr *problems) *pages {
	p := &pages{file: file, high: m.high, used: 2, problems: pr}
	if limit := uint64(size / pageSize); p.high > limit {
		pr.add("the file ends at page %d of %d: it was truncated", limit, p.high)
		p.high = limit
	}
	p.seen = make([]bool, max(p.high, 2))
	p.seen[0], p.seen[1] = true, true
	return p
}

// read returns page id with its overflow pages, nil if the page is not valid.
func (p *pages) read(id uint64) []byte {
	if id < 2 || id >= p.high {
		p.problems.add("page %d is out of range", id)
		return nil
	}
	var head [pageHeader]byte
	if _, err := p.file.ReadAt(head[:], int64(id)*pageSize); err != nil {
		p.problems.add("page %d: %v", id, err)
		return nil
	}
	n := uint64(byteOrder.Uint32(head[12:])) + 1
	if byteOrder.Uint64(head[:]) != id || id+n > p.high {
		p.problems.add("page %d is not a page", id)
		return nil
	}
	for i := id; i < id+n; i++ {
		if p.seen[i] {
			p.problems.add("page %d is used twice", i)
			return nil
		}
		p.seen[i] = true
	}
	buf := make([]byte, n*pageSize)
	if _, err := p.file.ReadAt(buf, int64(id)*pageSize); err != nil {
		p.problems.add("page %d: %v", id, err)
		return nil
	}
	p.used += int64(n)
	return buf
}

// walk visits the elements of the tree below page id in the order of their
// keys, which lie in [low, high).
func (p *pages) walk(id uint64, low, high []byte, depth int, visit func(flags uint32, key, value []byte)) {
	if depth > maxDepth {
		p.problems.add("page %d is too deep in the tree", id)
		return
	}
	if buf := p.read(id); buf != nil {
		p.elements(id, buf, low, high, depth, visit)
	}
}

// elements visits the elements of one page, stored inline or on its own.
func (p *pages) elements(id uint64, buf, low, high []byte, depth int, visit func(flags uint32, key, value []byte)) {
	flags, count := byteOrder.Uint16(buf[8:]), int(byteOrder.Uint16(buf[10:]))
	branch := flags == branchPage
	switch {
	case !branch && flags != leafPage:
		p.problems.add("page %d is neither branch nor leaf", id)
		return
	case pageHeader+count*elementSize > len(buf):
		p.problems.add("page %d: %d elements are more than fit on it", id, count)
		return
	case branch && count == 0:
		p.problems.add("page %d is an empty branch", id)
		return
	}
	type child struct {
		page uint64
		key  []byte
	}
	var children []child
	last := low
	for i := range count {
		at := uint64(pageHeader + i*elementSize)
		e := buf[at:]
		pos, keySize, valueSize := uint64(byteOrder.Uint32(e)), uint64(byteOrder.Uint32(e[4:])), uint64(0)
		if !branch {
			pos, keySize, valueSize = keySize, uint64(byteOrder.Uint32(e[8:])), uint64(byteOrder.Uint32(e[12:]))
		}
		start := at + pos
		if start+keySize+valueSize > uint64(len(buf)) || start < uint64(pageHeader+count*elementSize) {
			p.problems.add("page %d: element %d is out of range", id, i)
			continue
		}
		key := buf[start : start+keySize]
		// The first key may equal its bound, every other one is above its predecessor.
		if c := bytes.Compare(key, last); (last != nil && (c < 0 || c == 0 && i > 0)) || (high != nil && bytes.Compare(key, high) >= 0) {
			p.problems.add("page %d: key %d is out of order", id, i)
		}
		last = key
		if branch {
			children = append(children, child{byteOrder.Uint64(e[8:]), key})
		} else {
			visit(byteOrder.Uint32(e), key, buf[start+keySize:start+keySize+valueSize])
		}
	}
	for i, c := range children {
		upper := high
		if i+1 < len(children) {
			upper = children[i+1].key
		}
		p.walk(c.page, c.key, upper, depth+1, visit)
	}
}

// entries visits every key and value of every bucket below the root.
func (p *pages) entries(root uint64, visit func(bucket string, key, value []byte)) {
	p.buckets(root, func(string, uint64) bool { return true }, visit)
}

// buckets visits every key and value of the chosen buckets below the root. chosen gets the root page of
// each bucket, 0 for one that has none of its own.
func (p *pages) buckets(root uint64, chosen func(name string, page uint64) bool, visit func(bucket string, key, value []byte)) {
	p.walk(root, nil, nil, 0, func(flags uint32, key, value []byte) {
		name := string(key)
		if flags != bucketElement || len(value) < bucketHeader {
			p.problems.add("%q at the root is not a bucket", name)
			return
		}
		page := byteOrder.Uint64(value)
		if !chosen(name, page) {
			return
		}
		inside := func(flags uint32, key, value []byte) {
			if flags != 0 {
				p.problems.add("%s: %x is not a value", name, key)
				return
			}
			visit(name, key, value)
		}
		switch inline := value[bucketHeader:]; {
		case page != 0:
			p.walk(page, nil, nil, 1, inside)
		case len(inline) < pageHeader:
			p.problems.add("%s: ends early", name)
		default:
			p.elements(0, inline, nil, nil, maxDepth, inside)
		}
	})
}

// freelist checks the list of free pages if the file stores one, because bbolt
// overwrites the pages on it.
func (p *pages) freelist(id uint64) {
	if id == noFreelist {
		return
	}
	buf := p.read(id)
	if buf == nil {
		return
	}
	count, at := uint64(byteOrder.Uint16(buf[10:])), uint64(pageHeader)
	if count == 0xFFFF {
		count, at = byteOrder.Uint64(buf[at:]), at+8
	}
	if byteOrder.Uint16(buf[8:]) != freelistPage || count > (uint64(len(buf))-at)/8 {
		p.problems.add("page %d is not a list of free pages", id)
		return
	}
	for i := range count {
		free := byteOrder.Uint64(buf[at+8*i:])
		if free < 2 || free >= p.high || p.seen[free] {
			p.problems.add("page %d: free page %d is in use or out of range", id, free)
			continue
		}
		p.seen[free] = true
	}
}

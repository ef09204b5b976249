package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrLocked: another process has the file open.
	ErrLocked = errors.New("locked by another process")
	// ErrShape: the stored state was learnt under another configuration.
	ErrShape = errors.New("state has another shape")
	// ErrMissing: there is no file at the path any more, and none can be written
	// there; or one was written anew, which Commit reports once. The store
	// remains usable.
	ErrMissing = errors.New("state file is missing")
	// ErrReplaced: another file is at the path, or another program wrote over the
	// file. The store writes nothing more.
	ErrReplaced = errors.New("state file was replaced")
	// ErrFull: the disk, or Options.MaxSize, leaves no room. The store remains usable.
	ErrFull = errors.New("no room")
	// ErrDamaged: the file is damaged and may not be repaired here, or the
	// damage came while the store was open; opening it again repairs it.
	ErrDamaged = errors.New("state file is damaged")
	// ErrForeign: the file is not a state file, or of a newer format version.
	ErrForeign = errors.New("not a state file that this version can use")
	// ErrModel: the store does not know the model, or its name is not acceptable.
	ErrModel = errors.New("unknown model")
	// ErrSequence: a checkpoint that is ahead of the journal or behind an older one.
	ErrSequence = errors.New("checkpoint out of sequence")
)

// Options say how a Store works.
type Options struct {
	// MaxSize bounds the file in bytes: a commit that needs more is refused
	// (ErrFull), until checkpoints have shortened the journals. 0: no bound.
	MaxSize int64
	// Dedupe is the number of keys remembered per model. 0 means 4096, at most 1,048,576.
	Dedupe int
	// Log hears of repairs and wrong permissions; nil: nobody does.
	Log *slog.Logger

	// Fault, if set, is called before or after a step of a transaction, and lets it
	// fail with the error that it returns: a disk for simulations and tests. After
	// "commit" the transaction is in the file, and the sync of its meta page has failed.
	Fault func(step string) error
}

func (o Options) maxSize() int { return int(min(o.MaxSize, math.MaxInt)) }

const (
	defaultDedupe = 4096
	lockTimeout   = time.Second
	lockRetry     = 50 * time.Millisecond
	pageSize      = 4096    // whatever the kernel's is: 16 KiB pages cost 3.5 times the bytes
	growStep      = 1 << 20 // bytes by which a file above that size grows
	compactAbove  = 1 << 20 // free bytes, and more than half of the file
)

// Buckets.
const (
	bucketMeta   = "meta"
	bucketLedger = "ledger"
	keyFormat    = "format"
	keyStamp     = "/tx" // no model's name
	prefixShape  = "shape/"
)

func journalBucket(model string) string { return "journal/" + model }
func pendingBucket(model string) string { return "pending/" + model }
func checkpointBucket(model string, slot int) string {
	return "checkpoint/" + model + "/" + strconv.Itoa(slot)
}
func shapeKey(model string) []byte { return []byte(prefixShape + model) }

// buckets returns the names of all buckets of a model.
func buckets(model string) []string {
	return []string{journalBucket(model), pendingBucket(model), checkpointBucket(model, 0), checkpointBucket(model, 1)}
}

// model is what the store keeps in memory of one model: it mirrors the last
// transaction that succeeded.
type model struct {
	ledger  ledger
	first   uint64 // oldest record of the journal, last+1 if there is none
	slots   [2]slot
	arrival uint64            // of the youngest pending sample
	waiting map[uint64]uint64 // sample's key → its arrival
	ring    *ring
}

// Store is an open state file. Its methods may be called from any goroutine;
// writes take turns.
type Store struct {
	name     string // as given to Open
	path     string // the file that it leads to
	opts     Options
	readOnly bool
	recovery *Recovery // nil: the file was sound

	write    sync.Mutex // held by whoever writes; taken before mu
	db       *bbolt.DB
	file     *os.File // db's own: holds the lock, and is read past bbolt's map
	identity identity // of file
	absence  error    // the file was missing, and is written anew; until a Commit reports it
	refused  bool     // the last Commit returned an error
	broken   error    // why nothing is written any more
	suspect  bool     // the transaction after good failed, but shows
	good     uint32   // see suspect; bbolt gives these numbers as an int
	began    uint32   // the transaction that db was opened at
	before   Stats    // of the databases before db
	buf      []byte   // values of the running transaction
	payload  []byte   // the value that is being sealed
	page     []byte   // the page whose checksum is computed

	mu     sync.Mutex
	models map[string]*model // loaded ones
}

// Open opens the state file at path, and creates it if there is none. What is
// damaged is repaired as far as possible (see Recovery); free space beyond half
// of the file is given back. The file stays locked until Close.
//
// Errors: ErrLocked, ErrForeign, and those of the file system.
func Open(path string, opts Options) (*Store, error) {
	s, err := open(path, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("persist: open %s: %w", path, err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Dedupe == 0 {
		o.Dedupe = defaultDedupe
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Fault == nil {
		o.Fault = func(string) error { return nil }
	}
	return o
}

func open(path string, opts Options) (*Store, error) {
	if opts.Dedupe < 1 || opts.Dedupe > maxDedupe {
		return nil, fmt.Errorf("dedupe of %d keys, want 1 to %d", opts.Dedupe, maxDedupe)
	}
	// A rename to the name would replace a link, not the file.
	s := &Store{name: path, path: resolve(path), opts: opts, models: make(map[string]*model)}
	file, err := lock(s.path, os.O_RDWR)
	switch {
	case err == nil:
		err = s.adopt(file)
	case errors.Is(err, fs.ErrNotExist):
		s.clean()
		if err = s.build(initialise); errors.Is(err, fs.ErrExist) { // another process was faster
			return open(path, opts)
		}
	}
	if err != nil {
		if s.db != nil {
			_ = s.db.Close()
		}
		if file != nil {
			_ = release(file) // closed already if the database was open
		}
		return nil, err
	}
	return s, nil
}

// adopt opens a locked file that exists, after checking all of it.
func (s *Store) adopt(file *os.File) error {
	s.file = file
	if err := s.identify(); err != nil {
		return err
	}
	info := s.identity.info
	found, err := examine(file, info.Size())
	if err != nil {
		return err
	}
	// It is ours: until here nothing was touched.
	if info.Mode().Perm()&0o077 != 0 {
		s.opts.Log.Warn("others could read the state file: taking that right away", "path", s.path, "mode", info.Mode().Perm().String())
		if err := file.Chmod(0o600); err != nil {
			return fmt.Errorf("take away the rights of others: %w", err)
		}
	}
	s.clean()
	if len(found.problems) > 0 {
		return s.repair(file, info.Size(), found.problems)
	}
	db, err := openBolt(file, s.opts, false)
	if errors.Is(err, errPanic) {
		return s.repair(file, info.Size(), []string{err.Error()})
	}
	if err != nil {
		return err
	}
	if err := s.use(db, file); err != nil {
		return err
	}
	if err := s.migrate(found.version); err != nil {
		return err
	}
	if found.wasteful() {
		if err := s.compact(); err != nil {
			s.opts.Log.Warn("state file was not compacted", "path", s.path, "error", err)
			return s.broken
		}
	}
	return nil
}

// clean removes what killed processes left unfinished.
func (s *Store) clean() {
	removeStale(s.path)
	_ = RemoveUnlocked(s.path + temporary)
}

// use makes db, whose file is given, the store's database.
func (s *Store) use(db *bbolt.DB, file *os.File) (err error) {
	s.db, s.file = db, file
	if s.began, err = s.transaction(); err != nil {
		return err
	}
	return s.identify()
}

// openBolt hands a locked file to bbolt. The database owns it then: closing the
// one closes the other.
func openBolt(file *os.File, opts Options, readOnly bool) (db *bbolt.DB, err error) {
	err = guard(func() error {
		db, err = bbolt.Open(file.Name(), 0o600, &bbolt.Options{
			Timeout:  lockTimeout,
			PageSize: pageSize,
			MaxSize:  opts.maxSize(),
			ReadOnly: readOnly,
			// The list of free pages is found again by reading the tree, which
			// Open does anyway: a page less to write at each commit, and none
			// whose damage would let bbolt overwrite what is in use.
			NoFreelistSync: true,
			OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return file, nil },
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	db.AllocSize = growStep
	return db, nil
}

// initialise writes what a state file without models holds.
func initialise(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(bucketLedger)); err != nil {
			return err
		}
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		return b.Put([]byte(keyFormat), sealFormat(formatVersion))
	})
}

// errPanic: bbolt panicked, or its map of the file could not be read.
var errPanic = errors.New("bbolt gave up")

// guard runs fn; a panic, and a fault in bbolt's memory map, become errors.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return fn()
}

// update runs fn in one transaction that is durable when update returns nil,
// and invisible when it does not. The caller holds s.write.
func (s *Store) update(fn func(*bbolt.Tx) error) error {
	if s.readOnly {
		return fs.ErrPermission
	}
	if err := s.ready(); err != nil {
		return err
	}
	if err := s.attach(); err != nil {
		return err
	}
	var id uint32
	err := guard(func() error {
		// Not db.Update: after a fault it would roll back, for which bbolt reads
		// the whole tree in a goroutine that no guard protects.
		tx, err := s.db.Begin(true)
		if err != nil {
			return err
		}
		id = uint32(tx.ID())
		if err := errors.Join(fn(tx), stamp(tx), s.opts.Fault("write")); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return s.opts.Fault("commit")
	})
	if err == nil {
		// The file may have been replaced since attach looked.
		if err = s.check(id); err != nil {
			s.suspect, s.good = true, id-1
		}
		return err
	}
	if errors.Is(err, errPanic) {
		// bbolt may hold its own locks for ever now: it is not called again.
		if why := s.check(uint32(s.identity.meta.txid)); errors.Is(why, ErrReplaced) {
			return why // another program wrote over the file since attach looked
		}
		s.broken = fmt.Errorf("%w: %w; restart to check and repair the file", ErrDamaged, err)
		return s.broken
	}
	// bbolt writes the meta page, then syncs it. If that sync fails, the
	// transaction shows although it may never reach the disk, and the next one
	// would overwrite pages that the disk's tree still needs.
	if visible, e := s.transaction(); e != nil || visible == id {
		s.suspect, s.good = true, id-1
	}
	return roomError(err, s.opts.MaxSize)
}

// ready takes back what shows of a transaction that failed. The caller holds s.write.
func (s *Store) ready() error {
	if s.broken != nil || !s.suspect {
		return s.broken
	}
	if err := s.check(uint32(s.identity.meta.txid)); err != nil && !errors.Is(err, ErrMissing) {
		return err
	}
	return s.rollBack()
}

// transaction returns the number of the newest transaction that shows.
func (s *Store) transaction() (id uint32, err error) {
	err = guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			id = uint32(tx.ID())
			return nil
		})
	})
	return id, err
}

// view runs fn in a read transaction. The caller holds s.write, so that the
// database is not replaced meanwhile.
func (s *Store) view(fn func(*bbolt.Tx) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	return guard(func() error { return s.db.View(fn) })
}

// roomError makes an ErrFull of what says that there is no room.
func roomError(err error, quota int64) error {
	switch {
	case errors.Is(err, berrors.ErrMaxSizeReached):
		return fmt.Errorf("%w: the file may not outgrow %d bytes; checkpoint, or raise the limit: %w", ErrFull, quota, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room on the disk: %w", ErrFull, err)
	}
	return err
}

// SetMaxSize changes Options.MaxSize.
func (s *Store) SetMaxSize(bytes int64) {
	s.write.Lock()
	defer s.write.Unlock()
	s.opts.MaxSize = bytes
	s.db.MaxSize = s.opts.maxSize()
}

// Close releases the file. If there is none at the path any more, it is written
// anew there first: an error says that what was committed is lost otherwise.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.broken != nil {
		return release(s.file)
	}
	var err error
	if !s.readOnly {
		err = s.attach()
	}
	if s.broken != nil {
		err = errors.Join(err, release(s.file))
	} else {
		err = errors.Join(err, guard(s.db.Close))
	}
	if err != nil {
		return fmt.Errorf("persist: close %s: %w", s.path, err)
	}
	return nil
}

// checkName refuses names that are not 1 to 64 letters, digits, '_', '-' or '.'.
func checkName(model string) error {
	ok := len(model) >= 1 && len(model) <= maxName && !strings.ContainsFunc(model, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
	if !ok {
		return fmt.Errorf("name %.80q: want 1 to %d letters, digits, '_', '-' or '.': %w", model, maxName, ErrModel)
	}
	return nil
}

// Reset drops everything of a model: its state, its journal, its shape.
func (s *Store) Reset(model string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.reset(model); err != nil {
		return fmt.Errorf("persist: reset %s in %s: %w", model, s.path, err)
	}
	return nil
}

func (s *Store) reset(model string) error {
	if err := checkName(model); err != nil {
		return err
	}
	err := s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(bucketMeta)).Get(shapeKey(model)) == nil {
			return fmt.Errorf("there is none of that name: %w", ErrModel)
		}
		for _, name := range buckets(model) {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		if err := tx.Bucket([]byte(bucketLedger)).Delete([]byte(model)); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketMeta)).Delete(shapeKey(model))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.models, model)
	return nil
}

// Models returns the names of all models in the file, in order.
func (s *Store) Models() ([]string, error) {
	s.write.Lock()
	defer s.write.Unlock()
	var names []string
	err := s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketMeta)).Cursor()
		prefix := []byte(prefixShape)
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			names = append(names, string(k[len(prefix):]))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("persist: list the models of %s: %w", s.path, err)
	}
	return names, nil
}

package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"sync"
	"syscall"

	"go.etcd.io/bbolt"
)

var (
	// ErrLocked reports that another process has the file open.
	ErrLocked = errors.New("locked by another process")
	// ErrShape reports that the stored state was learnt under another configuration.
	ErrShape = errors.New("state has another shape")
	// ErrMissing reports that the path names no file any more: the store could
	// not write it anew, or has just done so, which Commit reports once. The store
	// remains usable.
	ErrMissing = errors.New("state file is missing")
	// ErrReplaced reports that the path names another file, or that another
	// program wrote over the file. The store writes nothing more.
	ErrReplaced = errors.New("state file was replaced")
	// ErrFull reports that the disk or Options.MaxSize leaves no room. The store
	// remains usable.
	ErrFull = errors.New("no room")
	// ErrDamaged reports a damaged file: this function does not repair files, or
	// the damage occurred while the store was open. Open repairs it.
	ErrDamaged = errors.New("state file is damaged")
	// ErrForeign reports that the file is not a state file, or has a newer format
	// version.
	ErrForeign = errors.New("not a state file that this version can use")
	// ErrModel reports that the store does not know the model, or that its name
	// is not acceptable.
	ErrModel = errors.New("unknown model")
	// ErrCheckpoint reports that the file has no such checkpoint of a model yet.
	ErrCheckpoint = errors.New("there is no such checkpoint yet; the request checkpoint makes one after new labels")
	// ErrSequence reports a checkpoint that is ahead of the journal or behind an
	// older checkpoint.
	ErrSequence = errors.New("checkpoint out of sequence")
)

// Options configure a Store. The zero value is valid.
type Options struct {
	// MaxSize bounds the file in bytes: Commit returns ErrFull instead of growing
	// the file further, until checkpoints have shortened the journals or pending samples
	// were dropped. 0: no bound.
	MaxSize int64
	// Dedupe is the number of keys remembered per model. 0 means 4096, at most 1,048,576.
	Dedupe int
	// Log receives repairs and wrong permissions; nil discards them.
	Log *slog.Logger

	// Fault, if set, is called before or after each step of a commit or transaction,
	// and the step fails with the error that it returns: simulations and tests use it
	// as their disk. After "commit" the frame of the redo log is in the file, or the
	// transaction, and the last sync has failed.
	Fault func(step string) error
}

func (o Options) maxSize() int { return int(min(o.MaxSize, math.MaxInt)) }

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

const (
	defaultDedupe = 4096
	pageSize      = 4096    // also where the kernel's pages are larger: 16 KiB pages cost 3.5 times the bytes
	growStep      = 1 << 20 // bytes by which a file above that size grows
	compactAbove  = 1 << 20 // free bytes; compaction also needs more than half of the file to be free
)

// Store is an open state file. Any goroutine may call its methods; writes take
// turns.
type Store struct {
	name     string // as given to Open
	path     string // name with symbolic links resolved
	opts     Options
	readOnly bool
	recovery *Recovery // nil: the file was sound

	write        sync.Mutex // serialises transactions; taken before mu
	db           *bbolt.DB
	file         *os.File // db's file: holds the lock; read directly, beside bbolt's map
	identity     identity // of file
	unreported   error    // ErrMissing for a file that was written anew, until a Commit returns it
	commitFailed bool     // the last Commit returned an error
	broken       error    // the reason why the store writes nothing any more
	rollBackDue  bool     // a transaction after lastGood failed but is visible in the file
	lastGood     uint32   // transaction to roll back to; bbolt returns these numbers as an int
	firstTx      uint32   // the newest transaction when db was opened
	earlier      Stats    // of the databases before db
	log          redoLog
	scratch      scratch

	mu     sync.Mutex
	models map[string]*model // loaded ones
}

// scratch holds buffers that a store uses again. The caller holds Store.write.
type scratch struct {
	values  []byte // sealed values of the running transaction
	payload []byte // the payload to seal next
	page    []byte // the page whose checksum is computed
}

// Open opens the state file at path, and creates it if it does not exist. It
// repairs a damaged file as far as possible (see Recovery), and compacts a file
// of which more than half is free. The file stays locked until Close.
//
// Errors: ErrLocked, ErrForeign, and those of the file system.
func Open(path string, opts Options) (*Store, error) {
	s, err := open(path, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("persist: open %s: %w%s", path, err, Remedy(err))
	}
	return s, nil
}

// Remedy returns the advice for an error with which a file system refuses to open a file, "" without one.
func Remedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "; make the folder, or choose another path"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("; run this as the owner of the file, or give the file and its folder to the user of this program, %d, by chown", os.Geteuid())
	}
	return diskRemedy(err)
}

// diskRemedy returns the advice for an error of the disk: a kernel that finds one makes the
// file system read-only.
func diskRemedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "; mount it writable; if the kernel made it read-only, the disk or card usually fails: see dmesg"
	case errors.Is(err, syscall.EIO):
		return "; the disk or card fails: see dmesg, and replace it"
	case errors.Is(err, syscall.EFBIG):
		return "; the process or the file system has a limit of the size of a file: raise it (ulimit -f), or choose another store.path"
	case errors.Is(err, syscall.EMFILE):
		return "; raise the limit of this process: ulimit -n, or LimitNOFILE of the unit"
	}
	return ""
}

func open(path string, opts Options) (*Store, error) {
	if opts.Dedupe < 1 || opts.Dedupe > maxDedupe {
		return nil, fmt.Errorf("dedupe of %d keys, want 1 to %d", opts.Dedupe, maxDedupe)
	}
	// A rename to the name would replace a link, not the file.
	s := &Store{name: path, path: ResolveLinks(path), opts: opts, models: make(map[string]*model)}
	file, err := lock(s.path, os.O_RDWR)
	switch {
	case err == nil:
		err = s.openExisting(file)
	case errors.Is(err, fs.ErrNotExist):
		s.removeLeftovers()
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

// openExisting opens a locked file that exists, after checking all of it.
func (s *Store) openExisting(file *os.File) error {
	s.file = file
	if err := s.recordIdentity(); err != nil {
		return err
	}
	info := s.identity.info
	dropCache(file, 0, 0) // pages that were read or written together
	adviseRandom(file)
	readAhead(file, info.Size())
	found, err := examine(file, info.Size())
	if err != nil {
		return err
	}
	// The file is a state file: from here on it may be changed.
	if info.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil { // of another user, or on a file system without modes
			s.opts.Log.Warn("other users can read the state file, and its mode cannot be set to 0600", "path", s.path, "mode", info.Mode().Perm().String(), "error", err)
		} else {
			s.opts.Log.Warn("other users could read the state file: its mode is now 0600", "path", s.path, "mode", info.Mode().Perm().String())
		}
	}
	s.removeLeftovers()
	if len(found.problems) > 0 {
		return s.repair(file, info.Size(), found.problems)
	}
	s.keepFormer(found.version)
	db, err := openBolt(file, s.opts, false)
	if errors.Is(err, errPanic) {
		return s.repair(file, info.Size(), []string{err.Error()})
	}
	if err != nil {
		return err
	}
	if err := s.setDatabase(db, file); err != nil {
		return err
	}
	if err := s.loadRedo(); err != nil {
		return err
	}
	if err := s.migrate(found.version); err != nil {
		return err
	}
	if found.wasteful() {
		if err := s.rewrite(); err != nil {
			s.opts.Log.Warn("state file was not compacted", "path", s.path, "error", err)
			return s.broken
		}
	}
	return nil
}

// removeLeftovers removes the unfinished files of killed processes.
func (s *Store) removeLeftovers() {
	removeStale(s.path)
	_ = RemoveUnlocked(s.path + temporary)
}

// setDatabase makes db, which uses file, the store's database.
func (s *Store) setDatabase(db *bbolt.DB, file *os.File) (err error) {
	s.db, s.file = db, file
	if s.firstTx, err = s.newestTx(); err != nil {
		return err
	}
	if err := s.locateRedo(); err != nil {
		return err
	}
	return s.recordIdentity()
}

// openBolt opens a locked file as a database, which owns the file from then on:
// closing either closes both.
func openBolt(file *os.File, opts Options, readOnly bool) (db *bbolt.DB, err error) {
	err = guard(func() error {
		db, err = bbolt.Open(file.Name(), 0o600, &bbolt.Options{
			Timeout:  lockTimeout,
			PageSize: pageSize,
			MaxSize:  opts.maxSize(),
			ReadOnly: readOnly,
			// bbolt finds the free pages by reading the tree, which Open does in
			// any case: each commit writes one page less, and no damaged list of
			// free pages can let bbolt overwrite pages in use.
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

// initialise writes the contents of a state file without models.
func initialise(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte(bucketLedger)); err != nil {
			return err
		}
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		if err := createRedo(tx); err != nil {
			return err
		}
		return b.Put([]byte(keyFormat), sealFormat(formatVersion))
	})
}

// OpenReadOnly opens the state file at path for inspection: it writes, repairs
// and compacts nothing, and other readers may open the file at the same time.
//
// Errors: ErrLocked while a daemon uses the file; ErrDamaged if it needs repair.
func OpenReadOnly(path string, opts Options) (*Store, error) {
	s, err := openReadOnly(path, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("persist: open %s to read: %w", path, err)
	}
	return s, nil
}

func openReadOnly(path string, opts Options) (*Store, error) {
	file, err := lock(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	s := &Store{name: path, path: path, opts: opts, readOnly: true, file: file, models: make(map[string]*model)}
	info, err := file.Stat()
	if err != nil {
		return nil, join(err, file.Close())
	}
	if err := checkSound(file, info.Size()); err != nil {
		return nil, join(err, file.Close())
	}
	db, err := openBolt(file, opts, true)
	if err != nil {
		return nil, join(err, file.Close())
	}
	if err := s.setDatabase(db, file); err != nil {
		return nil, join(err, db.Close())
	}
	if err := s.loadRedo(); err != nil {
		return nil, join(err, guard(db.Close))
	}
	return s, nil
}

// SetMaxSize changes Options.MaxSize.
func (s *Store) SetMaxSize(bytes int64) {
	s.write.Lock()
	defer s.write.Unlock()
	s.opts.MaxSize = bytes
	s.db.MaxSize = s.opts.maxSize()
}

// Close releases the file. If the path names no file any more, Close writes it
// anew first; an error means that the committed records are lost otherwise.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.broken != nil {
		return release(s.file)
	}
	var err error
	if !s.readOnly {
		if err = s.ensureAtPath(); err == nil && !s.rollBackDue {
			_ = s.fold() // for programs that read the tree alone; the next start does it otherwise
		}
	}
	if s.broken != nil {
		err = join(err, release(s.file))
	} else {
		err = join(err, guard(s.db.Close))
	}
	if err != nil {
		return fmt.Errorf("persist: close %s: %w", s.path, err)
	}
	return nil
}

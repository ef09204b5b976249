package persist

import (
	"cmp"
	"fmt"
)

// Stats are statistics of the whole file.
type Stats struct {
	FileBytes    int64
	FreeBytes    int64 // in the file, reused by later transactions
	WrittenBytes int64 // since Open
	Transactions int64 // since Open
}

// Stats returns statistics of the file. It returns ErrMissing if the path does not
// name the file, or did not until the store wrote it anew: an empty Commit then
// writes the file or reports the loss. ErrReplaced: the path names another file.
func (s *Store) Stats() (Stats, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if s.broken != nil {
		return Stats{}, s.broken
	}
	var err error
	if !s.readOnly {
		err = cmp.Or(s.checkUnchanged(), s.unreported)
	}
	info, failed := s.file.Stat()
	if err = cmp.Or(err, failed); err != nil {
		return Stats{}, fmt.Errorf("persist: statistics of %s: %w", s.name, err)
	}
	st := s.stats()
	st.WrittenBytes += s.log.written
	st.Transactions += s.log.commits
	st.FileBytes = info.Size()
	return st, nil
}

// stats returns bbolt's counters: the pages of its transactions, and a meta page for
// each transaction.
func (s *Store) stats() Stats {
	st := s.earlier
	b := s.db.Stats()
	st.FreeBytes = int64(b.FreePageN+b.PendingPageN) * pageSize
	now, err := s.newestTx()
	if err != nil {
		return st
	}
	st.Transactions += int64(now - s.firstTx)
	st.WrittenBytes += b.TxStats.GetPageAlloc() + int64(now-s.firstTx)*pageSize
	return st
}

// Package persist stores the state of a daemon's models in one bbolt file, so that
// a crash or a power cut at any instant loses no committed record and applies none
// twice.
//
// A model's state is its newest checkpoint and the records of its journal after it.
// Open returns a Store; Load returns both parts of a model's state. Commit makes a
// group of records durable at once, after which the caller may acknowledge their
// labels: it appends them to the redo log, pages of the file that a transaction of bbolt
// moves to the tree when they are full. Checkpoint writes a new generation of the state and, in
// the same transaction, deletes the records that the older generation contains.
// Backup, Restore and Verify work on a file, Backup and Verify also while a daemon
// has it open.
//
//	meta                  "format" → version; "shape/<model>" → the configuration's shape;
//	                      "session" → filters of the broker's session, optional;
//	                      "windows/<stream>" → its windows in progress, after an orderly stop
//	ledger                model → last seq, pending samples, number and checksum of all its
//	                      entries, online.Mark if not 0; "/tx" → the transaction that wrote
//	                      the tree; "/redo" → epoch of the redo log; "/taken" → list of taken
//	                      messages, optional
//	redo                  "pages" → the redo log: commits since the transaction (redo.go)
//	journal/<model>       seq → record            8-byte big-endian keys, 1, 2, 3, … without gaps
//	pending/<model>       arrival → sample        without a label yet, in order of arrival
//	checkpoint/<model>/0  "state" → generation, seq, dedupe ring, state bytes
//	checkpoint/<model>/1  the same; the two generations alternate
//
// Every value is sealed: kind, format version, length, payload and a CRC-32C that also
// covers bucket and key (seal.go), so that a value at a wrong key is invalid. The ledger's
// checksum reveals missing and outdated entries, "/tx" a tree older than its meta page.
// Each generation of a checkpoint has its own bucket because bbolt rewrites whole leaves.
//
// bbolt trusts its file: a damaged one can make it panic, recurse without end or return
// wrong data. Open therefore checks every page (pages.go), seal and ledger (contents.go)
// first. It keeps a damaged file as <path>.damaged-<n>, copies the valid entries to a new
// one (repair.go), and Recovery reports the loss. Each new file is written under a
// temporary name, synced and renamed (build.go). Before and after each transaction the
// store compares the file at the path with the open one (identity.go): it writes a
// missing file anew, and does not touch a file that replaced its own.
//
// Read store.go, transaction.go, draft.go, journal.go, redo.go, redolog.go, checkpoint.go and
// load.go, in this order.
//
// References: Mohan et al., ARIES (ACM TODS 17, 1992), log before acknowledge;
// Castagnoli, Bräuer & Herrmann (IEEE Trans. Comm. 41, 1993), the CRC; Rebello et al.,
// "Can Applications Recover from fsync Failures?" (USENIX ATC 2020), failed syncs.
package persist

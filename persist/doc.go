// Package persist keeps what a daemon has learnt in one bbolt file, so that a
// crash or a power cut at any instant loses nothing that was committed and
// repeats nothing.
//
// The state of a model is its newest checkpoint followed by the records of its
// journal. Commit makes a group of records durable in one transaction (a label
// may be acknowledged after it, not before); Checkpoint writes a new generation
// and, in the same transaction, drops the records that even the older
// generation no longer needs; Load gives both back.
//
//	meta                  "format" → version; "shape/<model>" → the configuration's shape
//	                      "session" → filters that the broker's session is subscribed to, if there are any
//	ledger                model → last seq, samples pending, number and checksum of all its entries,
//	                      and the mark that the node gave it, if it is not 0;
//	                      "/tx" → the transaction that wrote the tree
//	journal/<model>       seq → record            8-byte big-endian keys, 1, 2, 3, … without gaps
//	pending/<model>       arrival → sample        waits for its label, in order of arrival
//	checkpoint/<model>/0  "state" → generation, seq, dedupe ring, state bytes
//	checkpoint/<model>/1  the same; the two generations alternate
//
// Every value is sealed: kind, format version, length, payload and a CRC-32C
// that also covers the value's bucket and key, so that a value in the wrong
// place is as invalid as a damaged one. The ledger's sum covers all seals of a
// model, so that an entry which is missing, or older than it should be, shows;
// the transaction's number shows a whole tree that is older than its meta page.
// A generation has a bucket of its own because bbolt rewrites a whole leaf:
// sharing one would write both generations at each checkpoint.
//
// bbolt trusts its file: a damaged one makes it panic, recurse without end or
// return wrong data. Open therefore first reads every page itself with every
// offset checked (see pages.go), then every seal and ledger. A file that fails
// is kept beside the new one as <path>.damaged-<n>, what is valid in it is
// carried over, and Recovery says what was lost. A new file of any origin
// (first start, compaction, repair) is written under a temporary name, synced
// and renamed into place.
//
// The file can be removed, moved, or have its name taken by another one while it
// is open. Before and after each transaction the store therefore compares what is
// at the path with what it has open and has written (see identity.go): what is
// missing it writes anew, another file it does not touch.
//
// References: Mohan et al., ARIES (ACM TODS 17, 1992) for the discipline of
// log before acknowledge; Castagnoli, Bräuer & Herrmann (IEEE Trans. Comm. 41,
// 1993) for the CRC; Rebello et al., "Can Applications Recover from fsync
// Failures?" (USENIX ATC 2020) for what a failed sync leaves behind.
package persist

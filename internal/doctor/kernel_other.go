//go:build !linux

package doctor

// clockSynchronised is unknown on this system.
func clockSynchronised() (synchronised, known bool) { return false, false }

// diskSpace is unknown on this system.
func diskSpace(string) (free, total uint64, ok bool) { return 0, 0, false }

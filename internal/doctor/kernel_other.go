//go:build !linux

package doctor

// clockSynchronised cannot tell on this system.
func clockSynchronised() (synchronised, known bool) { return false, false }

// diskSpace cannot tell on this system.
func diskSpace(string) (free, total uint64, ok bool) { return 0, 0, false }

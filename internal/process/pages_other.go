//go:build !linux

package process

// UnmapFilePages does nothing on this system.
func UnmapFilePages() {}

//go:build !linux

package process

// UnmapProgram does nothing on this system.
func UnmapProgram() {}

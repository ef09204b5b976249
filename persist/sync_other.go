//go:build !linux

package persist

import "os"

func syncData(file *os.File) error { return file.Sync() }

func random(*os.File) {}

func forget(*os.File, int64, int64) {}

func ahead(*os.File, int64) {}

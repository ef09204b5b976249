//go:build !linux

package persist

import "os"

func syncData(file *os.File) error { return file.Sync() }

func adviseRandom(*os.File) {}

func dropCache(*os.File, int64, int64) {}

func readAhead(*os.File, int64) {}

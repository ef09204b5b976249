//go:build !linux

package main

func letProgramGo() {}

// Package inspect describes a state file: File what its models have learnt (edge
// inspect), Verification what a check of every page and record found (edge verify).
package inspect

// Package report is the result of an evaluation: the objects that --json prints,
// their means over repeats, and the tables for people.
//
// Report has the scores of one data set; Asked, Published, Drift, Tenth and Run are
// its parts, Training that of an offline training. Curve and Tenths collect the
// course of the scores in bounded memory. live.go has the scores of a running node
// that the page's API and edge top have in common.
package report

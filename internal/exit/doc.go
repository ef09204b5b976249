// Package exit holds the exit codes of the programs and the error that carries one.
//
// A function that knows which code its failure should have returns
// exit.With(exit.Store, err); the command line takes the code from the error with
// errors.As and an *exit.Error. An error without a code exits with 1.
package exit

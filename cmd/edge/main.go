package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// Exit codes, for scripts and service managers.
const (
	exitOK      = 0
	exitRuntime = 1
	exitUsage   = 2
	exitConfig  = 3
	exitBroker  = 4
	exitStore   = 5
)

// codedError is an error that decides the exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// coded gives err an exit code, unless it has one already. Nil stays nil.
func coded(code int, err error) error {
	var have *codedError
	if err == nil || errors.As(err, &have) {
		return err
	}
	return &codedError{code, err}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(errOut, "edge:", err)
	// What a command returns is coded by action; anything else comes from the
	// parsing of flags and arguments.
	if c := (*codedError)(nil); errors.As(err, &c) {
		return c.code
	}
	fmt.Fprintln(errOut, "Try `edge --help`, or `edge COMMAND --help`.")
	return exitUsage
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "edge",
		Short: "Online Gaussian-process classification of MQTT sensor streams",
		Long: `edge subscribes to MQTT feature streams, learns to classify them online with a
sparse multi-class Gaussian process, and publishes the class probabilities.

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 configuration, 4 broker, 5 store.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newRunCommand(),
		newDemoCommand(),
		newReplayCommand(),
		newEvalCommand(),
		newTrainCommand(),
		newPaperCommand(),
		newInspectCommand(),
		newTopCommand(),
		newCheckCommand(),
		newDoctorCommand(),
		newConfigCommand(),
		newRequestCommand(),
		newResetCommand(),
		newVerifyCommand(),
		newVersionCommand(),
	)
	return root
}

// action makes a cobra RunE of f: an error without a code of its own exits
// with 1.
func action(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return coded(exitRuntime, f(cmd, args))
	}
}

// isTerminal reports whether w is a terminal: lines may be rewritten there,
// and somebody watches.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

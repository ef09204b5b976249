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
	"github.com/spf13/pflag"
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
	return executeRoot(ctx, newRoot(), args, in, out, errOut)
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
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Example:       "  edge demo\n  edge config sample >edge.yaml\n  edge run -c edge.yaml",
	}
	root.AddCommand(
		newRunCommand(),
		newInspectCommand(),
		newCheckCommand(),
		newDoctorCommand(),
		newConfigCommand(),
		newRequestCommand(),
		newResetCommand(),
		newVerifyCommand(),
		newBackupCommand(),
		newRestoreCommand(),
		newVersionCommand(),
	)
	root.AddCommand(
		newDemoCommand(), newReplayCommand(), newTrainCommand(), newPredictCommand(), newTopCommand(),
	)
	return root
}

// knownCommand refuses an argument of a command that only has others below it,
// and names the one that was most likely meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant(args[0], "", names))
}

// nearestFlag names the flag that was most likely meant.
func nearestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("%w%s", err, meant(unknown.GetSpecifiedName(), "--", names))
}

// meant is the question after an unknown word, if one of those that are known
// is near.
func meant(word, before string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", before, near)
	}
	return ""
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

// executeRoot runs one command line of a program and returns the exit code.
func executeRoot(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	root.SetFlagErrorFunc(nearestFlag)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(textWriter{errOut}, root.Name()+":", err)
	// What a command returns is coded by action; anything else comes from the
	// parsing of flags and arguments.
	if c := (*codedError)(nil); errors.As(err, &c) {
		return c.code
	}
	fmt.Fprintf(errOut, "Try `%s --help`.\n", cmd.CommandPath())
	return exitUsage
}

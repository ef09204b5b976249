package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/terminal"
	"edge/stream/field"
)

// NoArgs is the Args of a command that takes none. It suggests the subcommand with the
// nearest name, and, for a file, the flag of the configuration.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		hint := ""
		if cmd.Flags().ShorthandLookup("c") != nil {
			hint = "; a configuration is given by -c FILE"
		} else if cmd.Flags().Lookup("from") != nil {
			hint = "; a data file is given by --from FILE"
		}
		return fmt.Errorf("%s takes no argument, not %q%s", strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" "), args[0], hint)
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion(args[0], "", names))
}

// flagError adds a suggestion to the error of an unknown flag, and the kind of its values to that of
// a flag whose value cannot be read. Of an unknown command with a flag it names the command.
func flagError(cmd *cobra.Command, err error) error {
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		want := ""
		switch wrong.GetFlag().Value.Type() {
		case "int", "uint64":
			want = "a whole number"
		case "float64", "float64Slice":
			want = "a number"
		case "duration":
			want = "a time such as 30s or 5m"
		default:
			return err
		}
		return fmt.Errorf("--%s %q: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		if noCommand := cmd.ValidateArgs(words); noCommand != nil { // the flag is one of the command that was meant
			return noCommand
		}
	}
	if unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if unknown.GetSpecifiedName() == "broker" && slices.Contains(names, "config") {
		return fmt.Errorf("%w; the broker is that of the configuration, -c FILE", err)
	}
	return fmt.Errorf("%w%s", err, suggestion(unknown.GetSpecifiedName(), "--", names))
}

// suggestion returns the text after an unknown word that names a similar known
// one, or "". before is put in front of it.
func suggestion(word, before string, known []string) string {
	if near := field.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %s%s?", before, near)
	}
	return ""
}

// Action returns f as a cobra RunE: an error without an exit code gets
// exit.Runtime. It is not inlined: each command would have a copy of the function.
//
//go:noinline
func Action(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return exit.With(exit.Runtime, f(cmd, args))
	}
}

// checkDefaults makes the commands help and completion, which cobra adds, refuse unknown
// commands as others do; cobra's own print their help and succeed.
func checkDefaults(root *cobra.Command, args []string) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return NoArgs(of, rest)
			}
		case "completion":
			cmd.Args, cmd.RunE = NoArgs, func(cmd *cobra.Command, args []string) error { return cmd.Help() }
		}
	}
}

// Main runs the command line of the process and ends it. SIGINT and SIGTERM end the context of the
// command; a second one ends the process at once.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Execute(ctx, root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Execute runs one command line of a program and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(args)
	root.SetIn(in)
	printed := &result{to: out}
	root.SetOut(printed.writer())
	root.SetErr(errOut)
	root.Version = strings.TrimPrefix(process.Build().String(), "edge ") // --version prints it behind the program's name; a template would cost 2.5 MB
	checkDefaults(root, args)
	cmd, err := root.ExecuteContextC(ctx)
	if printed.err != nil {
		err = exit.With(exit.Runtime, cmp.Or(err, printed.err))
	}
	if err == nil {
		return exit.OK
	}
	terminal.PrintError(errOut, root.Name()+": "+err.Error())
	// Errors of commands have a code by Action; one without is an error of flags or
	// arguments.
	if c := (*exit.Error)(nil); errors.As(err, &c) {
		return c.Code
	}
	if strings.Contains(err.Error(), "arg(s)") { // it has their number, and not their names
		fmt.Fprintln(errOut, "Usage:", cmd.UseLine())
	}
	fmt.Fprintf(errOut, "Try `%s --help`.\n", cmd.CommandPath())
	return exit.Usage
}

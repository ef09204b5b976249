package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
)

func newResetCommand() *cobra.Command {
	var path, state, model string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Forget what models have learnt",
		Long: `reset removes a model's state, its journal and the samples that wait for labels
from the state file. The daemon must not be running. There is no way back.`,
		Example: `  edge reset -c edge.yaml --model bearing
  edge reset --state edge.db --all --yes`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if (model == "") != all {
				return exit.With(exit.Usage, errors.New("reset: give either --model NAME or --all"))
			}
			if state == "" {
				cfg, err := config.Load(path)
				if err != nil {
					return err
				}
				if state, err = cfg.StorePath(); err != nil {
					return exit.With(exit.Config, fmt.Errorf("reset: %w, or give --state FILE", err))
				}
			}
			return exit.With(exit.Store, reset(cmd, state, model, yes))
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE` that names the state file")
	f.StringVar(&state, "state", "", "state `FILE` (default store.path of the configuration)")
	f.StringVar(&model, "model", "", "`NAME` of the model")
	f.BoolVar(&all, "all", false, "all models of the state file")
	f.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// reset removes one model, or all of them if model is "".
func reset(cmd *cobra.Command, state, model string, yes bool) (err error) {
	if err := statefile.Find(state); err != nil {
		return fmt.Errorf("reset: nothing is learnt: %w", err)
	}
	store, err := persist.Open(state, persist.Options{Log: terminal.NewLogger(slog.LevelInfo, "auto", cmd.ErrOrStderr())}) // it repairs and converts
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	models, err := store.Models()
	if err != nil {
		return err
	}
	if model != "" {
		if !slices.Contains(models, model) {
			return fmt.Errorf("reset: %s holds no model %s; it has: %s", state, model, cmp.Or(strings.Join(models, ", "), "none"))
		}
		models = []string{model}
	} else if len(models) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%s holds no model\n", state)
		return nil
	}
	learnt := make([]string, len(models))
	answers := bufio.NewReader(cmd.InOrStdin()) // of all questions: it reads ahead
	for i, name := range models {
		info, err := store.Info(name)
		if err != nil {
			return err
		}
		if learnt[i], err = learntSamples(store, &info); err != nil {
			fmt.Fprintf(terminal.Writer{To: cmd.ErrOrStderr()}, "model %s cannot be read: %v\n", name, err)
		}
		if !yes && !confirmed(cmd, answers, fmt.Sprintf("Forget all of model %s in %s (%s, %d waiting for labels)?", name, state, learnt[i], info.Pending)) {
			return exit.With(exit.Runtime, fmt.Errorf("reset: model %s was not confirmed, so nothing is forgotten; --yes answers yes", name))
		}
	}
	for i, name := range models {
		if err := store.Reset(name); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "model %s has forgotten %s\n", name, learnt[i])
	}
	return nil
}

// learntSamples returns the number of samples in the state of a model, those of "edge train" among
// them, and in its journal after it and after the latest reset there. The error is that of a
// state that no learner can restore.
func learntSamples(store *persist.Store, info *persist.Info) (string, error) {
	learner, kept, _, err := statefile.Restore(store, info.Model, nil)
	if err != nil {
		return "an unknown number of samples", err
	}
	n := learner.Posterior().Version() + uint64(learner.Pending())
	for i := range kept.Records {
		switch kept.Records[i].Kind {
		case online.Observe:
			n++
		case online.Reset:
			n = 0
		}
	}
	return terminal.Count(n, "sample"), nil
}

// confirmed asks the user a question and reports whether the next answer is yes.
func confirmed(cmd *cobra.Command, answers *bufio.Reader, question string) bool {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, _ := answers.ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

package cli

import (
	"github.com/spf13/cobra"

	"edge/online/train"
)

// TrainingFlags adds the flags of offline training.
func TrainingFlags(cmd *cobra.Command, how *train.Config) {
	f := cmd.Flags()
	f.IntVar(&how.Passes, "passes", how.Passes, "at most `N` passes over the data")
	f.StringVar((*string)(&how.Optimizer), "optimizer", string(how.Optimizer), "`KIND`, adam, or sign with --batch 0")
	f.Var(&sitesFlag{&how.Sites}, "sites", "`KIND`, tied (SEP), or for each sample: merged (one site a class), pairs (EP) or rep (joint probability)")
	f.Float64Var(&how.Rate, "rate", how.Rate, "learning `RATE` of kernel and inducing inputs; 0 keeps them")
	f.StringVar((*string)(&how.Schedule), "schedule", string(how.Schedule), "`SCHEDULE` of the learning rate: constant, cosine or sqrt")
	f.Float64Var(&how.Damping, "damping", how.Damping, "`DAMPING` of the sites: 1 replaces them (default 1, and 0.5 where a minibatch has all samples)")
	f.Float64Var(&how.Prior, "prior", how.Prior, "`PRECISION` of a prior that holds the log lengthscales together; 0: none")
	f.IntVar(&how.Patience, "patience", how.Patience, "end after `N` passes without a better log evidence; 0: never")
	f.StringVar((*string)(&how.Scaling), "scale", string(how.Scaling), "`KIND` of standardisation: feature (each by itself), plain (the same, and wild values count), or common (all by one deviation)")
	f.StringVar((*string)(&how.Start), "start", string(how.Start), "`KIND` of first inducing points: kmeans, subset (random), or classes (half from the class itself)")
	f.Float64Var(&how.Length, "length", how.Length, "first lengthscale, `X` median distances of two samples")
}

// sitesFlag is the flag --sites, which takes an earlier name as well.
type sitesFlag struct{ to *train.Sites }

func (s *sitesFlag) String() string        { return string(*s.to) }
func (s *sitesFlag) Set(name string) error { *s.to = train.SitesNamed(name); return nil }
func (s *sitesFlag) Type() string          { return "string" }

package cli

import (
	"github.com/spf13/cobra"

	"edge/online/train"
)

// TrainingFlags adds the flags of offline training. Call finish once they are
// parsed: it sets the fields of how that are not plain values.
func TrainingFlags(cmd *cobra.Command, how *train.Config) (finish func()) {
	f := cmd.Flags()
	f.IntVar(&how.Passes, "passes", how.Passes, "passes over the data, at most")
	optimizer := f.String("optimizer", string(how.Optimizer), "adam, or sign with --batch 0")
	sites := f.String("sites", string(how.Sites), "tied (SEP), or for each sample: merged (one site a class), pairs (EP) or rep (joint probability)")
	f.Float64Var(&how.Rate, "rate", how.Rate, "learning rate of kernel and inducing inputs; 0 keeps them")
	schedule := f.String("schedule", string(how.Schedule), "of the learning rate: constant, cosine or sqrt")
	f.Float64Var(&how.Damping, "damping", how.Damping, "of the sites: 1 replaces them (default 1, and 0.5 where a minibatch has all samples)")
	f.Float64Var(&how.Prior, "prior", how.Prior, "precision of a prior that holds the log lengthscales together; 0: none")
	f.IntVar(&how.Patience, "patience", how.Patience, "end after `N` passes without a better log evidence; 0: never")
	scaling := f.String("scale", string(how.Scaling), "standardise by feature, by plain feature (wild values count), or all by one common deviation")
	start := f.String("start", string(how.Start), "inducing points from kmeans, a random subset, or classes: half from the class itself")
	f.Float64Var(&how.Length, "length", how.Length, "first lengthscale, in median distances of two samples")
	return func() {
		how.Optimizer, how.Sites = train.Optimizer(*optimizer), train.SitesNamed(*sites)
		how.Schedule, how.Scaling, how.Start = train.Schedule(*schedule), train.Scaling(*scaling), train.Start(*start)
	}
}

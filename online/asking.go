package online

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"edge/model"
)

// Strategy says whose labels are asked for.
type Strategy string

// The strategies: nobody is asked; samples are asked for at random; or rather
// those whose most probable classes are close, whose probabilities are spread,
// or whose label would tell most about the latent functions where that decides.
const (
	AskNothing Strategy = "off"
	AskRandom  Strategy = "random"
	AskMargin  Strategy = "margin"  // 1 − model.Margin
	AskEntropy Strategy = "entropy" // model.Entropy
	AskBALD    Strategy = "bald"    // √(model.Workspace.BALD · (1 − model.Margin))
)

// Strategies are those that ask.
func Strategies() []Strategy { return []Strategy{AskMargin, AskEntropy, AskBALD, AskRandom} }

// Asking says when a label is asked for.
type Asking struct {
	// Strategy: off, margin, entropy, bald or random. Default off.
	Strategy Strategy `yaml:"strategy" jsonschema:"enum=off,enum=margin,enum=entropy,enum=bald,enum=random"`
	// Budget is the largest fraction of the samples that is asked for. A new model
	// begins with that of its next 2400 samples, at least 20, and saves it later.
	// Default 0.1, above 0, at most 1.
	Budget float64 `yaml:"budget"`
	// PerHour is the largest number of questions in any hour, spread evenly: so
	// long after one there is no other. 0: no such bound. Default 12.
	PerHour float64 `yaml:"budget_per_hour"`
}

// DefaultAsking returns the defaults that configs/edge.yaml documents.
func DefaultAsking() Asking { return Asking{Strategy: AskNothing, Budget: 0.1, PerHour: 12} }

// Enabled reports whether anything is asked for.
func (a Asking) Enabled() bool { return a.Strategy != AskNothing && a.Strategy != "" }

// Suit completes c, whose Inducing may be 0. It fits c to a model that is taught few
// labels, each of which has to do more than one of many and may cost more: there are
// more inducing points, the model is built from more labels, in several passes, and a
// gradient step looks at more than the last. What c says itself stays.
func (a Asking) Suit(c *Config) {
	if !a.Enabled() || a.Budget == 1 {
		c.Inducing = cmp.Or(c.Inducing, DefaultConfig().Inducing)
		return
	}
	c.Inducing = cmp.Or(c.Inducing, fewInducing)
	if c.Gradient == 0 {
		c.Gradient = fewGradient
	}
	if c.Warmup == 0 {
		c.Warmup = fewWarmup * c.Inducing
	}
	c.Passes = fewPasses
}

// Validate reports every field that is out of range, joined.
func (a Asking) Validate() error {
	var errs []error
	if a.Enabled() && !slices.Contains(Strategies(), a.Strategy) {
		errs = append(errs, fmt.Errorf("strategy: %s: want off, margin, entropy, bald or random: %w", a.Strategy, ErrConfig))
	}
	if !(a.Budget > 0 && a.Budget <= 1) {
		errs = append(errs, fmt.Errorf("budget: %g: want a fraction of the samples, above 0, at most 1: %w", a.Budget, ErrConfig))
	}
	if !(a.PerHour >= 0 && a.PerHour <= 3600) {
		errs = append(errs, fmt.Errorf("budget_per_hour: %g: want 0 (no bound) to 3600: %w", a.PerHour, ErrConfig))
	}
	return errors.Join(errs...)
}

const (
	headSamples = 2400 // whose budget a new model may spend at once
	minHead     = 20   // labels that it may have at least
	headShare   = 0.3  // of the latest samples that are asked for while it does
	askMemory   = 300  // samples whose scores a new one is compared with
	askGreed    = 4.   // β: 0 asks at random, ∞ always for the highest scores
	minAskScore = 1e-12
	fewGradient = 16  // observations of a gradient step where labels are few
	fewInducing = 100 // inducing points there
	fewWarmup   = 6   // observations of the warm-up for each inducing point there
	fewPasses   = 4   // over them in each build there
	minAskShare = 0.5 // of the budget that is spent at any time, while something was saved on it
)

// Asker decides, sample by sample and at once, whose label to ask for. A score
// says how much each label is worth. Asked is where the noisy score
//
//	log s + G/β,   G a standard Gumbel variable
//
// is among the highest of the latest 300 samples, as many of them as the budget
// allows: the samples of a stream are alike, so that the highest scores alone
// would all be those of one moment. Of n samples, at most
//
//	max(budget·n, max(2400·budget, 20) + budget·n/2)
//
// are asked for: the first labels are worth most. One goroutine owns it; the same samples give the same answers.
// Memory is fixed. No allocation.
//
// Source: Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal
// (2023), "Stochastic Batch Acquisition", for the noise; Houlsby, Huszár, Ghahramani &
// Lengyel (2011), "Bayesian Active Learning for Classification and Preference
// Learning", for BALD; Žliobaitė, Bifet,
// Pfahringer & Holmes (2014), "Active Learning With Drifting Streaming Data",
// for a budget on a stream.
type Asker struct {
	how         Asking
	rng         *rand.Rand
	latest      []float64 // noisy scores, a ring
	next        int
	seen, asked uint64
	last        time.Duration // when it asked last
}

// NewAsker returns an asker whose noise has the seed.
func NewAsker(how Asking, seed uint64) *Asker {
	return &Asker{how: how, rng: rand.New(rand.NewPCG(seed, 0x61736b)), latest: make([]float64, 0, askMemory)}
}

// Score returns what the strategy says of the sample that p predicted last with
// ws: the more, the more its label is worth. Probs is the prediction.
func (a *Asker) Score(probs []float64, p *model.Posterior, ws *model.Workspace) float64 {
	switch a.how.Strategy {
	case AskMargin:
		return 1 - model.Margin(probs)
	case AskEntropy:
		return model.Entropy(probs)
	case AskBALD:
		return math.Sqrt(max(ws.BALD(p), 0) * (1 - model.Margin(probs)))
	}
	return 1
}

// Ask decides about the next sample, which has this score. Learnt is the number
// of samples in the model, now the time since any moment.
func (a *Asker) Ask(score float64, learnt uint64, now time.Duration) bool {
	noisy := math.Log(max(score, minAskScore)) - math.Log(-math.Log(a.rng.Float64()))/askGreed
	higher := 0
	for _, v := range a.latest {
		if v >= noisy {
			higher++
		}
	}
	known := len(a.latest)
	if known < askMemory {
		a.latest = append(a.latest, noisy)
	} else {
		a.latest[a.next] = noisy
		a.next = (a.next + 1) % askMemory
	}
	a.seen++
	if !a.affordable(now) {
		return false
	}
	share := a.share()
	if head := uint64(a.head()); a.asked < head && learnt < head {
		share = max(share, headShare)
	}
	if first := a.asked < minBuild && learnt < minBuild; !first && share < 1 && float64(higher) >= share*float64(known) {
		return false
	}
	a.asked++
	a.last = now
	return true
}

// affordable reports whether one question more is within the budgets.
func (a *Asker) affordable(now time.Duration) bool {
	if float64(a.asked+1) > a.Allowed() {
		return false
	}
	return a.how.PerHour == 0 || a.asked == 0 || now-a.last >= time.Duration(float64(time.Hour)/a.how.PerHour)
}

// head is the number of labels that a new model may have beyond the budget.
func (a *Asker) head() float64 { return max(headSamples*a.how.Budget, minHead) }

// Allowed is the number of questions that the samples seen so far allow.
func (a *Asker) Allowed() float64 {
	n := float64(a.seen)
	return min(max(a.how.Budget*n, a.head()+a.how.Budget*n/2), n)
}

// share is the fraction of the latest samples that one has to be among to be
// asked for: the budget, more if some of it is left over, less if the head
// start is still to be saved.
func (a *Asker) share() float64 {
	if a.how.Budget == 1 {
		return 1
	}
	left := a.how.Budget*float64(a.seen) - float64(a.asked)
	return a.how.Budget * max(1+left/(a.how.Budget*askMemory), minAskShare)
}

package active

import (
	"math"
	"math/rand/v2"
	"time"

	"edge/model"
)

const (
	headSamples = 2400 // samples whose budget a new model may spend at once
	minHead     = 20   // labels that a new model may have at least
	headShare   = 0.3  // of the latest samples that is selected meanwhile
	memory      = 300  // samples whose scores a new one is compared with
	greed       = 4.   // β: 0 selects at random, ∞ always the highest scores
	minScore    = 1e-12
	minShare    = 0.5 // of the budget that is spent at any time, while a part of it is saved

	// FirstLabels is the number of labels that a model needs to be built: a new model
	// requests each until it has them.
	FirstLabels = 8
)

// Selector decides, sample by sample and at once, whose label to request. A score
// is the worth of each label. A sample is selected where its noisy score
//
//	log s + G/β,   G a standard Gumbel variable
//
// is among the highest of the latest 300 samples, as many of them as the budget
// allows: neighbours in a stream are alike, so that the highest scores alone
// would all be those of one moment. Of n samples, at most
//
//	max(budget·n, max(2400·budget, 20) + budget·n/2)
//
// are selected: the first labels are worth most. One goroutine owns it; the same
// samples give the same decisions. Memory is fixed. No allocation.
//
// Source: Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal
// (2023), "Stochastic Batch Acquisition", for the noise; Houlsby, Huszár, Ghahramani &
// Lengyel (2011), "Bayesian Active Learning for Classification and Preference
// Learning", for BALD; Žliobaitė, Bifet,
// Pfahringer & Holmes (2014), "Active Learning With Drifting Streaming Data",
// for a budget on a stream.
type Selector struct {
	cfg            Config
	rng            *rand.Rand
	latest         []float64 // noisy scores, a ring
	next           int
	seen, selected uint64
	last           time.Duration // time of the latest request
}

// NewSelector returns a selector whose noise has the seed.
func NewSelector(cfg Config, seed uint64) *Selector {
	return &Selector{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0x61736b)), latest: make([]float64, 0, memory)}
}

// Score returns the strategy's score of the sample that p predicted last with ws: the higher,
// the more its label is worth. probs are the C probabilities of that prediction. The score is 0
// to 1 for margin, in nats for entropy, the square root of nats for bald, and 1 for random.
func (s *Selector) Score(probs []float64, p *model.Posterior, ws *model.Workspace) float64 {
	switch s.cfg.Strategy {
	case Margin:
		return 1 - model.Margin(probs)
	case Entropy:
		return model.Entropy(probs)
	case BALD:
		return math.Sqrt(max(ws.BALD(p), 0) * (1 - model.Margin(probs)))
	}
	return 1
}

// Select decides about the next sample, which has this score. Learnt is the number
// of samples in the model, now the time since any fixed moment.
func (s *Selector) Select(score float64, learnt uint64, now time.Duration) bool {
	noisy := math.Log(max(score, minScore)) - math.Log(-math.Log(s.rng.Float64()))/greed
	higher := 0
	for _, v := range s.latest {
		if v >= noisy {
			higher++
		}
	}
	known := len(s.latest)
	if known < memory {
		s.latest = append(s.latest, noisy)
	} else {
		s.latest[s.next] = noisy
		s.next = (s.next + 1) % memory
	}
	s.seen++
	if !s.affordable(now) {
		return false
	}
	share := s.share()
	if head := uint64(s.head()); s.selected < head && learnt < head {
		share = max(share, headShare)
	}
	if first := s.selected < FirstLabels && learnt < FirstLabels; !first && share < 1 && float64(higher) >= share*float64(known) {
		return false
	}
	s.selected++
	s.last = now
	return true
}

// affordable reports whether one request more is within the budgets.
func (s *Selector) affordable(now time.Duration) bool {
	if float64(s.selected+1) > s.Allowed() {
		return false
	}
	return s.cfg.PerHour == 0 || s.selected == 0 || float64(now-s.last)*s.cfg.PerHour >= float64(time.Hour)
}

// head is the number of labels that a new model may have beyond the budget.
func (s *Selector) head() float64 { return max(headSamples*s.cfg.Budget, minHead) }

// Allowed is the number of requests that the budget allows for the samples up to now.
func (s *Selector) Allowed() float64 {
	n := float64(s.seen)
	return min(max(s.cfg.Budget*n, s.head()+s.cfg.Budget*n/2), n)
}

// share is the fraction of the latest samples among which a sample has to be to be
// selected: the budget, more if a part of it is left over, less if the head start is
// still to be saved.
func (s *Selector) share() float64 {
	if s.cfg.Budget == 1 {
		return 1
	}
	left := s.cfg.Budget*float64(s.seen) - float64(s.selected)
	return s.cfg.Budget * max(1+left/(s.cfg.Budget*memory), minShare)
}

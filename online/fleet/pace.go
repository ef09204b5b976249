package fleet

// worthwhile is the part of a contribution's labels that is worth another contribution.
const worthwhile = 0.01

// Worthwhile reports whether a member publishes another contribution when no more labels come:
// it has at least 1 % more labels than its latest contribution, which has published.
func Worthwhile(labels, published uint64) bool {
	return labels > published && float64(labels-published) >= worthwhile*float64(published)
}

package fleet

// worthwhile is the part of a contribution's labels that is worth another contribution.
const worthwhile = 0.01

// Worthwhile reports whether a member of so many labels, whose latest contribution has
// published of them, publishes another one when its labels rest: it has at least 1 % more.
func Worthwhile(labels, published uint64) bool {
	return labels > published && float64(labels-published) >= worthwhile*float64(published)
}

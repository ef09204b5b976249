package report

// ClassBook numbers classes in the order of their first appearance. The zero
// value is ready.
type ClassBook struct {
	number map[string]int
	Names  []string
}

// ClassOf returns the number of a class, a new one at its first appearance. It is not inlined, which
// would make its many callers larger.
//
//go:noinline
func (b *ClassBook) ClassOf(name string) int {
	k, known := b.number[name]
	if !known {
		if b.number == nil {
			b.number = map[string]int{}
		}
		k = len(b.Names)
		b.number[name] = k
		b.Names = append(b.Names, name)
	}
	return k
}

// InOrder returns the probabilities of classes in the order of their numbers.
func (b *ClassBook) InOrder(classes []string, probs []float64) []float64 {
	for _, name := range classes {
		b.ClassOf(name)
	}
	now := make([]float64, len(b.Names))
	for i, name := range classes {
		now[b.number[name]] = probs[i]
	}
	return now
}

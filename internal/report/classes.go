package report

// ClassBook numbers classes in the order in which they are met.
type ClassBook struct {
	number map[string]int
	Names  []string
}

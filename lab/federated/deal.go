package federated

import "slices"

// dealer chooses the node of a row: in turn, or in turn among those that have the
// class.
type dealer struct {
	classes []string
	of      [][]int // nodes that have each class
	turn    []int   // of each class
}

func newDealer(cfg *Config, classes []string) *dealer {
	d := &dealer{classes: classes, of: make([][]int, len(classes)), turn: make([]int, len(classes))}
	if !cfg.ByClass {
		all := make([]int, cfg.Nodes)
		for i := range all {
			all[i] = i
		}
		d.classes, d.of, d.turn = []string{""}, [][]int{all}, []int{0}
		return d
	}
	// Node i has half of the classes, from class i·C/N on, so that neighbours share some.
	half := (len(classes) + 1) / 2
	for i := range cfg.Nodes {
		for j := range half {
			k := (i*len(classes)/cfg.Nodes + j) % len(classes)
			d.of[k] = append(d.of[k], i)
		}
	}
	return d
}

// node returns the node of the next row with that label.
func (d *dealer) node(label string) int {
	k := max(slices.Index(d.classes, label), 0)
	nodes := d.of[k]
	n := nodes[d.turn[k]%len(nodes)]
	d.turn[k]++
	return n
}

package membership

// information is that of the own labels, in nats: the sum of -log p(label) by the
// predictions made before they were learnt.
type information struct {
	total float64 // of all labels that the model's scores know
	last  float64 // total at the latest publication
	known bool    // last is
}

// observe takes the total. The first one counts as that of the latest publication, and so
// does one below that: a label was corrected, or the model is another one.
func (i *information) observe(total float64) {
	i.total = total
	if !i.known || !(total >= i.last) {
		i.published()
	}
}

// published notes a publication.
func (i *information) published() { i.last, i.known = i.total, true }

// since is the information since the latest publication.
func (i *information) since() float64 { return i.total - i.last }

package score

// kept is an Outcome in a third of its memory. Its numbers are rounded to 32 bits
// already, and a class index is below model.MaxClasses.
type kept struct {
	label, top, set                int16
	rule                           rule
	priorWrong, lastWrong, covered bool
	numbers                        [5]float32
}

func keep(o *Outcome) kept {
	k := kept{int16(o.Label), int16(o.Top), int16(o.set), o.rule, o.prior.wrong, o.last.wrong, o.covered, [5]float32{}}
	for i, x := range o.numbers() {
		k.numbers[i] = float32(*x)
	}
	return k
}

func (k *kept) outcome() Outcome {
	o := Outcome{Label: int(k.label), Top: int(k.top), set: int(k.set), rule: k.rule, covered: k.covered}
	o.prior.wrong, o.last.wrong = k.priorWrong, k.lastWrong
	for i, x := range o.numbers() {
		*x = float64(k.numbers[i])
	}
	return o
}

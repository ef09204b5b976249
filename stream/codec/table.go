package codec

// Row makes a reading of a row of a table, such as a CSV file, by the rules of the stream
// for values and labels. cells has a text for each configured signal, those of the input
// for the decoder of an input; an empty one is absent. The error is a *Refusal.
func (d *Decoder) Row(cells []string, label string) (Reading, error) {
	row := d.newCells()
	for i, text := range cells {
		if text == "" {
			continue
		}
		if err := row.feature(i, text); err != nil {
			return Reading{}, err
		}
	}
	if label != "" {
		if err := d.setLabel(&row.r, label); err != nil {
			return Reading{}, err
		}
	}
	r, err := row.reading()
	if err != nil {
		return Reading{}, err
	}
	return r, nil
}

package codec

import "strings"

// cells makes a reading from the named cells of a line.
type cells struct {
	*schema
	r      Reading
	x      []float64
	have   []bool
	n      int
	weight string   // "" if absent
	texts  []string // of the marks, "" for one that is absent
}

func (s *schema) newCells() *cells {
	c := &cells{schema: s, have: make([]bool, len(s.names)), texts: make([]string, len(s.marks))}
	if s.signals != nil {
		c.x = s.signals.newX(1)
	} else {
		c.x = make([]float64, len(s.names))
	}
	return c
}

// note notes a cell of which a mark speaks.
func (c *cells) note(name, text string) {
	for i := range c.marks {
		if PlainName(c.marks[i].path) == name {
			c.texts[i] = strings.Clone(text)
		}
	}
}

// text returns the text of mark i.
func (c *cells) text(i int) (string, bool) { return c.texts[i], c.texts[i] != "" }

// feature reads the text of feature i. It refuses a second one.
func (c *cells) feature(i int, text string) *Refusal {
	if c.have[i] {
		return Refuse(Repeated, "feature %.40q occurs twice", c.names[i])
	}
	if c.signals != nil {
		c.have[i] = true
		c.n++
		return c.signals.rules[i].text(c.x, text)
	}
	v, err := decimal(text)
	if err != nil {
		return Refuse(NotANumber, "feature %.40q: %w; signals in place of features read words and units", c.names[i], err)
	}
	c.x[i], c.have[i] = v, true
	c.n++
	return nil
}

// reading returns the reading of all cells.
func (c *cells) reading() (Reading, *Refusal) {
	if c.signals != nil {
		err := c.finish(&c.r, c.x, c.have, none)
		return c.r, err
	}
	if c.weight != "" {
		if err := c.setWeight(&c.r, c.weight); err != nil {
			return c.r, err
		}
	}
	if c.n == 0 && c.r.Label != "" && c.id != "" { // no feature: the label belongs to an earlier sample
		if c.r.ID == "" {
			return c.r, Refuse(BadID, "a label without features and without %s", c.id)
		}
		return c.r, nil
	}
	if err := c.fillMissing(c.x, c.have); err != nil {
		return c.r, err
	}
	c.r.X = c.x
	return c.r, nil
}

// append adds a reading to those of a payload, within the bound of a batch, if it is selected.
func (s *schema) append(all []Reading, c *cells) ([]Reading, *Refusal) {
	if !s.marks.selects(c.text) {
		return all, nil
	}
	if len(all) == s.maxBatch {
		return nil, s.tooMany()
	}
	r, err := c.reading()
	if err == nil && r.X != nil {
		r.Device, err = s.marks.device(c.text, none)
	}
	if err != nil {
		return nil, err
	}
	return append(all, r), nil
}

// device returns the device of a line, "" where it names none.
func (c *cells) device() string {
	name, _ := c.marks.device(c.text, none)
	return name
}

// onLine puts the line of the payload before the cause of a refusal.
func onLine(err *Refusal, line int) *Refusal {
	return Refuse(err.Reason, "line %d: %w", line, err.Err).of(err.Devices...)
}

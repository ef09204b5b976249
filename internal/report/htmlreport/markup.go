package htmlreport

import (
	"html"
	"strings"
)

// markup builds HTML. Every text and attribute value is escaped, names of elements
// and attributes are constants. (html/template would add 2.9 MiB to
// the arm64 program: it calls methods by name, which keeps the linker from dropping
// unused ones.)
type markup struct{ b strings.Builder }

// in writes an element whose content do writes; attributes are names and values in
// turn, and one with an empty value is left out.
func (m *markup) in(name string, do func(), attributes ...string) {
	m.b.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			m.b.WriteString(" " + attributes[i] + `="` + html.EscapeString(attributes[i+1]) + `"`)
		}
	}
	m.b.WriteString(">")
	do()
	m.b.WriteString("</" + name + ">")
}

// el writes an element that contains a text. It is not inlined: each call would make a function.
//
//go:noinline
func (m *markup) el(name, text string, attributes ...string) {
	m.in(name, func() { m.text(text) }, attributes...)
}

func (m *markup) text(s string) { m.b.WriteString(html.EscapeString(s)) }

// line ends a line, so that the source of the page is readable. Like el it is not inlined.
//
//go:noinline
func (m *markup) line() { m.b.WriteByte('\n') }

func (m *markup) chart(c *chart) {
	m.in("h3", func() {
		m.text(c.Title + " ")
		m.el("small", c.Note)
	}, "id", c.ID)
	m.line()
	m.in("figure", func() {
		if c.Plot != nil {
			m.plot(c.Plot)
		}
		if c.Matrix != nil {
			m.matrix(c.Matrix)
		}
		if len(c.Key) > 0 {
			m.in("ul", func() {
				for _, k := range c.Key {
					m.in("li", func() {
						m.el("i", "", "class", k.Style)
						m.text(k.Text)
					})
				}
			}, "class", "key")
			m.line()
		}
		m.el("figcaption", c.Sentence)
	})
	m.line()
	if c.Table != nil {
		m.details("As a table", func() { m.table(c.Table) })
	}
}

// details writes a part that the reader opens.
func (m *markup) details(summary string, do func()) {
	m.in("details", func() {
		m.el("summary", summary)
		m.in("div", do, "class", "scroll", "tabindex", "0", "role", "region", "aria-label", summary)
	})
	m.line()
}

func (m *markup) table(t *table) {
	m.in("table", func() {
		m.in("thead", func() {
			m.in("tr", func() {
				for _, h := range t.Head {
					m.el("th", h, "scope", "col")
				}
			})
		})
		m.line()
		m.in("tbody", func() {
			for _, row := range t.Rows {
				m.in("tr", func() {
					for _, c := range row {
						m.in("td", func() { m.cell(c, "") })
					}
				})
				m.line()
			}
		})
	}, "class", t.Style)
}

// cell writes a text, and with it every digit of a number.
func (m *markup) cell(c cell, class string) {
	if c.Value == "" {
		m.text(c.Text)
		return
	}
	m.el("data", c.Text, "class", class, "value", c.Value)
}

func (m *markup) matrix(x *matrix) {
	m.in("div", func() {
		m.in("table", func() {
			m.el("caption", "Columns: predicted class")
			m.in("thead", func() {
				m.in("tr", func() {
					m.el("th", "Label", "scope", "col")
					for _, c := range x.Classes {
						m.el("th", c, "scope", "col", "title", c)
					}
				})
			})
			m.line()
			m.in("tbody", func() {
				for _, row := range x.Rows {
					m.in("tr", func() {
						m.el("th", row.Label, "scope", "row", "title", row.Label)
						for _, c := range row.Cells {
							m.el("td", c.Text, "class", c.Style, "style", c.Share, "title", c.Title)
						}
					})
					m.line()
				}
			})
		}, "class", "matrix")
	}, "class", "scroll", "tabindex", "0", "role", "region", "aria-label", "Confusion matrix")
	m.line()
}

func (m *markup) plot(p *plot) {
	label := func(text string, x, y px, anchor string) {
		m.el("text", text, "x", x.String(), "y", y.String(), "text-anchor", anchor)
	}
	stroke := func(style string, x1, y1, x2, y2 px) {
		m.el("line", "", "class", style, "x1", x1.String(), "y1", y1.String(), "x2", x2.String(), "y2", y2.String())
	}
	m.in("svg", func() {
		for _, t := range p.YTicks {
			stroke("grid", p.Left, t.At, p.Right, t.At)
			label(t.Text, p.Left-6, t.At+4, "end")
		}
		for _, t := range p.XTicks {
			stroke("grid", t.At, p.Top, t.At, p.Bottom)
			label(t.Text, t.At, p.Bottom+16, "middle")
		}
		m.line()
		stroke("axis", p.Left, p.Bottom, p.Right, p.Bottom)
		stroke("axis", p.Left, p.Top, p.Left, p.Bottom)
		label(p.XName, (p.Left+p.Right)/2, p.Height-8, "middle")
		if p.YName != "" {
			m.el("text", p.YName, "transform", "translate(12 "+((p.Top+p.Bottom)/2).String()+") rotate(-90)", "text-anchor", "middle")
		}
		m.line()
		for _, n := range p.Names {
			m.in("text", func() {
				m.text(n.Text)
				m.el("title", n.Full)
			}, "x", (p.Left - 8).String(), "y", n.At.String(), "text-anchor", "end")
		}
		for _, b := range p.Bars {
			m.in("rect", func() { m.el("title", b.Title) }, "class", b.Style, "x", b.X.String(), "y", b.Y.String(), "width", b.Width.String(), "height", b.Height.String())
		}
		for _, l := range p.Lines {
			m.el("path", "", "class", l.Style, "d", l.Path)
		}
		for _, d := range p.Dots {
			if d.Foot > 0 {
				stroke("gap", d.X, d.Foot, d.X, d.Y)
			}
			m.in("circle", func() { m.el("title", d.Title) }, "class", d.Style, "cx", d.X.String(), "cy", d.Y.String(), "r", d.R.String())
		}
	}, "viewBox", "0 0 "+p.Width.String()+" "+p.Height.String(), "role", "img", "aria-label", p.Label)
	m.line()
}

package chart

import "fmt"

// Timeline is bars that stand where and as wide as they took, and spans of time under them.
type Timeline struct {
	Title, Note string
	X, Y        string   // what the axes are, with their units
	Kinds       []string // what the colours of bars are
	Bars        []Bar
	Rows        []Row
	End         float64 // of the axis, which begins at 0
}

// Bar is one, of a height and a kind.
type Bar struct {
	From, To, Height float64
	Kind             int
}

// Row is spans of one kind, and what they are.
type Row struct {
	Name  string
	Spans [][2]float64
}

func (t *Timeline) title() string { return t.Title }

func (t *Timeline) describe() string {
	s := fmt.Sprintf("%d bars over %s: %s.", len(t.Bars), t.X, t.Y)
	for _, r := range t.Rows {
		s += fmt.Sprintf(" %s: %d.", r.Name, len(r.Spans))
	}
	return s
}

func (t *Timeline) height(width float64) float64 {
	return titled(t.Note, width) + 26 + 190 + 42*float64(len(t.Rows)) + 56
}

func (t *Timeline) draw(c *canvas, width, height float64) {
	top := c.title(t.Title, t.Note, width)
	at := 0.0
	for i, name := range t.Kinds {
		c.printf(`<rect class="c%d" x="%s" y="%s" width="12" height="12" fill="currentColor"/>`, i%colours, px(at), px(top+2))
		c.text(at+18, top+12, "", name)
		at += 18 + textWidth(name) + 24
	}
	top += 44
	most := []float64{0}
	for _, b := range t.Bars {
		most = append(most, b.Height)
	}
	bottom := height - 56 - 42*float64(len(t.Rows))
	y := upward(most, bottom, top)
	left := 0.0
	for _, v := range y.ticks {
		left = max(left, textWidth(Number(v))+10)
	}
	x := upward([]float64{t.End}, left, width)
	x.high = t.End
	for len(x.ticks) > 1 && x.ticks[len(x.ticks)-1] > t.End {
		x.ticks = x.ticks[:len(x.ticks)-1]
	}
	c.axes(&x, &y, left, width, t.X, t.Y)
	for _, b := range t.Bars {
		from, to := x.at(b.From), x.at(b.To)
		c.printf(`<rect class="c%d" x="%.2f" y="%s" width="%.2f" height="%s" fill="currentColor"/>`+"\n",
			b.Kind%colours, from, px(y.at(b.Height)), max(to-from-0.1, 0.2), px(bottom-y.at(b.Height)))
	}
	for i, r := range t.Rows {
		from := bottom + 52 + 42*float64(i)
		for _, s := range r.Spans {
			c.printf(`<rect class="c%d" x="%s" y="%s" width="%s" height="12" fill="currentColor"/>`, (len(t.Kinds)+i)%colours, px(x.at(s[0])), px(from), px(max(x.at(s[1])-x.at(s[0]), 1.5)))
		}
		c.text(left, from+27, "s", r.Name)
	}
}

package chart

import (
	"fmt"
	"strings"
)

// Ranges is a row for each thing that was measured, with marks at its percentiles.
type Ranges struct {
	Title, Note string
	X           string   // what the axis is, with its unit
	Marks       []string // what the marks are, from left to right
	Limit       string   // what the line across a row is; "": there is none
	Rows        []Range
}

// Range is one row.
type Range struct {
	Name   string
	Values []float64 // one for each of Marks
	Limit  float64   // 0: unknown
}

func (r *Ranges) title() string { return r.Title }

func (r *Ranges) describe() string {
	var all []string
	for _, row := range r.Rows {
		var marks []string
		for i, v := range row.Values {
			marks = append(marks, r.Marks[i]+" "+Number(v))
		}
		if row.Limit > 0 {
			marks = append(marks, r.Limit+" "+Number(row.Limit))
		}
		all = append(all, row.Name+": "+strings.Join(marks, ", "))
	}
	return r.X + ". " + strings.Join(all, "; ") + "."
}

const rowHeight = 26.0

func (r *Ranges) height(width float64) float64 {
	return titled(r.Note, width) + 28 + rowHeight*float64(len(r.Rows)) + 48
}

func (r *Ranges) draw(c *canvas, width, _ float64) {
	top := c.title(r.Title, r.Note, width)
	at := 4.0
	for i, name := range r.Marks {
		c.printf(`<g class="c%d">`, i%colours)
		c.mark(i, at, top+8, "")
		c.printf("</g>")
		c.text(at+12, top+12, "", name)
		at += textWidth(name) + 40
	}
	if r.Limit != "" {
		c.printf(`<path class="n" d="M%s %sv14" stroke="currentColor" stroke-width="2.5"/>`, px(at), px(top+1))
		c.text(at+10, top+12, "", r.Limit)
	}
	top += 28
	var names []string
	var values []float64
	for _, row := range r.Rows {
		names, values = append(names, row.Name), append(values, row.Values...)
		if row.Limit > 0 {
			values = append(values, row.Limit)
		}
	}
	if len(values) == 0 {
		return
	}
	left := nameWidth(names, width)
	x := upward(values, left+8, width-20)
	bottom := top + rowHeight*float64(len(r.Rows)) + 4
	what := r.X
	if x.log {
		what += ", logarithmic"
	}
	c.under(&x, top, bottom, what, "")
	for i, row := range r.Rows {
		y := top + rowHeight*(float64(i)+0.5)
		c.name(left, y, row.Name)
		c.printf(`<path class="n" d="M%s %sH%s" stroke="currentColor" stroke-width="1.5"/>`, px(x.at(row.Values[0])), px(y), px(x.at(row.Values[len(row.Values)-1])))
		if row.Limit > 0 {
			c.printf(`<path class="n" d="M%s %sv14" stroke="currentColor" stroke-width="2.5"/>`, px(x.at(row.Limit)), px(y-7))
		}
		for j, v := range row.Values {
			c.printf(`<g class="c%d">`, j%colours)
			c.mark(j, x.at(v), y, fmt.Sprintf("%s, %s: %s", row.Name, r.Marks[j], Number(v)))
			c.printf("</g>")
		}
	}
}

// Shares is a bar for each thing that was measured, of what a limit allows.
type Shares struct {
	Title, Note string
	X           string // what the whole is
	Rows        []Share
}

// Share is one bar.
type Share struct {
	Name    string
	Percent float64
	Text    string // behind the bar
}

func (s *Shares) title() string { return s.Title }

func (s *Shares) describe() string {
	var all []string
	for _, row := range s.Rows {
		all = append(all, row.Name+": "+row.Text)
	}
	return s.X + ". " + strings.Join(all, "; ") + "."
}

func (s *Shares) height(width float64) float64 {
	return titled(s.Note, width) + rowHeight*float64(len(s.Rows)) + 48
}

func (s *Shares) draw(c *canvas, width, _ float64) {
	top := c.title(s.Title, s.Note, width)
	names, values, behind := []string{}, []float64{100}, 0.0
	for _, row := range s.Rows {
		names, values = append(names, row.Name), append(values, row.Percent)
		behind = max(behind, textWidth(row.Text))
	}
	left := nameWidth(names, width)
	x := upward(values, left+8, width-20)
	bottom := top + rowHeight*float64(len(s.Rows)) + 4
	c.under(&x, top, bottom, s.X, " %")
	for i, row := range s.Rows {
		y := top + rowHeight*(float64(i)+0.5)
		c.name(left, y, row.Name)
		end := x.at(row.Percent)
		c.printf(`<rect class="c0" x="%s" y="%s" width="%s" height="14" rx="2" fill="currentColor"/>`, px(x.from), px(y-7), px(max(end-x.from, 1)))
		if end+8+textWidth(row.Text) <= width { // beside the bar, or in it
			c.text(end+8, y+4, "", row.Text)
		} else {
			c.printf(`<text class="p e" x="%s" y="%s">%s</text>`, px(end-6), px(y+4), escape(row.Text))
		}
	}
}

// nameWidth is the room that the names of rows take.
func nameWidth(names []string, width float64) float64 {
	n := 0.0
	for _, s := range names {
		n = max(n, textWidth(s))
	}
	return min(n, width/2)
}

// name writes the name of a row, cut where it is too long.
func (c *canvas) name(right, y float64, s string) {
	for r := []rune(s); textWidth(s) > right && len(r) > 1; {
		r = r[:len(r)-1]
		s = string(r) + "…"
	}
	c.text(right, y+4, "e", s)
}

// under draws the axis under rows, and its lines through them.
func (c *canvas) under(x *scale, top, bottom float64, what, unit string) {
	for _, t := range x.ticks {
		c.line("g", x.at(t), top, x.at(t), bottom)
		c.text(x.at(t), bottom+17, "s m", Number(t)+unit)
	}
	c.line("x", x.from, bottom, x.to, bottom)
	c.text((x.from+x.to)/2, bottom+35, "s m", what)
}

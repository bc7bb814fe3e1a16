package chart

import (
	"fmt"
	"strings"
)

// Plot is lines over an axis.
type Plot struct {
	Title, Note string
	X, Y        string // what the axes are, with their units
	Lines       []Line
	Limit       string // what dashed lines are; "": there are none
}

// Line is points from left to right.
type Line struct {
	Name   string
	Points []Point
	Limit  bool // dashed, in the colour of the line before it, and not named
}

// Point is a measurement. From Low to High, if that is more than Low, there is a whisker.
type Point struct{ X, Y, Low, High float64 }

// HasShape reports whether a line has two places at least: fewer are no line.
func (p *Plot) HasShape() bool {
	for _, l := range p.Lines {
		var x []float64
		for _, at := range l.Points {
			x = append(x, at.X)
		}
		if len(distinct(x)) > 1 {
			return true
		}
	}
	return false
}

func (p *Plot) title() string { return p.Title }

func (p *Plot) describe() string {
	var all []string
	for _, l := range p.Lines {
		if l.Limit {
			continue
		}
		var points []string
		for _, at := range l.Points {
			points = append(points, fmt.Sprintf("%s at %s", Number(at.Y), Number(at.X)))
		}
		all = append(all, l.Name+": "+strings.Join(points, ", "))
	}
	return p.Y + " by " + p.X + ". " + strings.Join(all, "; ") + "."
}

// entry is a line of the legend at its place.
type entry struct {
	name   string
	colour int // -1: the one of dashed lines
	x, y   float64
}

const sample = 28.0 // width of a legend's line, and the space behind it

// legend places the names of lines in rows, and gives their height.
func (p *Plot) legend(width float64) (entries []entry, height float64) {
	x, y := 0.0, 0.0
	add := func(name string, colour int) {
		if x > 0 && x+sample+textWidth(name) > width {
			x, y = 0, y+18
		}
		entries = append(entries, entry{name, colour, x, y})
		x += sample + textWidth(name) + 18
	}
	n := 0
	for _, l := range p.Lines {
		if !l.Limit {
			add(l.Name, n)
			n++
		}
	}
	if p.Limit != "" {
		add(p.Limit, -1)
	}
	return entries, y + 18
}

func (p *Plot) height(width float64) float64 {
	_, legend := p.legend(width)
	return titled(p.Note, width) + legend + 290
}

func (p *Plot) draw(c *canvas, width, height float64) {
	top := c.title(p.Title, p.Note, width)
	entries, legend := p.legend(width)
	for _, e := range entries {
		y := top + e.y + 8
		if e.colour < 0 {
			c.printf(`<path class="n" d="M%s %sh20" stroke="currentColor" stroke-width="1.5" stroke-dasharray="5 4"/>`, px(e.x), px(y))
		} else {
			c.printf(`<g class="c%d"><path d="M%s %sh20" stroke="currentColor" stroke-width="2"/>`, e.colour%colours, px(e.x), px(y))
			c.mark(e.colour, e.x+10, y, "")
			c.printf("</g>")
		}
		c.text(e.x+sample-2, y+4, "", e.name)
	}
	top += legend + 26
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, at := range l.Points {
			xs, ys = append(xs, at.X), append(ys, at.Y)
			if at.High > at.Low {
				ys = append(ys, at.High)
			}
		}
	}
	if len(xs) == 0 {
		return
	}
	bottom := height - 42
	y := upward(ys, bottom, top)
	left := 0.0
	for _, t := range y.ticks {
		left = max(left, textWidth(Number(t))+10)
	}
	inset := 14.0 // marks at both ends stand free of the frame
	x := across(xs, left+inset, width-inset-8)
	c.axes(&x, &y, left, width, p.X, p.Y)
	c.lines(p, &x, &y)
}

// axes draws ticks, their labels and the frame.
func (c *canvas) axes(x, y *scale, left, width float64, across, upward string) {
	if y.log {
		upward += ", logarithmic"
	}
	c.text(0, y.to-12, "s", upward)
	for _, t := range y.ticks {
		at := y.at(t)
		c.line("g", left, at, width, at)
		c.text(left-8, at+4, "s e", Number(t))
	}
	c.line("x", left, y.from, width, y.from)
	for _, t := range x.ticks {
		c.line("x", x.at(t), y.from, x.at(t), y.from+5)
		c.text(x.at(t), y.from+19, "s m", Number(t))
	}
	c.text((left+width)/2, y.from+37, "s m", across)
}

// lines draws them, limits first, so that they lie below.
func (c *canvas) lines(p *Plot, x, y *scale) {
	colour := make([]int, len(p.Lines))
	n := -1
	for i, l := range p.Lines {
		if !l.Limit {
			n++
		}
		colour[i] = max(n, 0)
	}
	for _, limits := range []bool{true, false} {
		for i, l := range p.Lines {
			if l.Limit != limits {
				continue
			}
			c.printf(`<g class="c%d" stroke="currentColor" fill="none"`, colour[i]%colours)
			if limits {
				c.printf(` stroke-width="1.5" stroke-dasharray="5 4" opacity=".75"`)
			} else {
				c.printf(` stroke-width="2" stroke-linejoin="round"`)
			}
			c.printf(`><path d="`)
			for j, at := range l.Points {
				c.printf("%c%s %s", "ML"[min(j, 1)], px(x.at(at.X)), px(y.at(at.Y)))
			}
			c.printf(`"/>`)
			if !limits {
				c.points(colour[i], l, x, y)
			}
			c.printf("</g>\n")
		}
	}
}

// points are the marks of a line, with their whiskers.
func (c *canvas) points(n int, l Line, x, y *scale) {
	for _, at := range l.Points {
		tip := fmt.Sprintf("%s: %s at %s", l.Name, Number(at.Y), Number(at.X))
		if at.High > at.Low {
			low := max(at.Low, y.low)
			c.printf(`<path d="M%s %sV%s" stroke-width="1.2"/>`, px(x.at(at.X)), px(y.at(low)), px(y.at(at.High)))
			tip += fmt.Sprintf(", %s to %s", Number(at.Low), Number(at.High))
		}
		c.printf(`<g stroke="none">`)
		c.mark(n, x.at(at.X), y.at(at.Y), tip)
		c.printf("</g>")
	}
}

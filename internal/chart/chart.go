// Package chart draws measurements: lines over an axis, shares of a limit, percentiles and the steps of an engine, as SVG that is
// readable on light and dark pages, and as a page of HTML that needs nothing else. Package bench calls it. It knows how to draw
// and not what is measured; it never rounds a figure but in the text of a label.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Drawing is panels in two columns, with a title above.
type Drawing struct {
	Title  string
	Facts  []string // lines under the title: what was measured, and on what
	Panels []Panel
}

// Panel is one chart. Sizes are in pixels of the drawing.
type Panel interface {
	// title is what stands above it, describe what it shows, in words for those who do not see it.
	title() string
	describe() string
	// height is what it needs at a width.
	height(width float64) float64
	draw(c *canvas, width, height float64)
}

const (
	column = 560.0 // width of a panel
	gap    = 20.0  // between panels, and around them
)

// style is the look of every drawing. Colours of lines and marks are those that people who confuse red and green tell apart.
const style = `text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}` +
	`.h{font-size:14px;font-weight:600}.H{font-size:18px;font-weight:600}.s{fill:#57606a}.e{text-anchor:end}.m{text-anchor:middle}` +
	`.p{fill:#fff}.g{stroke:#e1e4e8}.x{stroke:#8c959f}.n{color:#57606a}` +
	`.c0{color:#0b62c4}.c1{color:#b35900}.c2{color:#1a7f37}.c3{color:#8250df}.c4{color:#bf3989}.c5{color:#0b7285}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9aa4af}.p{fill:#0d1117}.g{stroke:#2b313a}.x{stroke:#6e7681}.n{color:#9aa4af}` +
	`.c0{color:#6cb6ff}.c1{color:#f0a35e}.c2{color:#57c97a}.c3{color:#c297ff}.c4{color:#ff80c8}.c5{color:#56d4dd}}`

const colours = 6

// SVG is the drawing as a file of its own.
func (d *Drawing) SVG() []byte {
	columns := min(2, max(1, len(d.Panels)))
	width := float64(columns)*(column+gap) + gap
	across := column // of a panel
	if len(d.Panels) == 1 && isWide(d.Panels[0]) {
		across = 2*column + gap
		width = across + 2*gap
	}
	var facts []string
	for _, f := range d.Facts {
		facts = append(facts, wrap(f, width-2*gap)...)
	}
	top := 38 + 17*float64(len(facts))
	type place struct{ x, y, width, height float64 }
	var places []place
	y := top + gap
	for i := 0; i < len(d.Panels); i += columns {
		row := d.Panels[i:min(i+columns, len(d.Panels))]
		tallest := 0.0
		for _, p := range row {
			tallest = max(tallest, p.height(across))
		}
		for j := range row {
			places = append(places, place{gap + float64(j)*(column+gap), y, across, tallest})
		}
		y += tallest + gap
	}
	c := &canvas{}
	c.open(width, y, d.Title, d.describe(), "")
	c.printf(`<rect class="p" width="%s" height="%s"/>`, px(width), px(y))
	c.text(gap, 30, "H", d.Title)
	for i, f := range facts {
		c.text(gap, 50+17*float64(i), "s", f)
	}
	for i, p := range d.Panels {
		at := places[i]
		c.printf(`<g transform="translate(%s %s)">`, px(at.x), px(at.y))
		p.draw(c, at.width, at.height)
		c.printf("</g>\n")
	}
	c.printf("</svg>\n")
	return c.Bytes()
}

// isWide reports whether a panel that stands alone takes both columns.
func isWide(p Panel) bool { _, ok := p.(*Timeline); return ok }

// describe is what all panels show.
func (d *Drawing) describe() string {
	var all []string
	for _, p := range d.Panels {
		all = append(all, p.title()+". "+p.describe())
	}
	return strings.Join(all, " ")
}

// canvas is SVG that is being written.
type canvas struct{ bytes.Buffer }

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// open begins an image with what is read out of it. The ids of the two texts end in id, which tells images of a page apart.
func (c *canvas) open(width, height float64, title, desc, id string) {
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-labelledby="title%[3]s desc%[3]s">`, px(width), px(height), id)
	c.printf("<title id=\"title%s\">%s</title><desc id=\"desc%s\">%s</desc>\n", id, escape(title), id, escape(desc))
	if id == "" { // a page has it once
		c.printf("<style>%s</style>\n", style)
	}
}

// text writes s with its left end at x, or where the class has it.
func (c *canvas) text(x, y float64, class, s string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	c.printf(`<text x="%s" y="%s"%s>%s</text>`, px(x), px(y), class, escape(s))
}

func (c *canvas) line(class string, x0, y0, x1, y1 float64) {
	c.printf(`<path class="%s" d="M%s %sL%s %s"/>`, class, px(x0), px(y0), px(x1), px(y1))
}

// mark draws the mark of the n-th line around a point, with a text that shows when it is pointed at.
func (c *canvas) mark(n int, x, y float64, tip string) {
	shape := ""
	switch n % 5 {
	case 0:
		shape = fmt.Sprintf(`<circle cx="%s" cy="%s" r="3.5" fill="currentColor"`, px(x), px(y))
	case 1:
		shape = fmt.Sprintf(`<rect x="%s" y="%s" width="6.4" height="6.4" fill="currentColor"`, px(x-3.2), px(y-3.2))
	case 2:
		shape = fmt.Sprintf(`<path d="M%s %sl4.6 4.6l-4.6 4.6l-4.6-4.6z" fill="currentColor"`, px(x), px(y-4.6))
	case 3:
		shape = fmt.Sprintf(`<path d="M%s %sl4.5 7.6h-9z" fill="currentColor"`, px(x), px(y-4.6))
	case 4:
		shape = fmt.Sprintf(`<path d="M%s %sl4.5-7.6h-9z" fill="currentColor"`, px(x), px(y+4.6))
	}
	if tip == "" {
		c.printf("%s/>", shape)
		return
	}
	c.printf("%s><title>%s</title>", shape, escape(tip))
	c.printf("</%s>", shape[1:strings.IndexByte(shape, ' ')])
}

// title writes what stands above a panel, and gives the height that is left below.
func (c *canvas) title(title, note string, width float64) float64 {
	c.text(0, 14, "h", title)
	y := 26.0
	for _, line := range wrap(note, width) {
		y += 16
		c.text(0, y-8, "s", line)
	}
	return y
}

// titled is the height of title.
func titled(note string, width float64) float64 { return 26 + 16*float64(len(wrap(note, width))) }

// px is a number of pixels, to a tenth.
func px(x float64) string { return strconv.FormatFloat(math.Round(10*x)/10, 'f', -1, 64) }

// escape is s as text of XML and HTML: what they cannot have is a replacement character.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
	return b.String()
}

// textWidth is how wide a text is at most, in the widest of the letters that systems have for this.
func textWidth(s string) float64 {
	n := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfI.,:;'|()[] ", r):
			n += 4
		case r >= 'A' && r <= 'Z' || strings.ContainsRune("mwMW%", r):
			n += 9
		default:
			n += 7.5
		}
	}
	return n
}

// wrap breaks a text into lines of at most a width.
func wrap(s string, width float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && textWidth(line+" "+word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Number is a figure as labels have it: three digits, thousands grouped.
func Number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e15 || math.IsNaN(x):
		return strconv.FormatFloat(x, 'g', 3, 64)
	case a >= 999.5:
		s := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case a >= 100:
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(significant(x), 'f', -1, 64)
}

// significant is x to three digits.
func significant(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64) // its own output
	return y
}

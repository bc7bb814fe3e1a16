package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wellFormed fails if data is not XML.
func wellFormed(t *testing.T, data []byte) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, data)
		}
	}
}

// hostile is a name that whoever serves a model may have made up.
const hostile = "</title><script>alert(1)</script>\x00\xff\" onload='x' &amp;"

func panels(name string) []Panel {
	return []Panel{
		&Plot{Title: name, Note: name, X: name, Y: name, Limit: name, Lines: []Line{
			{Name: name, Points: []Point{{X: 1, Y: 100, Low: 90, High: 120}, {X: 8, Y: 400}}},
			{Limit: true, Points: []Point{{X: 1, Y: 150}, {X: 8, Y: 900}}},
			{Name: "other", Points: []Point{{X: 2, Y: 50}}}}},
		&Ranges{Title: name, Note: name, X: name, Marks: []string{name, "p99"}, Limit: name, Rows: []Range{{name, []float64{1, 900}, 0.5}, {"b", []float64{0, 0}, 0}}},
		&Shares{Title: name, Note: name, X: name, Rows: []Share{{name, 140, name}, {"b", 0, ""}}},
		&Timeline{Title: name, Note: name, X: name, Y: name, Kinds: []string{name}, Bars: []Bar{{0, 0.5, 20, 0}}, Rows: []Row{{name, [][2]float64{{0, 1}}}}, End: 3},
	}
}

// TestText: names are text wherever they stand, whatever is in them, and what was measured is told to those who do not see it.
func TestText(t *testing.T) {
	p := Page{Drawing: Drawing{Title: hostile, Facts: []string{hostile}, Panels: panels(hostile)}, About: [][2]string{{"command", hostile}, {hostile, hostile}},
		Tables: []Table{{hostile, []string{hostile}, [][]string{{hostile}}}}}
	svg, page := p.SVG(), string(p.HTML())
	wellFormed(t, svg)
	for _, s := range []string{string(svg), page} {
		if strings.Contains(s, "<script") || strings.Contains(s, "\x00") || strings.Contains(s, `" onload`) {
			t.Errorf("a name is markup: %s", s)
		}
		if !strings.Contains(s, "100 at 1, 400 at 8") || !strings.Contains(s, "900") {
			t.Errorf("figures are not told: %s", s)
		}
	}
	wellFormed(t, []byte(regexp.MustCompile(`<!doctype html>|<meta[^>]*>`).ReplaceAllString(page, "")))
	if strings.Contains(page, "http") && strings.Count(page, "http") != strings.Count(page, "http://www.w3.org/2000/svg") {
		t.Error("the page loads something")
	}
	for _, p := range panels("a") {
		one := Drawing{Title: "one", Panels: []Panel{p}}
		wellFormed(t, one.SVG())
	}
	empty := Page{Drawing: Drawing{Panels: []Panel{&Plot{}, &Ranges{}, &Shares{}, &Timeline{}}}}
	wellFormed(t, empty.SVG())
}

// TestInside: nothing is drawn outside its panel, and every id of a page is one element's.
func TestInside(t *testing.T) {
	p := Page{Drawing: Drawing{Title: "all", Panels: panels("some name that is a little longer")}}
	svg := string(p.SVG())
	var width, height float64
	if _, err := fmt.Sscanf(svg[strings.Index(svg, "viewBox"):], `viewBox="0 0 %g %g"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(` (x|y)="([-0-9.]+)"`).FindAllStringSubmatch(svg, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if most := map[string]float64{"x": column, "y": height}[m[1]]; err != nil || v < 0 || v > most+2*gap {
			t.Errorf("%s=%s of a panel that is %g wide, in a drawing %g high", m[1], m[2], column, height)
		}
	}
	var ids []string
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(string(p.HTML()), -1) {
		ids = append(ids, m[1])
	}
	if n := len(ids); n != 2*len(p.Panels) || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != n {
		t.Errorf("ids %v", ids)
	}
}

func TestAxes(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		log    bool
		want   string
	}{
		{[]float64{3, 9}, false, "0 2 4 6 8 10"},
		{[]float64{0, 795}, false, "0 200 400 600 800"},
		{[]float64{800, 1000}, false, "0 200 400 600 800 1000"},
		{[]float64{0.0012, 0.004}, false, "0 0.001 0.002 0.003 0.004"},
		{[]float64{10, 3000}, true, "10 20 50 100 200 500 1000 2000 5000"},
		{[]float64{3, 1e6}, true, "1 10 100 1000 10000 100000 1000000"},
		{[]float64{7, 300}, true, "5 10 20 50 100 200 500"},
	} {
		s := upward(tt.values, 300, 0)
		var got []string
		for _, v := range s.ticks {
			got = append(got, strconv.FormatFloat(significant(v), 'f', -1, 64))
			if at := s.at(v); at < -1e-6 || at > 300+1e-6 {
				t.Errorf("%v: tick %g at %g", tt.values, v, at)
			}
		}
		if strings.Join(got, " ") != tt.want || s.log != tt.log {
			t.Errorf("%v: ticks %v, logarithmic %v, want %s", tt.values, got, s.log, tt.want)
		}
		for _, v := range tt.values {
			if at := s.at(v); at < -1e-6 || at > 300+1e-6 {
				t.Errorf("%v: %g is at %g", tt.values, v, at)
			}
		}
	}
	if s := upward([]float64{0, 0}, 300, 0); s.at(0) != 300 || len(s.ticks) < 2 {
		t.Errorf("nothing but zero: %+v", s)
	}
	x := across([]float64{4096, 1, 2, 4, 4090, 1}, 0, 400)
	if !x.log || x.at(1) != 0 || math.Abs(x.at(4096)-400) > 1e-9 || !slices.Equal(x.ticks, []float64{4096, 4, 2, 1}) {
		t.Errorf("across: %+v", x)
	}
	if one := across([]float64{5, 5}, 0, 400); one.at(5) != 200 {
		t.Errorf("a single place is at %g", one.at(5))
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1.0: "1", 12.345: "12.3", 0.00123456: "0.00123", 999.6: "1,000", 133.4: "133", 1234.5: "1,235", 131072: "131,072",
		-1234567: "-1,234,567", -0.5: "-0.5", 1e20: "1e+20"} {
		if got := Number(x); got != want {
			t.Errorf("%g is %q, want %q", x, got, want)
		}
	}
}

func TestHasShape(t *testing.T) {
	flat := Plot{Lines: []Line{{Points: []Point{{X: 1, Y: 1}, {X: 1, Y: 2}}}, {Points: []Point{{X: 2, Y: 1}}}}}
	if flat.HasShape() {
		t.Error("points at one place each are no line")
	}
	flat.Lines[1].Points = append(flat.Lines[1].Points, Point{X: 3, Y: 1})
	if !flat.HasShape() {
		t.Error("two places are one")
	}
}

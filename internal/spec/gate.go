package spec

import "math"

// Costs is what steps of so many rows take, learned from steps that ran anyway. It knows ratios: what all steps have in common,
// as the depth of their sequences, is in scale. Until steps of some rows have run, they are guessed from those that are nearest.
type Costs struct {
	scale float64 // microseconds per unit of rel
	rel   [mostRows + 1]float64
	since int // steps with drafts since one without
	dear  int // steps whose likely drafts were not run since one was
}

const (
	mostRows  = 96
	guess     = 0.12 // of a step of one row, that each further row is taken for
	follow    = 0.15 // how fast the scale follows a step,
	followRow = 0.3  // and how fast its rows do
	probe     = 48   // after so many steps with drafts one has none, which says what they are worth
	near      = 0.5  // of that for steps of more rows
	retry     = 128  // after so many steps whose likely drafts looked too dear one is run, which says whether they still are
	likely    = 0.5
	worth     = 1.03 // drafts have to bring so much more than none
)

// prior is a step of rows before anything is known, in steps of one row.
func prior(rows int) float64 { return 1 + guess*float64(rows-1) }

// Observe learns from a step that took some microseconds.
func (c *Costs) Observe(rows int, took float64) {
	if rows < 1 || rows > mostRows || took <= 0 {
		return
	}
	if c.scale == 0 {
		c.scale, c.rel[rows] = took/prior(rows), prior(rows)
		return
	}
	if c.rel[rows] == 0 {
		was := c.Of(rows)
		c.rel[rows] = was * min(max(took/(c.scale*was), 0.5), 4)
		return
	}
	off := min(max(took/(c.scale*c.rel[rows]), 0.5), 2)
	c.scale *= math.Pow(off, follow)
	c.rel[rows] *= math.Pow(off, followRow)
	for n := rows + 1; n <= mostRows; n++ {
		c.rel[n] *= math.Pow(off, followRow*near)
	}
}

// Of is the cost of a step, in a unit that steps of all rows share.
func (c *Costs) Of(rows int) float64 {
	n := min(rows, mostRows)
	for d := range mostRows {
		for _, m := range [...]int{n - d, n + d} {
			if m > 0 && m <= mostRows && c.rel[m] > 0 {
				return c.rel[m] * prior(rows) / prior(m)
			}
		}
	}
	return prior(rows)
}

// Belief is how likely drafts of a sequence are right, by how much of the text before them was alike. It knows that sequence
// alone.
type Belief struct {
	right, all [len(classes)]float64
}

// classes are lengths of matches that count alike, up to each, and what is believed at first.
var classes = [...]struct {
	match int
	right float64
}{{3, 0.4}, {5, 0.5}, {8, 0.65}, {16, 0.8}, {math.MaxInt, 0.9}}

const (
	believed = 3    // tokens that the first belief counts as
	forget   = 0.97 // of what was seen stays with each token that is
)

func class(match int) int {
	i := 0
	for match > classes[i].match {
		i++
	}
	return i
}

// Of is the chance of a draft behind a match.
func (b *Belief) Of(match int) float64 {
	i := class(match)
	return (b.right[i] + believed*classes[i].right) / (b.all[i] + believed)
}

// Note learns from a draft behind a match.
func (b *Belief) Note(match int, right bool) {
	i := class(match)
	b.right[i] *= forget
	b.all[i] = forget*b.all[i] + 1
	if right {
		b.right[i]++
	}
}

// Option is what one sequence could draft in a step. Choose sets Take.
type Option struct {
	Belief *Belief
	Match  int
	Drafts int // there are
	Take   int // to run

	next float64 // chance that the draft behind those is right with all before it
}

// Choose finds how many drafts of each sequence bring the most tokens for the time of a step of rows rows beside them. None is
// one of the choices.
func (c *Costs) Choose(options []Option, rows int) {
	left := 0
	for i := range options {
		o := &options[i]
		o.Take, o.next = 0, o.Belief.Of(o.Match)
		left += o.Drafts
	}
	if c.since++; left == 0 || rows > mostRows || c.rel[rows] == 0 || c.since > probe {
		c.since = 0 // a step without drafts is to be seen first
		return
	}
	tokens, plain, best, at := float64(rows), float64(rows)/c.Of(rows), 0.0, 0
	best = plain * worth
	for n := 1; n <= left && rows+n <= mostRows; n++ {
		o := likeliest(options)
		tokens += o.next
		o.Take++
		o.next *= o.Belief.Of(o.Match + o.Take)
		if v := tokens / c.Of(rows+n); v > best {
			best, at = v, n
		}
	}
	for i := range options {
		o := &options[i]
		o.Take, o.next = 0, o.Belief.Of(o.Match)
	}
	if at == 0 && likeliest(options).next > likely {
		c.dear++
	}
	if at > 0 || c.dear > retry {
		at, c.dear = max(at, 1), 0
	}
	for range at {
		o := likeliest(options)
		o.Take++
		o.next *= o.Belief.Of(o.Match + o.Take)
	}
	if at == 0 {
		c.since = 0
	}
}

// likeliest is the option whose next draft is likeliest to be right. There is one that has another.
func likeliest(options []Option) (best *Option) {
	for i := range options {
		if o := &options[i]; o.Take < o.Drafts && (best == nil || o.next > best.next) {
			best = o
		}
	}
	return best
}

// ChooseSure takes the drafts that are right more likely than not, up to most each: beside prompts a row costs the same whoever
// it is of.
func ChooseSure(options []Option, most int) {
	for i := range options {
		o := &options[i]
		o.Take = 0
		for p := o.Belief.Of(o.Match); p >= sure && o.Take < min(o.Drafts, most); p *= o.Belief.Of(o.Match + o.Take) {
			o.Take++
		}
	}
}

const sure = 0.6

package spec

import "math"

// Costs is what drafts add to steps of so many sequences, learned from steps that ran anyway. It knows ratios: what all steps
// have in common, as the speed that the machine has just now, is in scale. What has not been seen is guessed from what is
// nearest.
type Costs struct {
	scale  float64 // microseconds per unit of plain
	groups [mostSequences + 1]group
	steps  int
}

// MostRows is how many rows of a step may have drafts among them.
const MostRows = 96

// group is the steps of so many sequences.
type group struct {
	plain float64 // of a step without drafts; 0: none has been seen
	seen  int     // of those
	adds  [len(lengths)]slope
}

// slope is what each draft adds to a step, in such steps without.
type slope struct {
	each float64
	seen int
}

// lengths are numbers of drafts in a step whose rows cost alike, up to each: products take a few rows while they wait for the
// weights anyway, and more in groups.
var lengths = [...]int{1, 2, 4, 7, 11, 15, 31, 63, math.MaxInt}

const (
	mostSequences = 32   // that are told apart
	guess         = 0.12 // of a step of one sequence that each draft is taken for at first;
	shared        = 0.5  // and so much of one for each sequence besides
	follow        = 0.15 // how fast the scale follows steps,
	followOwn     = 0.2  // and what is of steps of the same kind alone: of the first ones their mean counts
	neighbours    = 0.5  // of that for the other lengths, while they have not been seen
	step          = 1.3  // times that a step may seem to be off once there were a few: who is interrupted says nothing of drafts
	probe         = 64   // after so many steps one has no drafts, which says what they are worth
	retry         = 128  // after so many steps whose further, likely drafts looked too dear some are run: are they still?
	likely        = 0.5
	worth         = 1.03 // drafts have to bring so much more than none
)

func length(drafts int) int {
	i := 0
	for drafts > lengths[i] {
		i++
	}
	return i
}

// group is that of so many sequences. One that is new has the slopes of the one that is nearest.
func (c *Costs) group(sequences int) *group {
	g := &c.groups[min(sequences, mostSequences)]
	if g.adds[0].each > 0 {
		return g
	}
	share := func(n int) float64 { return 1 / (1 + shared*float64(n-1)) }
	for i := range g.adds {
		g.adds[i].each = guess * share(sequences)
	}
	for d := 1; d < mostSequences; d++ {
		for _, n := range [...]int{sequences - d, sequences + d} {
			if n > 0 && n <= mostSequences && c.groups[n].plain > 0 {
				for i := range g.adds {
					g.adds[i].each = c.groups[n].adds[i].each * share(sequences) / share(n)
				}
				return g
			}
		}
	}
	return g
}

// Observe learns from a step of sequences that took some microseconds.
func (c *Costs) Observe(sequences, drafts int, took float64) {
	if sequences < 1 || took <= 0 {
		return
	}
	if c.scale == 0 {
		c.scale = took
	}
	g := c.group(sequences)
	if g.plain == 0 {
		if drafts == 0 {
			g.plain, g.seen = took/c.scale, 1
		}
		return
	}
	a := &g.adds[length(drafts)]
	seen := &g.seen
	if drafts > 0 {
		seen = &a.seen
	}
	*seen++
	most := max(step, 4/float64(*seen+1))
	off := min(max(took/(c.scale*g.plain*g.Of(drafts)), 1/most), most)
	gain := max(followOwn, 1/(float64(*seen)+0.5))
	c.scale *= math.Pow(off, follow)
	if drafts == 0 {
		g.plain *= math.Pow(off, gain)
		return
	}
	was := a.each
	a.each = max((g.Of(drafts)*math.Pow(off, gain)-1)/float64(drafts), least)
	for i := range g.adds {
		if b := &g.adds[i]; b != a {
			b.each *= math.Pow(min(max(a.each/was, 0.5), 2), neighbours/float64(1+min(b.seen, 1)))
		}
	}
}

// least is what a draft adds at least.
const least = 1e-3

// Of is the cost of a step with drafts, in such steps without.
func (g *group) Of(drafts int) float64 {
	if drafts == 0 {
		return 1
	}
	return 1 + g.adds[length(drafts)].each*float64(drafts)
}

// Belief is how likely drafts of a sequence are right, by how much of the text before them was alike. It knows that sequence
// alone.
type Belief struct {
	right, all [len(classes)]float64
	dear       int // steps whose further, likely drafts were not run since some were
}

// classes are lengths of matches that count alike, up to each, and what is believed at first.
var classes = [...]struct {
	match int
	right float64
}{{Written, 0.85}, {1, 0.3}, {2, 0.35}, {3, 0.4}, {5, 0.5}, {8, 0.65}, {16, 0.8}, {math.MaxInt, 0.9}}

// Written is the match of drafts that a grammar has proposed: tokens of text that has to follow.
const Written = 0

// MatchOf is the match of draft k behind one of match tokens, of which so many were looked up.
func MatchOf(match, looked, k int) int {
	if k >= looked {
		return Written
	}
	return match + k
}

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
	Looked int // drafts that were looked up; those behind are Written
	Drafts int // there are
	Take   int // to run

	next float64 // chance that the draft behind those is right with all before it
}

// chance is how likely the draft behind those that are taken is right, if they are.
func (o *Option) chance() float64 { return o.Belief.Of(MatchOf(o.Match, o.Looked, o.Take)) }

// begin takes none.
func (o *Option) begin() {
	o.Take = 0
	o.next = o.chance()
}

// Plain begins a step, and reports whether it is to have no drafts, whoever has some: then it is seen what they are worth.
func (c *Costs) Plain() bool {
	c.steps++
	return c.steps%(probe+1) == 0
}

// Choose finds how many drafts of each sequence, and at most so many of all, bring the most tokens for the time of a step of so
// many sequences, some of which have none. None is one of the choices.
func (c *Costs) Choose(options []Option, sequences, most int) {
	left := 0
	for i := range options {
		o := &options[i]
		o.begin()
		left += o.Drafts
	}
	g := c.group(sequences)
	if left = min(left, most); left <= 0 || g.plain == 0 { // a step without drafts is to be seen first
		return
	}
	tokens, best, at := float64(sequences), float64(sequences)*worth, 0
	for n := 1; n <= left; n++ {
		tokens += likeliest(options).next
		take(options)
		if v := tokens / g.Of(n); v > best {
			best, at = v, n
		}
	}
	for i := range options {
		o := &options[i]
		o.begin()
	}
	for range at {
		take(options)
	}
	if at < left && likeliest(options).next > likely {
		b := likeliest(options).Belief
		if b.dear++; b.dear > retry {
			b.dear = 0
			for n := min(at+1, left-at); n > 0 && likeliest(options).next > likely; n-- {
				take(options)
			}
		}
	}
}

// take takes the next draft that is likeliest to be right.
func take(options []Option) {
	o := likeliest(options)
	o.Take++
	o.next *= o.chance()
}

// likeliest is the option whose next draft is likeliest to be right, nil if none has another.
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
		for p := o.chance(); p >= sure && o.Take < min(o.Drafts, most); p *= o.chance() {
			o.Take++
		}
	}
}

const sure = 0.6

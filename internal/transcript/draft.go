package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Draft is a prompt's text while its ids are looked up. The template writes earlier answers its own way: with other white
// space around them, the arguments of calls in its own JSON, an empty reasoning block more or less. Where such a
// rendering of an answer that this model gave here says the same as the answer itself, the answer stays as it was
// generated: that is what has run, and what the model would go on from if nobody had taken the prompt apart in between.
type Draft struct {
	Text     string // with the guard's marks
	Spans    []Span // in the order of their beginnings; none where the template does not tell
	Messages int
	CallIDs  []string // of all calls, as the template has seen them
	Session  uint64   // whose prompt it is; 0: not known
	Plain    bool     // nothing is looked up: see chat.Request.PlainHistory
	Stops    []string // texts of the tokens that end an answer

	// Says reads what an answer says, from inside a reasoning block or not; false if it breaks off in a call. Two texts say
	// the same if it reads the same from both.
	Says  func(text string, inReasoning bool) ([]Statement, bool)
	Tools int // how many tools Says reads calls of: with others, it may read the same text in another way

	shown meant // of the rendering compared last: several answers may have been given in its place
}

// Span is the part of the text that the template wrote for a message.
type Span struct {
	Message  int // of the request
	From, To int
	Answer   bool     // an assistant's
	CallIDs  []string // of its calls, as the template has seen them
}

// Statement is something that an answer says.
type Statement struct {
	Kind Kind
	Text string // or the name of the tool
	Args any    // of a call, decoded, numbers as json.Number
}

// Kind is what a Statement is.
type Kind uint8

// Kinds of statements.
const (
	Text Kind = iota
	Reasoning
	Call
)

// meant is what a text says.
type meant struct {
	text      string
	reasoning bool
	says      []Statement
	ok        bool
}

// mostSearched bounds the bytes that are looked through for the ids of an answer's calls.
const mostSearched = 1 << 28

// verdict is the last comparison of an answer with a rendering.
type verdict struct {
	rendered string
	tools    int
	skipped  int // of the rendered text and the answer, from the beginning of the piece
	agrees   bool
}

// standIn puts one of the answers in the place of its rendering, which t's memory has parted from. It gives the number of
// pieces by which t goes back for that, whose cuts then are those of the new text; -1 if no answer fits.
func (d *Draft) standIn(h *History, t *Tokens, answers []candidate) int {
	for _, a := range answers {
		first := len(t.at) - 1 - a.up
		from, to, skipped, ok := d.rendering(h, t.cuts[first], a.reply)
		if !ok {
			continue
		}
		v := verdict{rendered: d.Text[from:to], tools: d.Tools, skipped: skipped}
		h.mu.Lock()
		known := a.verdict
		h.mu.Unlock()
		if v.agrees = known.agrees; known != v {
			v.agrees = d.agree(a.reply, v)
			v.rendered = strings.Clone(v.rendered)
			h.mu.Lock()
			a.verdict = v
			h.mu.Unlock()
		}
		if v.agrees {
			t.back(first, a.spliced)
			d.replace(h, t, from, to, a.text[skipped:])
			return a.up
		}
	}
	return -1
}

// rendering finds what the template wrote for an answer: text[from:to] stands for a.text[skipped:]. What comes before has
// to be the same, save for lines at the end of the prompt that the template leaves out later, such as an empty reasoning
// block: those then belong to the answer.
func (d *Draft) rendering(h *History, at int, a *reply) (from, to, skipped int, ok bool) {
	skipped = commonBytes(d.Text[at:], a.text[:a.spoken])
	if skipped < a.spoken {
		skipped = strings.LastIndexByte(a.text[:skipped], '\n') + 1
		if n := h.anchors.At(a.text); skipped < n && commonBytes(d.Text[at:], a.text[:n]) == n {
			skipped = n
		}
		if skipped == 0 {
			return 0, 0, 0, false
		}
	}
	from = at + skipped
	s := d.spanAt(from)
	if s == nil || !s.Answer {
		return 0, 0, 0, false
	}
	to = -1
	for _, stop := range d.Stops {
		for x := from; x < s.To; {
			i := strings.Index(d.Text[x:s.To], stop)
			if i < 0 {
				break
			}
			x += i
			if !strings.HasSuffix(d.Text[:x], markOpen) {
				if to < 0 || x < to {
					to = x
				}
				break
			}
			x += len(stop)
		}
	}
	if to < 0 && slices.ContainsFunc(d.Stops, func(stop string) bool { return strings.HasPrefix(d.Text[s.To:], stop) }) {
		to = s.To // what ends an answer is what begins the next message
	}
	if to < 0 || d.Text[from:to] == a.text[skipped:] {
		return 0, 0, 0, false
	}
	if len(s.CallIDs) > 0 && to-from+len(a.text) > mostSearched/len(s.CallIDs) {
		return 0, 0, 0, false
	}
	for _, id := range s.CallIDs {
		if id != "" && strings.Contains(d.Text[from:to], id) && !strings.Contains(a.text[skipped:], id) {
			return 0, 0, 0, false
		}
	}
	return from, to, skipped, true
}

// spanAt is the innermost message that a place in the text belongs to: where that is not known, any.
func (d *Draft) spanAt(at int) *Span {
	if len(d.Spans) == 0 {
		return &Span{To: len(d.Text), Answer: true, CallIDs: d.CallIDs}
	}
	for i, s := range slices.Backward(d.Spans) {
		if s.From <= at && at <= s.To {
			return &d.Spans[i]
		}
	}
	return nil
}

// replace puts with in the place of text[from:to], which ends before an anchor or at the end of a message.
func (d *Draft) replace(h *History, t *Tokens, from, to int, with string) {
	grown := len(with) - (to - from)
	d.Text = d.Text[:from] + with + d.Text[to:]
	for i := range d.Spans {
		s := &d.Spans[i]
		if s.From >= to {
			s.From += grown
		}
		if s.To >= to {
			s.To += grown
		}
	}
	first := len(t.at) - 1
	rest := slices.IndexFunc(t.cuts, func(c int) bool { return c >= to })
	at := t.cuts[first]
	fresh := h.segment(d.Text[at : t.cuts[rest]+grown])
	for i := range fresh {
		fresh[i] += at
	}
	for _, c := range t.cuts[rest+1:] {
		fresh = append(fresh, c+grown)
	}
	t.cuts = append(t.cuts[:first:first], fresh...)
}

// agree tells whether a rendering and an answer say the same.
func (d *Draft) agree(a *reply, v verdict) bool {
	reasoning := a.reasoning && v.skipped == a.spoken // else the block's opening is part of what is compared
	said, ok := d.Says(Unmark(a.text[v.skipped:]), reasoning)
	if !ok {
		return false
	}
	if d.shown.text != v.rendered || d.shown.reasoning != reasoning {
		d.shown = meant{text: v.rendered, reasoning: reasoning}
		d.shown.says, d.shown.ok = d.Says(Unmark(v.rendered), reasoning)
	}
	return d.shown.ok && slices.EqualFunc(said, d.shown.says, Statement.equal)
}

func (s Statement) equal(t Statement) bool {
	return s.Kind == t.Kind && s.Text == t.Text && equalJSON(s.Args, t.Args)
}

// equalJSON compares decoded values. Numbers are equal if spelled alike, or as far as both are exact as float64.
func equalJSON(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, equalJSON)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case json.Number:
		y, ok := b.(json.Number)
		if !ok || x == y {
			return ok
		}
		const digits = 15 // that a float64 holds
		f, err := x.Float64()
		g, err2 := y.Float64()
		return err == nil && err2 == nil && f == g && len(x) <= digits && len(y) <= digits
	}
	return a == b
}

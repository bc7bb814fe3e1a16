package generate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

// draft is a prompt's text while its ids are looked up. The template writes earlier answers its own way: with other white
// space around them, the arguments of calls in its own JSON, an empty reasoning block more or less. Where such a
// rendering of an answer that this model gave here says the same as the answer itself, the answer stays as it was
// generated: that is what has run, and what the model would go on from if nobody had taken the prompt apart in between.
// What says the same is decided by the parser of the model's own output: same text but for white space around it, same
// reasoning, same calls of the same tools with arguments that are equal as JSON, under the same ids where it writes any.
type draft struct {
	text     string // with the guard's marks
	spans    []span // in the order of their beginnings; none where the template does not tell
	messages int
	ids      []string // of all calls, as the template has seen them
	session  uint64   // whose prompt it is; 0: not known
	plain    bool     // nothing is looked up: see chat.Request.PlainHistory

	family *dialect.Family
	tools  []dialect.Tool
	stops  []string // texts of the tokens that end an answer

	shown meant // of the rendering compared last: several answers may have been given in its place
}

// meant is what a text says.
type meant struct {
	text      string
	reasoning bool
	says      []statement
	ok        bool
}

// mostSearched bounds the bytes that are looked through for the ids of an answer's calls.
const mostSearched = 1 << 28

// span is the part of the text that the template wrote for a message.
type span struct {
	message  int // of the request
	from, to int
	answer   bool     // an assistant's
	ids      []string // of its calls, as the template has seen them
}

// verdict is the last comparison of an answer with a rendering.
type verdict struct {
	rendered string
	tools    int
	skipped  int // of the rendered text and the answer, from the beginning of the piece
	agrees   bool
}

// standIn puts one of the answers in the place of its rendering, which t's memory has parted from. It gives the number of
// pieces by which t goes back for that, whose cuts then are those of the new text; -1 if no answer fits.
func (d *draft) standIn(h *history, t *tokens, answers []candidate) int {
	for _, a := range answers {
		first := len(t.at) - 1 - a.up
		from, to, skipped, ok := d.rendering(h, t.cuts[first], a.reply)
		if !ok {
			continue
		}
		v := verdict{rendered: d.text[from:to], tools: len(d.tools), skipped: skipped}
		h.mu.Lock()
		known := a.verdict
		h.mu.Unlock()
		if v.agrees = known.agrees; known != v {
			v.agrees = d.agree(h, a.reply, v)
			v.rendered = strings.Clone(v.rendered)
			h.mu.Lock()
			a.verdict = v
			h.mu.Unlock()
		}
		if v.agrees {
			t.back(first, t.spliced-a.spliced)
			d.replace(h, t, from, to, a.text[skipped:])
			return a.up
		}
	}
	return -1
}

// rendering finds what the template wrote for an answer: text[from:to] stands for a.text[skipped:]. What comes before has
// to be the same, save for lines at the end of the prompt that the template leaves out later, such as an empty reasoning
// block: those then belong to the answer.
func (d *draft) rendering(h *history, at int, a *reply) (from, to, skipped int, ok bool) {
	skipped = commonBytes(d.text[at:], a.text[:a.spoken])
	if skipped < a.spoken {
		skipped = strings.LastIndexByte(a.text[:skipped], '\n') + 1
		if n := h.anchors.At(a.text); skipped < n && commonBytes(d.text[at:], a.text[:n]) == n {
			skipped = n
		}
		if skipped == 0 {
			return 0, 0, 0, false
		}
	}
	from = at + skipped
	s := d.spanAt(from)
	if s == nil || !s.answer {
		return 0, 0, 0, false
	}
	to = -1
	for _, stop := range d.stops {
		for x := from; x < s.to; {
			i := strings.Index(d.text[x:s.to], stop)
			if i < 0 {
				break
			}
			x += i
			if !strings.HasSuffix(d.text[:x], markOpen) {
				if to < 0 || x < to {
					to = x
				}
				break
			}
			x += len(stop)
		}
	}
	if to < 0 && slices.ContainsFunc(d.stops, func(stop string) bool { return strings.HasPrefix(d.text[s.to:], stop) }) {
		to = s.to // what ends an answer is what begins the next message
	}
	if to < 0 || d.text[from:to] == a.text[skipped:] {
		return 0, 0, 0, false
	}
	if len(s.ids) > 0 && to-from+len(a.text) > mostSearched/len(s.ids) {
		return 0, 0, 0, false
	}
	for _, id := range s.ids {
		if id != "" && strings.Contains(d.text[from:to], id) && !strings.Contains(a.text[skipped:], id) {
			return 0, 0, 0, false
		}
	}
	return from, to, skipped, true
}

// spanAt is the innermost message that a place in the text belongs to: where that is not known, any.
func (d *draft) spanAt(at int) *span {
	if len(d.spans) == 0 {
		return &span{to: len(d.text), answer: true, ids: d.ids}
	}
	for i, s := range slices.Backward(d.spans) {
		if s.from <= at && at <= s.to {
			return &d.spans[i]
		}
	}
	return nil
}

// replace puts with in the place of text[from:to], which ends before an anchor or at the end of a message.
func (d *draft) replace(h *history, t *tokens, from, to int, with string) {
	grown := len(with) - (to - from)
	d.text = d.text[:from] + with + d.text[to:]
	for i := range d.spans {
		s := &d.spans[i]
		if s.from >= to {
			s.from += grown
		}
		if s.to >= to {
			s.to += grown
		}
	}
	first := len(t.at) - 1
	rest := slices.IndexFunc(t.cuts, func(c int) bool { return c >= to })
	at := t.cuts[first]
	fresh := h.cut(nil, d.text[at:t.cuts[rest]+grown])
	for i := range fresh {
		fresh[i] += at
	}
	for _, c := range t.cuts[rest+1:] {
		fresh = append(fresh, c+grown)
	}
	t.cuts = append(t.cuts[:first:first], fresh...)
}

// agree tells whether a rendering and an answer say the same.
func (d *draft) agree(h *history, a *reply, v verdict) bool {
	reasoning := a.reasoning && v.skipped == a.spoken // else the block's opening is part of what is compared
	said, ok := d.meaning(h.guard.unmark(a.text[v.skipped:]), reasoning)
	if !ok {
		return false
	}
	if d.shown.text != v.rendered || d.shown.reasoning != reasoning {
		d.shown = meant{text: v.rendered, reasoning: reasoning}
		d.shown.says, d.shown.ok = d.meaning(h.guard.unmark(v.rendered), reasoning)
	}
	return d.shown.ok && slices.EqualFunc(said, d.shown.says, statement.equal)
}

// statement is something that an answer says: text, reasoning, or a call with its arguments decoded.
type statement struct {
	kind dialect.Kind
	text string
	args any
}

// meaning parses an answer; false if it breaks off in a call.
func (d *draft) meaning(text string, reasoning bool) ([]statement, bool) {
	p := d.family.New(dialect.Options{InReasoning: reasoning, Tools: d.tools})
	pieces := p.Feed(nil, text)
	pieces = p.Finish(pieces)
	var all []statement
	var args, said []byte // of the last one
	spell := func() {
		if n := len(all); n > 0 && len(said) > 0 {
			all[n-1].text += string(said)
		}
		said = said[:0]
	}
	for _, x := range pieces {
		last := len(all) - 1
		switch {
		case x.Kind == dialect.ToolStart:
			spell()
			all, args = append(all, statement{kind: x.Kind, text: x.Text}), args[:0]
		case x.Kind == dialect.ToolArgs:
			args = append(args, x.Text...)
		case x.Kind == dialect.ToolEnd:
			if last < 0 || decodeNumbers(args, &all[last].args) != nil {
				return nil, false
			}
			all[last].kind = x.Kind
		case last >= 0 && all[last].kind == x.Kind:
			said = append(said, x.Text...)
		default:
			spell()
			all = append(all, statement{kind: x.Kind, text: x.Text})
		}
	}
	spell()
	for i := range all {
		switch all[i].kind {
		case dialect.ToolStart:
			return nil, false
		case dialect.Text, dialect.Reasoning:
			all[i].text = strings.TrimSpace(all[i].text)
		}
	}
	return slices.DeleteFunc(all, func(s statement) bool { return s.kind <= dialect.Reasoning && s.text == "" }), true
}

func decodeNumbers(text []byte, v *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

func (s statement) equal(t statement) bool {
	return s.kind == t.kind && s.text == t.text && equalJSON(s.args, t.args)
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

// draft makes the draft of a rendering, with the spans of its messages.
func (out *rendering) draft(messages []chat.Message) draft {
	longest := make([]jinja.Span, len(messages)) // of each message; without a tag where there is none
	n := 0
	for _, s := range out.spans {
		if s.Tag < 1 || s.Tag > len(messages) || s.From >= len(out.text) {
			continue
		}
		l := &longest[s.Tag-1]
		if l.Tag == 0 {
			n++
		}
		if l.Tag == 0 || s.To-s.From > l.To-l.From {
			*l = s
		}
	}
	d := draft{text: out.text, messages: len(messages)}
	ids := out.callIDs()
	for _, tag := range slices.Sorted(maps.Keys(ids)) {
		d.ids = append(d.ids, ids[tag]...)
	}
	d.spans = make([]span, 0, n)
	for m, s := range longest {
		if s.Tag > 0 {
			d.spans = append(d.spans, span{message: m, from: s.From, to: min(s.To, len(out.text)), answer: messages[m].Role == chat.Assistant, ids: ids[s.Tag]})
		}
	}
	slices.SortFunc(d.spans, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	return d
}

// callIDs are the ids of the calls of each message, as the template has seen them.
func (out *rendering) callIDs() map[int][]string {
	ids := map[int][]string{}
	if out.messages == nil {
		return ids
	}
	for _, item := range out.messages.Items {
		m, _ := item.(*jinja.Dict)
		v, _ := m.Get("tool_calls")
		calls, ok := v.(*jinja.List)
		if !ok {
			continue
		}
		for _, c := range calls.Items {
			if call, ok := c.(*jinja.Dict); ok {
				if id, _ := call.Get("id"); id != nil {
					s, _ := id.(string)
					ids[m.Tag] = append(ids[m.Tag], s)
				}
			}
		}
	}
	return ids
}

package generate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/transcript"
)

// account is what a request's caller tells of a conversation. What the model thought in it is remembered under its
// digest, for callers that send a turn back without.
type account struct {
	salt    transcript.Salt
	session uint64 // see party; 0: not known
	digest  transcript.Digest
	replays bool     // reasoning is remembered and put back
	put     []string // reasoning that was put back
	printed int      // how many of those the prompt has
	bare    bool     // none is to be put back
	seen    *pictures

	buf []byte
}

// account is that of a request, before its first turn. Its digest begins with the caller, so that no other one finds what
// the model thought, even where callers share what is cached.
func (m *prompter) account(r *ask) account {
	c := account{bare: r.bare, seen: r.seen, salt: r.Origin.Salt, digest: sha256.Sum256(r.Origin.Caller[:])}
	if r.Origin.Session != "" {
		c.session = party(&r.Origin)
	}
	c.replays = m.cfg.replays(m.family) && !r.PlainHistory
	return c
}

// replay puts back the reasoning of turns that were generated here and come back without it, all else being as it was told. The
// template decides what of it stands in the prompt.
func (c *account) replay(h *transcript.History, turns []turn) {
	if !c.replays {
		return
	}
	for len(turns) > 0 {
		whole, n := oneReply(turns)
		first := &turns[0]
		turns = turns[n:]
		if c.digest = c.after(&whole); c.bare || whole.role != roleAssistant || whole.reasoning != "" {
			continue
		}
		if first.reasoning = h.Reasoning(c.salt, c.session, c.digest); first.reasoning != "" {
			c.put = append(c.put, first.reasoning)
		}
	}
}

// oneReply is the first turn with the n-1 that are the rest of the same reply: some clients make several messages of its text and
// its calls.
func oneReply(turns []turn) (whole turn, n int) {
	whole = turns[0]
	if whole.role != roleAssistant || len(turns) == 1 || turns[1].role != roleAssistant {
		return whole, 1
	}
	var text, reasoning strings.Builder
	whole.calls = nil
	for n = 0; n < len(turns) && turns[n].role == roleAssistant; n++ {
		text.WriteString(turns[n].text)
		reasoning.WriteString(turns[n].reasoning)
		whole.calls = append(whole.calls, turns[n].calls...)
	}
	whole.text, whole.reasoning = text.String(), reasoning.String()
	return whole, n
}

// after is the digest of the conversation with one more turn: who says what, calls which tools, and what these give. Reasoning is
// left out, and so is what clients change: ids of calls, the spelling of arguments, blanks around an answer, and its name.
func (c *account) after(t *turn) transcript.Digest {
	b := append(c.buf[:0], c.digest[:]...)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(t.role)
	switch t.role {
	case roleAssistant:
		text(strings.TrimSpace(t.text))
		for _, k := range t.calls {
			text(k.name)
			text(plainArguments(k.args))
		}
	case roleTool:
		text(c.seen.named(t.text))
		b = binary.AppendUvarint(b, uint64(t.answers.number))
	default:
		text(t.name)
		text(c.seen.named(t.text))
	}
	c.buf = b
	return sha256.Sum256(b)
}

// plainArguments spells arguments in the one way that all clients' spellings of them come to.
func plainArguments(args json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if len(bytes.TrimSpace(args)) == 0 {
		return "{}"
	}
	if d.Decode(&v) != nil {
		return string(args)
	}
	plain, err := json.Marshal(plainNumbers(v))
	if err != nil {
		return string(args)
	}
	return string(plain)
}

// plainNumbers has numbers that a client may spell in another way as what they are, in v itself.
func plainNumbers(v any) any {
	const digits = 15 // that a float64 holds
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = plainNumbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = plainNumbers(e)
		}
	case json.Number:
		if f, err := x.Float64(); err == nil && len(x) <= digits {
			return f
		}
	}
	return v
}

// count counts the turns whose reasoning was put back and stands in the prompt's text, from the last one on.
func (c *account) count(text string) {
	for _, r := range slices.Backward(c.put) {
		at := strings.LastIndex(text, strings.TrimSpace(r))
		if at < 0 { // templates leave out that of earlier turns
			return
		}
		text = text[:at]
		c.printed++
	}
}

// quotes tells whether a text has something of the reasoning that was put back, which its caller may not be meant to see.
func (c *account) quotes(text string) bool {
	const least = 8 // bytes at an end of either that count
	for _, r := range c.put {
		r = transcript.Unmark(strings.TrimSpace(r))
		if strings.Contains(text, r) || strings.Contains(r, text) && text != "" {
			return true
		}
		for n := least; n < min(len(text), len(r)); n++ {
			if strings.HasSuffix(r, text[:n]) || strings.HasPrefix(r, text[len(text)-n:]) {
				return true
			}
		}
	}
	return false
}

// retold is what a reply's caller gets of it, and the reasoning before that.
type retold struct {
	text, reasoning strings.Builder
	calls           []*call
}

func (a *retold) add(e *chat.Event) {
	switch e.Kind {
	case chat.EventText:
		a.text.WriteString(e.Text)
	case chat.EventReasoning:
		a.reasoning.WriteString(e.Text)
	case chat.EventToolEnd:
		a.calls = append(a.calls, &call{name: e.Call.Name, args: e.Call.Arguments})
	}
}

// remember notes what the model thought in the reply to p. A reply of which nothing was told is none; one that was cut counts
// for whoever tells all that was told of it.
func (a *retold) remember(h *transcript.History, p *prompt) {
	t := turn{role: roleAssistant, text: a.text.String(), calls: a.calls}
	if !p.replays || p.options.Continued || strings.TrimSpace(t.text) == "" && len(t.calls) == 0 {
		return
	}
	thought := a.reasoning.String()
	if strings.TrimSpace(thought) == "" {
		thought = ""
	}
	h.RememberReasoning(p.salt, p.session, p.after(&t), thought)
}

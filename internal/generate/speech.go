package generate

import (
	"cmp"
	"strings"

	"hearth/internal/dialect"
)

// speech tells what of a choice's text is the model's to say: not the opening of a demanded call that did not become one, and,
// where the model was told to write nothing behind its calls, not what it goes on with there: results of its own making, mostly.
type speech struct {
	begun   bool   // opening is known
	opening string // of the forced opening, what the parser may still give back as text
	called  bool   // the last call is complete
	at      int    // tokens there were then
	over    bool   // nothing more is wanted
}

// mostIdle is how many tokens may stand behind a call before the next one has a name, where nothing else may.
const mostIdle = 128

// own leaves out of what was parsed what is not the model's to say. cut says that nothing more comes although the model would
// have gone on.
func (c *choice) own(pieces []dialect.Piece, cut bool) []dialect.Piece {
	s := &c.speech
	if c.p.forced != "" && !s.begun {
		s.opening, s.begun = c.p.givenBack(c.m.family), true
	}
	if cut && c.guide != nil && c.p.forced != "" && c.calls.started == 0 {
		return pieces[:0] // a demanded call that is kept to its form, cut before its name
	}
	told := !c.p.raw && c.m.forms[0].has(toolsInSystem)
	out := pieces[:0]
	for _, p := range pieces {
		switch p.Kind {
		case dialect.ToolStart:
			s.opening, s.called = "", false
		case dialect.ToolEnd:
			s.called, s.at = true, c.usage.Output
		case dialect.Text, dialect.Reasoning:
			n := 0
			for n < min(len(s.opening), len(p.Text)) && s.opening[n] == p.Text[n] {
				n++
			}
			if s.opening = s.opening[n:]; n > 0 && s.opening == "" && c.tape != nil {
				c.tape.opened()
			}
			if n < len(p.Text) {
				s.opening = ""
			}
			if p.Text = p.Text[n:]; p.Text == "" {
				continue
			}
			if told && s.called && p.Kind == dialect.Text && strings.TrimSpace(p.Text) != "" {
				s.over = true
				return out
			}
		}
		out = append(out, p)
	}
	s.over = told && s.called && c.usage.Output-s.at > mostIdle
	return out
}

// givenBack is what of the forced opening the parser gives back where no call follows it.
func (p *prompt) givenBack(f *dialect.Family) string {
	parse := f.New(p.options)
	parse.Cut()
	var out strings.Builder
	for _, piece := range parse.Finish(parse.Feed(nil, p.forced)) {
		if piece.Kind != dialect.Text && piece.Kind != dialect.Reasoning {
			break
		}
		out.WriteString(piece.Text)
	}
	return cmp.Or(out.String(), p.forced) // a header, which is nothing until more follows
}

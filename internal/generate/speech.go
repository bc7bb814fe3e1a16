package generate

import (
	"cmp"
	"strings"

	"hearth/internal/dialect"
)

// speech drops text that is not the reply's: a forced opening that no call followed, and, where the system text tells the
// model to write nothing after its calls, what it writes there all the same. That is mostly results that it makes up.
type speech struct {
	begun   bool   // opening is known
	opening string // the part of the forced opening that the parser may still give back as text
	called  bool   // the last call is complete
	at      int    // the number of tokens when it was completed
	over    bool   // nothing more is wanted
}

// mostIdle is how many tokens the model may write between calls, where it may write nothing but calls.
const mostIdle = 128

// own drops from pieces what speech tells to drop. cut says that the reply was cut off.
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
				s.over = !cut // there it may be the beginning of another call
				return out
			}
		}
		out = append(out, p)
	}
	held := c.bound != nil && c.p.calls // then all it writes is of calls, and a name may come late
	s.over = told && !held && s.called && c.usage.Output-s.at > mostIdle
	return out
}

// givenBack is the text that the parser makes of a forced opening where no call follows it.
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
	return cmp.Or(out.String(), p.forced) // the parser makes nothing of a header alone
}

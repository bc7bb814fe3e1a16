package generate

import (
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/jinja"
)

// switches are the ways in which a template lets thinking be turned on, off and down, found by trial.
type switches struct {
	works   bool     // thinking can be turned off
	flag    bool     // a variable that is true or false does it
	mode    bool     // thinking_mode, a word
	budget  bool     // thinking_budget, tokens
	words   bool     // /think and /no_think in the system message do it
	slash   bool     // and nothing else does
	efforts []string // words of reasoning_effort that the template takes, weakest first; nil: it has none
	off     string   // the word of reasoning_effort that means no thinking; "": it has none
}

// ladder is every effort that clients ask for, weakest first.
var ladder = []string{"none", "no_think", "minimal", "low", "medium", "high", "xhigh", "max"}

// weakest is the first of ladder that means to think at all.
const weakest = 2

// findSwitches tries what a template knows.
func findSwitches(p *prober) switches {
	has := func(word string) bool { return p.t.mentions(word) }
	s := switches{mode: has("thinking_mode") && (has(`"disabled"`) || has("'disabled'")), budget: has("thinking_budget")}
	talk := []turn{{role: roleUser, text: probeA}}
	try := func(mode chat.Toggle) string {
		return p.renderWith(talk, func(vars *jinja.Dict) { s.set(vars, chat.Thinking{Mode: mode}) })
	}
	off := try(chat.Off)
	s.flag = off != "" && (try(chat.On) != off || try(chat.Default) != off)
	if has("reasoning_effort") || has("thinking_effort") {
		s.findEfforts(p, talk)
	}
	if has("/no_think") {
		tail := func(text string) string {
			_, tail, _ := strings.Cut(p.render(append([]turn{{role: roleSystem, text: probeB + text}}, talk...)), probeA)
			return tail
		}
		s.words = tail(" /no_think") != tail("")
		s.slash = s.words && !s.flag && s.off == ""
	}
	s.works = s.flag || s.slash || s.off != ""
	return s
}

// findEfforts takes the words that stand in the template in quotes, or the usual three where there are no such lists, less
// what it refuses.
func (s *switches) findEfforts(p *prober, talk []turn) {
	quoted := func(word string) bool { return p.t.mentions(`"`+word+`"`) || p.t.mentions("'"+word+"'") }
	n := 0
	for _, word := range ladder[weakest:] {
		if quoted(word) {
			n++
		}
	}
	usual := []string{"low", "medium", "high"}
	for i, word := range ladder {
		if !quoted(word) && (i < weakest || n > 1 || !slices.Contains(usual, word)) {
			continue
		}
		if p.renderWith(talk, func(vars *jinja.Dict) { setEffort(vars, word) }) == "" {
			continue
		}
		if i < weakest {
			s.off = word
		} else {
			s.efforts = append(s.efforts, word)
		}
	}
	if s.efforts == nil {
		s.efforts = []string{}
	}
}

func setEffort(vars *jinja.Dict, word string) {
	vars.Set("reasoning_effort", word)
	vars.Set("thinking_effort", word)
}

// set sets the template's variables to what a request asks for; what it leaves open stays the template's.
func (s *switches) set(vars *jinja.Dict, t chat.Thinking) {
	if t.Mode != chat.Default {
		on := t.Mode == chat.On
		for _, name := range []string{"enable_thinking", "thinking", "reasoning"} {
			vars.Set(name, on)
		}
		if s.mode {
			vars.Set("thinking_mode", map[bool]string{true: "enabled", false: "disabled"}[on])
		}
	}
	switch effort := s.effort(t); {
	case effort != "":
		setEffort(vars, effort)
	case s.efforts == nil && t.Effort != "":
		setEffort(vars, t.Effort)
	}
	switch {
	case !s.budget:
	case t.Mode == chat.Off:
		vars.Set("thinking_budget", int64(0))
	case t.Budget > 0:
		vars.Set("thinking_budget", int64(t.Budget))
	}
}

// effort is the template's word nearest to what is asked, the stronger of two equally near; "" leaves it to the template.
func (s *switches) effort(t chat.Thinking) string {
	if s.efforts == nil {
		return ""
	}
	asked := slices.Index(ladder, t.Effort)
	switch {
	case t.Mode == chat.Off && s.off != "":
		return s.off
	case t.Mode == chat.Off && !s.flag && len(s.efforts) > 0:
		return s.efforts[0]
	case t.Mode == chat.Off && t.Effort == "":
		return ""
	case t.Mode == chat.On && t.Effort == "" && s.off != "" && !s.flag:
		asked = slices.Index(ladder, "high")
	case asked < 0 || slices.Contains(s.efforts, t.Effort):
		return t.Effort
	}
	if asked < weakest && s.off != "" {
		return s.off
	}
	best, distance := "", len(ladder)
	for _, word := range s.efforts {
		if d := slices.Index(ladder, word) - asked; max(d, -d) <= distance {
			best, distance = word, max(d, -d)
		}
	}
	return best
}

// say puts /think or /no_think into the system message for templates that look for it there. holds says that thinking is off
// for good: then it also overrides a /think of the client.
func (s *switches) say(turns []turn, t chat.Thinking, holds bool) []turn {
	against := holds && s.words && len(turns) > 0 && turns[0].role == roleSystem && strings.Contains(turns[0].text, "/think")
	if !against && (!s.slash || t.Mode == chat.Default) {
		return turns
	}
	word := map[bool]string{true: "/think", false: "/no_think"}[t.Mode == chat.On]
	if len(turns) > 0 && turns[0].role == roleSystem {
		turns = slices.Clone(turns)
		turns[0].text += "\n" + word
		return turns
	}
	return slices.Insert(slices.Clone(turns), 0, turn{role: roleSystem, text: word})
}

package generate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hearth/internal/chat"
)

// explain tells what was decided about a request and by whom, in the order in which it was. It says nothing of what the request
// says, but for the prompt's text where that is asked for.
func (g *Generator) explain(u *chat.Usage, r *chat.Request, p *prompt) {
	var all []chat.Decision
	say := func(what, value, origin string) {
		all = append(all, chat.Decision{What: what, Value: value, Origin: origin})
	}
	if p.raw {
		say("template", "none", "the request has a text to go on with")
	} else {
		say(g.explainTemplate())
		say(g.explainParser())
		say(g.explainThinking(r, p))
		if p.budget > 0 {
			say("thinking_budget", strconv.Itoa(p.budget), decided(r.Thinking.Budget > 0, chat.OfRequest, chat.OfSettings))
		}
		if n := len(r.Tools); n > 0 {
			say("tools", strconv.Itoa(n), decided(g.forms[0].has(toolsDeclared), "the template declares them", "the template knows none: they stand in the system text, if that is not switched off"))
		}
	}
	for _, row := range chat.SamplingParameters {
		value, origin := row.Builtin, chat.OfProgram
		for _, level := range []struct {
			name string
			of   *chat.Sampling
		}{{chat.OfFolder, &g.cfg.Generation}, {chat.OfSettings, &g.cfg.Defaults}, {chat.OfRequest, &r.Sampling}} {
			if x := *row.Field(level.of); x != nil {
				value, origin = *x, level.name
			}
		}
		if value != 0 || origin != chat.OfProgram {
			say(row.Name, strconv.FormatFloat(value, 'g', -1, 64), origin)
		}
	}
	say("seed", decided(r.Sampling.Seed != nil || g.cfg.Defaults.Seed != nil, "fixed", "drawn"), decided(r.Sampling.Seed != nil, chat.OfRequest, decided(g.cfg.Defaults.Seed != nil, chat.OfSettings, chat.OfProgram)))
	say(g.explainLength(r, p))
	say("stops", fmt.Sprintf("%d ids, %d texts of the template, %d of the request", len(p.stopIDs), len(g.endTexts), len(r.Stop)), "the model's folder and the request")
	if u.Form != "" {
		say("form", string(u.Form), decided(u.Form == chat.Enforced, "the reply is held to it while it is written", "it is compared when the reply has ended"))
	}
	if u.Spliced > 0 || u.Replayed > 0 {
		say("history", fmt.Sprintf("%d tokens as they were generated, reasoning of %d turns put back", u.Spliced, u.Replayed), "earlier replies of this conversation")
	}
	if u.Hit == "" {
		say("cache", "not known yet", "the request waits")
	} else {
		say("cache", fmt.Sprintf("%s: %d of %d tokens, %d of them from disk, parted after %d", u.Hit, u.Cached, u.Prompt, u.Disk, u.Common), explainParting(u))
	}
	u.Decisions = all
	if r.Explain == chat.ExplainText {
		u.Text = p.text
	}
}

// explainParting is where a prompt parted from what was stored.
func explainParting(u *chat.Usage) string {
	switch {
	case u.Parted > 0:
		return fmt.Sprintf("message %d is the first that differs", u.Parted-1)
	case u.Hit == "miss":
		return "nothing stored begins so"
	case u.Hit == "lcp":
		return "what was stored goes on differently"
	case u.Hit == "prefix":
		return "what was stored ends inside the prompt"
	}
	return "all of the prompt was stored"
}

func (g *Generator) explainTemplate() (what, value, origin string) {
	return "template", g.cfg.Template.Name(), decided(g.cfg.Template.given, chat.OfSettings, "the model's folder")
}

func (g *Generator) explainParser() (what, value, origin string) {
	_, why := chooseFamily(g.cfg)
	var set []string
	for _, name := range []string{g.cfg.ToolParser, g.cfg.ReasoningParser} {
		if name != "" && name != "auto" {
			set = append(set, name)
		}
	}
	if len(set) > 0 {
		why = chat.OfSettings + ": " + strings.Join(set, ", ")
	}
	return "parser", g.family.Name, why
}

func (g *Generator) explainThinking(r *chat.Request, p *prompt) (what, value, origin string) {
	what, value = "thinking", decided(p.thinks, "on", "off")
	switch {
	case !g.cfg.Info.Thinking:
		origin = "the model does not reason"
	case g.holds():
		origin = chat.OfSettings
	case p.calls:
		origin = "the reply begins with a call that the request demands"
	case r.Thinking.Mode != chat.Default:
		origin = chat.OfRequest
	case g.cfg.Thinking != chat.Default:
		origin = chat.OfSettings
	case r.Thinking.Short && !p.thinks:
		origin = "the reply is to be short"
	default:
		origin = "the template"
	}
	return what, value, origin
}

func (g *Generator) explainLength(r *chat.Request, p *prompt) (what, value, origin string) {
	room := g.cfg.Engine.Context() - len(p.tokens)
	n := cmp.Or(g.maxTokens(r, p), room)
	switch {
	case n == room:
		origin = "the room left in the context"
	case n == r.MaxTokens:
		origin = chat.OfRequest
	default:
		origin = chat.OfSettings
	}
	return "max_tokens", strconv.Itoa(n), origin
}

func decided(yes bool, then, otherwise string) string {
	if yes {
		return then
	}
	return otherwise
}

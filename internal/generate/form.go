package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
	"hearth/internal/vision"
)

// form is what a chat template can render, found out by trial: templates refuse or silently drop what their authors did
// not think of. Fitting a conversation to it depends on nothing else, so turns that have been rendered once are rendered
// the same in every later request.
type form struct {
	traits
	ids   dialect.IDs
	write func([]*call) string // writes calls as text, for templates that leave them out

	imageURL bool      // images are parts of type image_url, not image
	seen     *pictures // of the request
}

// stricter are the forms that are tried in turn when the template refuses a conversation all the same: a system message,
// then user and assistant one after the other; the same without a system message; and without calls.
func (f form) stricter() []form {
	alternating, plain, words := f, f, f
	alternating.traits &^= anyOrder
	plain.traits &^= anyOrder | systemFirst
	words.traits &^= anyOrder | systemFirst | anyCalls
	return []form{alternating, plain, words}
}

// probeSteps bounds all trial renderings of a template together. A template of the published ones takes 45,000 at most.
const probeSteps = 1_000_000

// prober renders trial conversations.
type prober struct {
	t      *Template
	form   form
	family *dialect.Family
	limits jinja.Limits
	steps  int   // taken so far
	spent  bool  // a trial reached a limit; there are no more, so that loading does not take long
	works  bool  // a trial was rendered
	err    error // of the first trial that was not
}

// tools reports whether the model gets tools: where the template has a place for them, or in the system text.
func (p *prober) tools() bool { return p.form.has(toolsDeclared) || p.form.has(toolsInSystem) }

// Words that trial conversations are made of.
const (
	probeA     = "hearthprobea"
	probeB     = "hearthprobeb"
	probeC     = "hearthprobec"
	probeD     = "hearthprobed"
	probeTool  = "hearthprobetool"
	probeValue = "hearthvalue"
)

// findForm tries what the template can render, for output of the given family. With tell, tools that it has no place for go into
// the system text, which may change the family. It is an error if the template leaves out what the user says.
func findForm(t *Template, family *dialect.Family, limits jinja.Limits, tell bool, images *vision.Places) (*prober, error) {
	p := &prober{t: t, limits: limits, family: family}
	p.limits.Steps, p.limits.Spent = min(cmp.Or(limits.Steps, jinja.DefaultSteps), probeSteps), &p.steps
	f := &p.form
	f.ids, f.write = family.IDs, writer(family.Earlier)
	user, said, sys := trial(roleUser), trial(roleAssistant), trial(roleSystem)
	if !p.prints(user(probeA)) { // as some templates of models that also see images
		f.set(contentIsList, true)
		if !p.prints(user(probeA)) {
			if p.err == nil {
				return nil, fmt.Errorf("chat template %s leaves out what the user says", t.Name())
			}
			f.set(contentIsList, false) // one that fails is believed to want strings
			p.works = false             // it may have run on the list, without a word of it
		}
	}
	f.set(toolsAreEmptyList, p.render([]turn{user(probeA)}) == "")
	f.set(toolsDeclared, strings.Contains(p.renderWith([]turn{user(probeA)}, setProbeTool), probeTool) ||
		strings.Contains(p.renderWith([]turn{sys(probeB), user(probeA)}, setProbeTool), probeTool) ||
		p.spent || !p.works) // nobody knows
	if f.set(toolsInSystem, tell && !f.has(toolsDeclared)); f.has(toolsInSystem) {
		p.family = dialect.Taught(family)
		f.ids, f.write = p.family.IDs, writer(p.family.Written)
	}
	p.findParts()
	p.findTools()
	f.set(systemFirst, p.prints(sys(probeA), user(probeB)))
	f.set(systemStays, p.prints(sys(probeA), user(probeB), said(probeC), user(probeD)))
	f.set(systemSeveral, f.has(systemFirst) && p.prints(sys(probeA), sys(probeB), user(probeC)))
	f.set(systemLater, f.has(systemFirst) && p.prints(user(probeA), sys(probeB)) && p.prints(user(probeA), said(probeB), sys(probeC), user(probeD)))
	f.set(usersInRow, p.prints(user(probeA), user(probeB)) && p.prints(user(probeA), said(probeB), user(probeC), user(probeD)))
	f.set(assistantsInRow, p.prints(user(probeA), said(probeB), said(probeC), user(probeD)))
	f.set(assistantFirst, p.prints(said(probeA), user(probeB)))
	f.set(systemAlone, p.prints(sys(probeA)))
	f.set(assistantEmpty, p.prints(user(probeA), said(""), user(probeB)))
	if f.has(toolResults) {
		k := probeCall("call00001")
		asked, result := turn{role: roleAssistant, calls: []*call{k}}, turn{role: roleTool, text: probeB, answers: k}
		stray := turn{role: roleTool, text: probeB, answers: &call{id: "call00001"}}
		f.set(userAfterTool, p.prints(user(probeA), asked, result, user(probeC)))
		f.set(systemLater, f.has(systemLater) && p.prints(user(probeA), asked, result, sys(probeC)))
		f.set(callsWithoutResult, p.prints(user(probeA), stray, said(probeC), user(probeD)) &&
			p.prints(user(probeA), asked, user(probeB), result) && p.prints(user(probeA), asked, user(probeC)))
	}
	if f.has(assistantsInRow) && !f.has(callsWithText) && !f.has(callsAfterText) {
		k := probeCall("call00001")
		words := turn{role: roleAssistant, text: probeC}
		thought, asked, result := words, turn{role: roleAssistant, calls: []*call{k}}, turn{role: roleTool, text: probeB, answers: k}
		thought.reasoning = probeD
		apart := p.render([]turn{user(probeA), thought, asked, result})
		asked.reasoning = probeD
		f.set(reasoningByCalls, apart != "" && !strings.Contains(apart, probeD) &&
			p.inOrder([]turn{user(probeA), words, asked, result}, probeA, probeC, probeD, probeValue, probeB))
	}
	p.findInline()
	if images != nil {
		p.findImages(images.Mark)
	}
	return p, nil
}

// findInline tries what becomes of reasoning that stands in tags in a text.
func (p *prober) findInline() {
	if p.family.Open == "" {
		return
	}
	f, k := &p.form, probeCall("call00001")
	raw := p.family.Open + "\n\n\n" + probeB + "\n\n\n" + p.family.Close + "\n\n\n" + probeC // blank lines that no template writes
	takes := func(turns ...turn) bool {
		out := p.render(turns)
		return p.spent || out != "" && !strings.Contains(out, raw)
	}
	user, said, last := turn{role: roleUser, text: probeA}, turn{role: roleAssistant, text: raw}, turn{role: roleUser, text: probeD}
	f.set(takesInline, takes(user, said, last))
	f.set(takesInlineByCalls, f.has(takesInline))
	if f.has(callsPrinted) && f.has(callsWithText) && f.has(toolResults) {
		said.calls = []*call{k}
		f.set(takesInlineByCalls, takes(user, said, turn{role: roleTool, text: probeD, answers: k}))
	}
}

// trial makes turns of a role.
func trial(role string) func(string) turn {
	return func(text string) turn { return turn{role: role, text: text} }
}

func probeCall(id string) *call {
	return &call{id: id, name: probeTool, args: []byte(`{"hearthkey": "` + probeValue + `"}`)}
}

// findParts tells whether reasoning is printed, with its tag behind it, where it is a part of the content, and only there.
func (p *prober) findParts() {
	if p.family.Open == "" {
		return
	}
	thought := []turn{{role: roleUser, text: probeA}, {role: roleAssistant, reasoning: probeD, text: probeB}}
	if strings.Contains(p.render(thought), probeD) {
		return
	}
	p.form.set(reasoningIsPart, true)
	p.form.set(reasoningIsPart, strings.Contains(between(p.render(thought), probeD, probeB), strings.TrimSpace(p.family.Close)))
}

// findTools sets what has to do with calls.
func (p *prober) findTools() {
	f := &p.form
	talk := func(k *call) []turn {
		return []turn{{role: roleUser, text: probeA}, {from: 2, role: roleAssistant, calls: []*call{k}}, {role: roleTool, text: probeB, answers: k},
			{role: roleAssistant, text: probeC}, {role: roleUser, text: probeD}}
	}
	nine := probeCall("call00001")
	best := *f
	grade := 0
	for _, wants := range []traits{0, argumentsAreText, contentIsNull, contentIsNull | argumentsAreText} {
		f.set(contentIsNull|argumentsAreText, false)
		f.set(wants, true)
		if g := argumentsRead(p.render(talk(nine))); g > grade {
			best, grade = *f, g
		}
	}
	*f = best
	f.set(callsPrinted, grade > 0)
	f.set(toolResults, p.inOrder(talk(nine), probeA, probeB) && (f.has(callsPrinted) || !f.has(toolsInSystem)))
	if f.ids == dialect.IDsKept && f.has(toolResults) && !p.inOrder(talk(probeCall("call_0123456789abcdef")), probeA, probeB) {
		f.ids = dialect.IDsNine
	}
	said, _, _ := strings.Cut(p.render(talk(nine)), probeB)
	f.set(callsWithID, strings.Contains(said, nine.idIn(f.ids)))
	two := &call{id: "call00002", name: probeTool, args: []byte(`{"hearthkey": "hearthother"}`)}
	both := []turn{{role: roleUser, text: probeA}, {role: roleAssistant, calls: []*call{nine, two}},
		{role: roleTool, text: probeB, answers: nine}, {role: roleTool, text: probeC, answers: two}}
	f.set(callsParallel, p.prints(both...) && (!f.has(callsPrinted) || strings.Contains(p.render(both), "hearthother")))
	mixed := talk(nine)
	mixed[1].text = probeC
	f.set(callsWithText, !f.has(callsPrinted) || p.inOrder(mixed, probeA, probeC, probeValue) && !p.textIsReasoning(mixed[:3]))
	mixed[1].reasoning = probeD
	f.set(callsWithReasoning, p.inOrder(mixed, probeA, probeB))
	if f.has(callsPrinted) {
		p.findLoops(mixed)
	}
}

// textIsReasoning tells whether a template prints text beside a call, the second turn's, as it prints reasoning.
func (p *prober) textIsReasoning(turns []turn) bool {
	said, thought := p.render(turns), slices.Clone(turns)
	thought[1].text, thought[1].reasoning = "", turns[1].text
	return said != "" && said == p.render(thought)
}

// findLoops sets what has to do with words and reasoning in a loop of calls. The second of the turns has both and a call.
func (p *prober) findLoops(turns []turn) {
	f := &p.form
	if !f.has(callsWithText) {
		f.set(callsAfterText, true)
		f.set(callsAfterText, p.inOrder(turns[:3], probeA, probeD, probeC, probeValue, probeB) && p.inOrder(turns, probeA, probeC, probeValue, probeB))
	}
	loop := slices.Clone(turns[:4])
	loop[1].text = ""
	loop = append(loop, loop[1:3]...)
	loop[4].reasoning = ""
	f.set(answersEndReasoning, p.inOrder(slices.Delete(slices.Clone(loop), 3, 4), probeA, probeD, probeValue, probeB) &&
		p.inOrder(loop, probeA, probeC, probeB) && !strings.Contains(p.render(loop), probeD))
}

// setProbeTool declares the tool of the trials.
func setProbeTool(vars *jinja.Dict) {
	vars.Set("tools", jinja.NewList(object("type", "function", "function", object("name", probeTool, "description", "A tool.",
		"parameters", object("type", "object", "properties", object("hearthkey", object("type", "string", "description", "A key.")))))))
}

// argumentsRead grades how the trial's arguments came out: not at all, garbled, or well.
func argumentsRead(out string) int {
	switch {
	case !strings.Contains(out, probeValue):
		return 0
	case strings.Contains(out, `\"hearthkey`), strings.Contains(out, `'hearthkey`): // JSON in JSON, Python's repr
		return 1
	}
	return 2
}

// render gives the text of a trial, "" if the template fails.
func (p *prober) render(turns []turn) string { return p.renderWith(turns, func(*jinja.Dict) {}) }

// renderWith is render with more variables.
func (p *prober) renderWith(turns []turn, set func(*jinja.Dict)) string {
	if p.spent {
		return ""
	}
	vars := p.t.tokens.Clone()
	messages := p.form.messages(context.Background(), turns)
	vars.Set("messages", messages)
	vars.Set("tools", p.form.noTools())
	vars.Set("add_generation_prompt", true)
	set(vars)
	if !p.form.has(toolsInSystem) && slices.ContainsFunc(turns, func(t turn) bool { return t.role == roleTool || len(t.calls) > 0 }) {
		setProbeTool(vars)
	}
	setLegacy(p.t, vars, time.Now)
	tools, _ := vars.Get("tools")
	list, _ := tools.(*jinja.List)
	vars.Set("documents", nil)
	t := p.t.forRequest(list != nil && len(list.Items) > 0)
	out, spans, err := t.RenderSpans(context.Background(), vars, p.limits, t.Now)
	if err != nil {
		e := (*jinja.Error)(nil)
		p.spent = errors.As(err, &e) && e.Kind == jinja.Limit
		p.err = cmp.Or(p.err, err)
		return ""
	}
	p.works = true
	out, _ = preambles(p.family, out, spans, messages)
	return out
}

// warnings says what is wrong with a template as far as its trials tell.
func (p *prober) warnings() []string {
	switch {
	case p.spent:
		return []string{fmt.Sprintf("chat template %s: the trials that show what it can render end at a limit, so most of what it can do goes unused: %s",
			p.t.Name(), firstLine(p.err))}
	case !p.works:
		return []string{fmt.Sprintf("chat template %s fails on every trial conversation, and so will most requests: %s", p.t.Name(), firstLine(p.err))}
	}
	return nil
}

// firstLine is an error in one line that is not long.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return head(line)
}

// mostQuoted is how much of a template's words an error has, in bytes.
const mostQuoted = 1000

// head is a text, or as much of it as an error quotes.
func head(text string) string {
	if short := clip(text, mostQuoted); short != text {
		return short + "…"
	}
	return text
}

// clip is as many whole runes of a text's beginning as fit into so many bytes.
func clip(text string, most int) string {
	for n := most; n < len(text); n-- {
		if n == 0 || utf8.RuneStart(text[n]) {
			return text[:n]
		}
	}
	return text
}

// noTools is what the variable tools is without any.
func (f form) noTools() jinja.Value {
	if f.has(toolsAreEmptyList) {
		return jinja.NewList()
	}
	return nil
}

// prints tells whether a trial's text has what all its turns say, in their order.
func (p *prober) prints(turns ...turn) bool {
	words := make([]string, len(turns))
	for i, t := range turns {
		words[i] = t.text
	}
	return p.inOrder(turns, words...)
}

// inOrder tells whether a trial's text has the words in their order.
func (p *prober) inOrder(turns []turn, words ...string) bool {
	out := p.render(turns)
	for _, w := range words {
		_, rest, ok := strings.Cut(out, w)
		if !ok {
			return false
		}
		out = rest
	}
	return true
}

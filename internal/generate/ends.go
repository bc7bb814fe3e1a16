package generate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
	"hearth/internal/tokenizer"
)

// End is a token that ends a reply.
type End struct {
	ID    int32  `json:"id"`
	Token string `json:"token"`
	// Template says that no file names it: the template's trials have shown it.
	Template bool `json:"from_template,omitempty"`
}

// turnEnds are the tokens that end a reply: those that the folder's files name, and those that its template writes after an
// assistant's words. Some folders name only the end of a document, or nothing; replies would then go on and make up turns. Where
// a template that a person gave writes no token there, its texts end a reply.
func turnEnds(cfg *Config, family *dialect.Family, p *prober) (ends []End, texts []string) {
	ids := slices.Clone(cfg.StopIDs)
	if id, ok := cfg.Tokenizer.EOS(); ok && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	named := len(ids)
	if p != nil {
		f := &endFinder{tok: cfg.Tokenizer, family: family, p: p, alone: named == 0, given: cfg.Template.given}
		found := f.find()
		for _, id := range found {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if f.given && len(found) == 0 {
			texts = f.texts()
		}
	}
	ends = make([]End, len(ids))
	for i, id := range ids {
		text, _ := cfg.Tokenizer.Token(id)
		ends[i] = End{id, text, i >= named}
	}
	return ends, texts
}

// endFinder looks for the special tokens that end an assistant's turn in trial conversations.
type endFinder struct {
	tok    *tokenizer.Tokenizer
	family *dialect.Family
	p      *prober
	alone  bool // no file names a token
	given  bool // the template is not the folder's: its marks count whether or not the folder calls them special
}

// special tells whether a token may be one that the template sets between texts.
func (f *endFinder) special(id int32) bool {
	if f.tok.Special(id) {
		return true
	}
	name, _ := f.tok.Token(id)
	return f.given && markForm.FindString(name) == name && name != ""
}

// Tokens that end turns in a vocabulary that has both, though no trial tells.
const (
	glmUser = "<|user|>" // begins a user's turn and is what the model ends its own with
	glmTool = "<|observation|>"
)

func (f *endFinder) find() []int32 {
	if len(f.family.Ends) > 0 {
		return f.known(f.family.Ends...)
	}
	next, before, last, ok := f.behind()
	if !ok {
		return nil
	}
	next, _, _ = strings.Cut(next, probeC)
	asked := []turn{{role: roleUser, text: probeA}}
	start := f.render(asked, true)
	prompts := start == f.render(asked, false) // the template writes a generation prompt in any case, if it has one

	if id, ok := f.shared(f.encode(next), f.encode(last), f.first(start), prompts); ok {
		return f.outside(id)
	}
	// The template ends a turn in two ways, or only one that another follows, or only the last one.
	var found []int32
	if tail := f.first(last); len(tail) > 0 && !slices.Contains(f.encode(before), tail[len(tail)-1]) {
		found = append(found, tail[len(tail)-1])
	}
	if tail := f.first(next); len(tail) > 0 {
		before, _, _ := strings.Cut(start, probeA)
		bos, _ := f.tok.BOS() // no id where there is none
		switch id := tail[0]; {
		case !slices.Contains(f.encode(before), id):
			found = append(found, id)
		case len(f.known(glmTool)) > 0 && slices.Equal(f.known(glmUser), tail[:1]):
			found = append(found, f.known(glmUser, glmTool)...)
		case f.alone && len(found) == 0 && id != bos:
			found = append(found, id) // what begins another turn: nothing else would end this one
		}
	}
	return f.outside(found...)
}

// behind is what follows an assistant's words: next where another turn comes, last where none does, with what is before them.
func (f *endFinder) behind() (next, before, last string, ok bool) {
	user, said := trial(roleUser), trial(roleAssistant)
	_, next, ok = strings.Cut(f.render([]turn{user(probeA), said(probeB), user(probeC)}, true), probeB)
	if ok {
		before, last, _ = strings.Cut(f.render([]turn{user(probeA), said(probeB)}, false), probeB)
	}
	return next, before, last, ok
}

// shared is the last special token that follows the assistant's words both where another turn comes and where none does. It
// stands before the tokens that begin turns (openers). It may itself be one of those if it follows the words at once, unless the
// template always writes a generation prompt.
func (f *endFinder) shared(next, last, openers []int32, prompts bool) (id int32, ok bool) {
	for i := 0; i < min(len(next), len(last)) && next[i] == last[i]; i++ {
		if !f.special(next[i]) {
			continue
		}
		if (ok || prompts) && slices.Contains(openers, next[i]) {
			break
		}
		id, ok = next[i], true
	}
	return id, ok
}

// known are tokens of the vocabulary by their names, as far as they are special.
func (f *endFinder) known(names ...string) []int32 {
	var ids []int32
	for _, name := range names {
		if id, ok := f.tok.ID(name); ok && f.special(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// mostTrial is how long a trial may be to be looked at: its text becomes tokens.
const mostTrial = 256 << 10

func (f *endFinder) render(turns []turn, prompt bool) string {
	text := f.p.renderWith(turns, func(vars *jinja.Dict) { vars.Set("add_generation_prompt", prompt) })
	if len(text) > mostTrial {
		return ""
	}
	return text
}

func (f *endFinder) encode(text string) []int32 {
	return f.tok.Encode(text, tokenizer.EncodeOptions{ParseSpecial: true})
}

// first are the special tokens that a text begins with, white space aside.
func (f *endFinder) first(text string) []int32 {
	var found []int32
	for _, id := range f.encode(text) {
		switch {
		case f.special(id):
			found = append(found, id)
		case strings.TrimSpace(f.tok.Decode([]int32{id}, false)) != "":
			return found
		}
	}
	return found
}

// outside are those of some tokens that do not stand within an assistant's turn as well.
func (f *endFinder) outside(ids ...int32) []int32 { return slices.DeleteFunc(ids, f.inside) }

// inside tells whether a token stands within an assistant's turn as well: between what it thinks, says and calls.
func (f *endFinder) inside(id int32) bool {
	name, _ := f.tok.Token(id)
	if strings.Contains(f.family.Close, name) {
		return true
	}
	think := []turn{{role: roleUser, text: probeA}, {role: roleAssistant, reasoning: probeD, text: probeB}}
	k := probeCall("call00001") // in a turn that others follow: of the last one some templates make two
	act := []turn{{role: roleUser, text: probeA}, {role: roleAssistant, text: probeB, calls: []*call{k}}, {role: roleTool, text: probeC, answers: k},
		{role: roleAssistant, text: probeC}, {role: roleUser, text: probeD}}
	return strings.Contains(between(f.render(think, false), probeD, probeB), name) || strings.Contains(between(f.render(act, true), probeB, probeValue), name)
}

// between is what of a text stands between two words, "" without either.
func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, ok := strings.Cut(text, to)
	if !ok {
		return ""
	}
	return text
}

// leastEnd is how many bytes a text within a line must have to end a reply: fewer stand in any answer.
const leastEnd = 4

// texts are those by which the template tells that the assistant's turn is over: what it always writes behind it, or else what
// begins the next turn, from its line on.
func (f *endFinder) texts() []string {
	next, _, last, ok := f.behind()
	if !ok {
		return nil
	}
	next, _, ok = strings.Cut(next, probeC)
	n := 0
	for n < min(len(next), len(last)) && next[n] == last[n] {
		n++
	}
	if end := strings.TrimSpace(next[:n]); len(end) >= leastEnd {
		// A template that writes a generation prompt in any case has the beginning of the next turn there too, which a model
		// may not come to write.
		if m := markForm.FindStringIndex(end); m != nil {
			end = end[:m[1]]
		}
		return []string{end}
	}
	end := strings.TrimSpace(next)
	if lead := next[:strings.Index(next, end)]; strings.Contains(lead, "\n") && end != "" {
		return []string{"\n" + end}
	}
	if !ok || len(end) < leastEnd {
		return nil
	}
	return []string{end}
}

// markForm is what marks of turns look like in the templates of all families.
var markForm = regexp.MustCompile(`<[|｜][^<>\s]{1,60}[|｜]>|</?s>|<(?:bos|eos)>|<(?:start|end|begin)_of_[a-z_]{1,30}>`)

// missingMarks warns of marks that a template which a person gave writes and the vocabulary does not have.
func missingMarks(cfg *Config, p *prober, ends []string) []string {
	if !cfg.Template.given {
		return nil
	}
	text := p.render([]turn{{role: roleUser, text: probeA}, {role: roleAssistant, text: probeB}, {role: roleUser, text: probeC}})
	var missing []string
	for _, m := range markForm.FindAllString(text[:min(len(text), mostTrial)], -1) {
		if _, ok := cfg.Tokenizer.ID(m); !ok && !slices.Contains(missing, m) {
			missing = append(missing, m)
		}
	}
	if missing == nil {
		return nil
	}
	const most = 8
	warning := fmt.Sprintf("chat template %s: the vocabulary has no %s, so the model reads that as plain text", cfg.Template.Name(), strings.Join(missing[:min(most, len(missing))], ", "))
	if len(ends) > 0 {
		warning += fmt.Sprintf("; a reply ends where it writes %q", ends[0])
	}
	return []string{warning}
}

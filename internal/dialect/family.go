package dialect

import (
	"slices"
	"strings"
)

// Family is one dialect. Every field is set: what a family lacks is written as none, or as a value whose name begins with
// no and whose fields are empty.
type Family struct {
	Name   string
	Names  []string // of parsers, here and elsewhere, that mean this family
	Shared []string // that mean another family, and this one where the evidence shows it

	*Think
	// Resume begins the rest of a turn behind reasoning that was closed for the model: first what may be a call or an answer,
	// then the answer, then text that a call is to follow.
	Resume []string
	Replay Replay
	*Calls

	Markers []string // all literal markers, to be decoded even where they are special tokens
	Control []string // of those, the ones that a request must not forge: no template looks for them in messages
	Ends    []string // tokens that end a turn, where no trial of a template shows them
	Builtin *Builtin // the chat template for folders that have none
	New     func(Options) Parser

	matches func(Evidence) bool
	syntax  *syntax // of formats that tagged reads
}

// Replay is what becomes of reasoning that clients leave out of earlier turns.
type Replay uint8

const (
	ReplayNever   Replay = iota + 1 // the publisher wants none in prompts, or has said nothing and its template prints none
	ReplayPrinted                   // it is put back, and the publisher's template prints as much of it as the model was trained on
)

// Think is a form of reasoning. Several families may have it, and a template may show another than its family's own.
type Think struct {
	Open, Close    string   // tags around it, "" if there are none
	Leave          string   // closes it where the model has not, with the line ends that belong to the tag
	ReasoningNames []string // of parsers, here and elsewhere, that mean this form
	at             *place
}

// place is where a tag that opens reasoning counts, and what belongs to it.
type place struct {
	anywhere bool   // not only before the answer
	label    string // follows the tag
}

// Calls is how tools are called.
type Calls struct {
	// Force returns the text that makes the model call a tool, the one of that name unless it is empty, when the prompt is
	// continued with it; the parser is fed it as if the model had written it. Nil where there are no calls.
	Force func(tool string) string

	// Written is the text of a template of calls as the parser reads them, for prompts that teach the form. Earlier is that of
	// calls in earlier turns under a chat template that declares tools and leaves calls out. The variables are calls, each with
	// name and arguments, and ids, those of the calls as IDsNumbered has them.
	Written, Earlier string
	IDs              IDs
	*Object
	Notation *Notation
}

// Object is what stands around a call that is one JSON object with its name and its arguments.
type Object struct{ CallOpen, CallClose string }

// What families have that lack something. The calls of noCalls are written where a prompt must show some all the same.
var (
	none         = []string{}
	noThink      = &Think{ReasoningNames: none, at: beforeAnswer}
	noCalls      = &Calls{Written: hermesCalls, Earlier: hermesCalls, IDs: IDsKept, Object: noObject, Notation: noNotation}
	noObject     = &Object{}
	noBuiltin    = &Builtin{}
	noSyntax     = &syntax{}
	beforeAnswer = &place{}
)

// tagFamily completes a family whose output tagged reads.
func tagFamily(f *Family, s *syntax) *Family {
	f.syntax = s
	f.Markers = slices.DeleteFunc(slices.Concat(none, s.tags(), f.Markers, []string{f.Open, f.Close}), func(m string) bool { return m == "" })
	slices.Sort(f.Markers)
	f.Markers = slices.Compact(f.Markers)
	f.Control = without(f.Markers, f.Open, f.Close, callOpen, callClose)
	if f.Force != nil {
		s.leaking()
	}
	first := firstBytes(s, f.Think)
	f.New = func(o Options) Parser { return newTagged(s, f.Think, first, o) }
	return f
}

func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(m string) bool { return slices.Contains(some, m) })
}

// guarded is a family whose marks around reasoning end turns too, or begin them: no request may forge them.
func guarded(f *Family) *Family {
	f.Control = f.Markers
	return f
}

// LeaveReasoning is what closes an open block of reasoning, and what then begins the answer where that has a beginning of
// its own.
func (f *Family) LeaveReasoning() (end, answer string) {
	if len(f.Resume) == 0 {
		return f.Leave, ""
	}
	end = f.Close + f.Resume[0]
	if len(f.Resume) > 1 {
		answer = f.Resume[1]
	}
	return end, answer
}

// Plain tells whether an answer is text that nothing need stand before, but for Resume.
func (f *Family) Plain() bool { return !f.syntax.headers }

// Around are marks that may stand before an answer and are no part of it.
func (f *Family) Around() []string { return slices.Concat(f.syntax.drop, f.syntax.leads) }

// CallOpeners are what calls begin with; false if one may also begin as an answer does, or as reasoning.
func (f *Family) CallOpeners() (openers []string, told bool) {
	if f.syntax == noSyntax {
		if f.Force == nil {
			return nil, false
		}
		openers = []string{f.Force("")}
	}
	for _, o := range f.syntax.openers {
		openers = append(openers, o.tag)
	}
	openers = append(openers, f.syntax.sections...)
	return openers, f.syntax.bare == nil && !slices.ContainsFunc(openers, func(o string) bool { return f.Open != "" && strings.HasPrefix(f.Open, o) })
}

// Opening is what begins reasoning.
func (f *Family) Opening() string { return f.Open + f.at.label }

// Preamble gives where in a turn with calls, as a template prints it, text beside them stands, and how it is written there; -1
// where the family has no form for it, or the turn no place.
func (f *Family) Preamble(turn, text string) (at int, written string) {
	if len(f.Resume) < 3 {
		return -1, ""
	}
	for start := f.Resume[0]; ; at += len(start) {
		i := strings.Index(turn[at:], start)
		if i < 0 {
			return -1, ""
		}
		if at += i; !strings.HasPrefix(turn[at+len(start):], f.Open) {
			return at, start + f.Resume[2] + text + f.Close
		}
	}
}

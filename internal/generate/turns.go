package generate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/chat"
)

// turn is a message as chat templates know them: one role, one text. A request's messages become turns, the turns are
// fitted to what the template can render (see form.fit), and what comes of it becomes the template's variable.
type turn struct {
	from      int    // which of the request's messages, counted from 1; 0: none
	role      string // system, user, assistant or tool
	name      string // of the participant
	text      string
	reasoning string  // assistant
	open      bool    // its reasoning goes on
	calls     []*call // assistant
	answers   *call   // tool: the call whose result this is; never nil
	reminder  bool    // user: a system message that had no place of its own, and what joined it
}

// call is a tool call of the conversation.
type call struct {
	id, name string // id: the client's
	said     string // the id that the model wrote; "" not known
	args     json.RawMessage
	number   int // among the calls of the conversation
	turn     int // the builder's, that it is in
	answered bool
}

// Roles of turns.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// billingHeader starts a line that an agent puts in front of its system prompt and that differs between its sessions: it
// would keep every prompt from sharing its beginning with another.
const billingHeader = "x-anthropic-billing-header:"

// turnsOf splits the conversation into turns. Every tool result becomes a turn of its own; what else stands in the same
// message becomes turns before and after it, in order.
func turnsOf(messages []chat.Message, seen *pictures, refuseMedia bool) ([]turn, error) {
	b := &turnBuilder{media: media{seen, refuseMedia}, turns: make([]turn, 0, len(messages)), byID: map[string]*sameID{}, ids: map[string]bool{}}
	for i := range messages {
		m := &messages[i]
		b.from = i + 1
		if m.Role == chat.Assistant {
			if err := b.assistant(m); err != nil {
				return nil, err
			}
			continue
		}
		start := 0
		for j := range m.Parts {
			if m.Parts[j].Kind != chat.PartToolResult {
				continue
			}
			if err := b.plain(m, m.Parts[start:j]); err != nil {
				return nil, err
			}
			b.result(m.Parts[j].Result)
			start = j + 1
		}
		if start == 0 || start < len(m.Parts) {
			if err := b.plain(m, m.Parts[start:]); err != nil {
				return nil, err
			}
		}
	}
	b.settle()
	return b.turns, nil
}

type turnBuilder struct {
	media
	from    int // the message, as turn has it
	turns   []turn
	results []result // of turns, those whose calls are not known yet: what follows says more about them

	calls   []*call // what results answer: those of the last turn with calls, and of turns before it that no result followed
	last    int     // calls[last:] are the last turn's
	begun   bool    // a result has followed
	open    int     // calls[:open] are answered
	settled int     // calls[:settled] have their results, or words in the place of one

	byID  map[string]*sameID // of the whole conversation, by the client's ids
	ids   map[string]bool    // that calls have
	count int                // calls so far
}

// result is a turn with what came of a call.
type result struct {
	at int    // in the builder's turns
	id string // the client's, of the call
}

// sameID are the calls of one id that it may still mean: it is another's if a client gives it again in a later turn.
type sameID struct {
	calls []*call
	last  int // calls[last:] are of one turn
	next  int // calls[:next] are answered
}

func (b *turnBuilder) plain(m *chat.Message, parts []chat.Part) error {
	if len(parts) == 0 && len(m.Parts) > 0 {
		return nil
	}
	if m.Role == chat.ToolRole { // without a result: text that a tool is said to have given
		b.result(&chat.ToolResult{Parts: parts})
		return nil
	}
	text, err := b.text(parts)
	if err != nil {
		return err
	}
	t := turn{from: b.from, role: string(m.Role), name: m.Name, text: text}
	if m.Role == chat.System && strings.HasPrefix(t.text, billingHeader) {
		_, rest, _ := strings.Cut(t.text, "\n")
		if t.text = strings.TrimLeft(rest, "\n"); t.text == "" {
			return nil
		}
	}
	b.turns = append(b.turns, t)
	return nil
}

func (b *turnBuilder) assistant(m *chat.Message) error {
	b.settle()
	text, err := b.text(m.Parts)
	if err != nil {
		return err
	}
	t := turn{from: b.from, role: roleAssistant, name: m.Name, text: text}
	var more strings.Builder // reasoning after the first part of it
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case chat.PartReasoning:
			if t.reasoning == "" {
				t.reasoning = p.Text
			} else {
				more.WriteString(p.Text)
			}
		case chat.PartToolCall:
			t.calls = append(t.calls, b.call(p.Call))
		}
	}
	if more.Len() > 0 {
		t.reasoning += more.String()
	}
	b.turns = append(b.turns, t)
	return nil
}

// call takes in a call of the turn that comes next.
func (b *turnBuilder) call(k *chat.ToolCall) *call {
	if b.begun {
		b.calls, b.begun, b.last, b.open, b.settled = nil, false, 0, 0, 0
	}
	c := &call{id: k.ID, name: k.Name, args: k.Arguments, number: b.count, turn: len(b.turns)}
	b.count++
	if n := len(b.calls); n > 0 && b.calls[n-1].turn < c.turn {
		b.last = n
	}
	b.calls = append(b.calls, c)
	if c.id == "" {
		c.id = fmt.Sprintf("call_%d", c.number)
	}
	for b.ids[c.id] { // templates look for the call of a result by its id, and know no place
		c.id = fmt.Sprintf("%s_%d", c.id, c.number)
	}
	b.ids[c.id] = true
	if k.ID == "" {
		return c
	}
	same := b.byID[k.ID]
	if same == nil || same.calls[0].number < b.calls[0].number {
		same = &sameID{}
		b.byID[k.ID] = same
	}
	if n := len(same.calls); n > 0 && same.calls[n-1].turn < c.turn {
		same.last = n
	}
	same.calls = append(same.calls, c)
	return c
}

func (b *turnBuilder) result(r *chat.ToolResult) {
	b.results = append(b.results, result{at: len(b.turns), id: r.CallID})
	b.turns = append(b.turns, turn{from: b.from, role: roleTool, text: b.joined(r.Parts, true)})
}

// settle finds the calls of the results since the last answer and puts these results in the order of the calls: most
// templates print no ids, so a model knows results by their places.
func (b *turnBuilder) settle() {
	if len(b.results) == 0 {
		return
	}
	b.begun = true
	b.pair()
	sorted := slices.Clone(b.results)
	slices.SortFunc(sorted, func(x, y result) int { return cmp.Or(b.place(x)-b.place(y), x.at-y.at) })
	turns := make([]turn, len(sorted))
	for i, r := range sorted {
		turns[i] = b.turns[r.at]
	}
	for i, r := range b.results {
		b.turns[r.at] = turns[i]
	}
	b.fill()
	b.results = b.results[:0]
}

// pair finds what each result answers: the call that it names, else the first one still open, because some clients rewrite
// ids. A result that answers nothing gets a call without a name.
func (b *turnBuilder) pair() {
	times := map[string]int{} // that an id is named; "" stands for those of no call
	for _, r := range b.results {
		if b.byID[r.id] == nil {
			r.id = ""
		}
		times[r.id]++
	}
	for _, r := range b.results {
		if same := b.byID[r.id]; same != nil {
			b.answer(r, same.take(times[r.id]))
		}
	}
	if times[""] <= len(b.calls)-b.last { // no more than the last turn can have asked for
		b.open = max(b.open, b.last)
	}
	for _, r := range b.results {
		if b.turns[r.at].answers != nil {
			continue
		}
		for b.open < len(b.calls) && b.calls[b.open].answered {
			b.open++
		}
		if b.open < len(b.calls) {
			b.answer(r, b.calls[b.open])
		} else {
			b.answer(r, &call{id: r.id, number: b.count, turn: -1})
		}
	}
}

// take gives the call that the next of so many results is for.
func (s *sameID) take(results int) *call {
	if results <= len(s.calls)-s.last {
		s.next = max(s.next, s.last)
	}
	c := s.calls[min(s.next, len(s.calls)-1)]
	s.next++
	return c
}

func (b *turnBuilder) answer(r result, c *call) {
	c.answered = true
	b.turns[r.at].answers = c
}

// place orders results: those of other calls than the last ones come behind, as they came.
func (b *turnBuilder) place(r result) int {
	n := b.turns[r.at].answers.number
	if len(b.calls) == 0 || n < b.calls[0].number {
		return b.count
	}
	return n
}

// fill puts a result that says so in the place of one that is missing among those of a turn.
func (b *turnBuilder) fill() {
	last := -1 // the place of a result
	among := map[int]bool{}
	for _, r := range b.results {
		if n := b.place(r); n < b.count {
			last = n
			among[b.turns[r.at].answers.turn] = true
		}
	}
	var missing []turn
	for ; b.settled < len(b.calls) && b.calls[b.settled].number < last; b.settled++ {
		if c := b.calls[b.settled]; !c.answered && among[c.turn] {
			missing = append(missing, noResult(c))
		}
	}
	if missing == nil {
		return
	}
	at := b.results[0].at
	rest := slices.Clone(b.turns[at:])
	b.turns = b.turns[:at]
	for _, t := range rest {
		for len(missing) > 0 && t.answers != nil && t.answers.number > missing[0].answers.number {
			b.turns, missing = append(b.turns, missing[0]), missing[1:]
		}
		b.turns = append(b.turns, t)
	}
}

// noResult stands for the result of a call that has none.
func noResult(c *call) turn { return turn{role: roleTool, text: "[no result]", answers: c} }

package generate

import (
	"encoding/json"
	"fmt"
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
func turnsOf(messages []chat.Message, refuseMedia bool) ([]turn, error) {
	b := &turnBuilder{refuse: refuseMedia, turns: make([]turn, 0, len(messages)), byID: map[string]*call{}}
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
	return b.turns, nil
}

type turnBuilder struct {
	refuse bool // media is an error, but for that in results of tools
	from   int  // the message, as turn has it
	turns  []turn
	open   []*call          // of the assistant's last turn with calls, from the first that is not answered on
	byID   map[string]*call // of the whole conversation, by the client's ids
	count  int              // calls so far
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
			c := &call{id: p.Call.ID, name: p.Call.Name, args: p.Call.Arguments, number: b.count}
			if c.id == "" {
				c.id = fmt.Sprintf("call_%d", b.count)
			}
			b.count++
			t.calls = append(t.calls, c)
			b.byID[c.id] = c
		}
	}
	if more.Len() > 0 {
		t.reasoning += more.String()
	}
	if len(t.calls) > 0 {
		b.open = t.calls
	}
	b.turns = append(b.turns, t)
	return nil
}

// result finds the call that is answered: by its id, else the first one still open, because some clients rewrite ids.
// A result that answers nothing gets a call without a name.
func (b *turnBuilder) result(r *chat.ToolResult) {
	c := b.byID[r.CallID]
	for len(b.open) > 0 && b.open[0].answered {
		b.open = b.open[1:]
	}
	if c == nil && len(b.open) > 0 {
		c = b.open[0]
	}
	if c == nil {
		c = &call{id: r.CallID, number: b.count}
	}
	c.answered = true
	b.turns = append(b.turns, turn{from: b.from, role: roleTool, text: lines(r.Parts), answers: c})
}

package wire

import (
	"strings"

	"hearth/internal/chat"
)

// Parts collects the parts of a message. Neighbouring texts become one part, in time that is linear in what they hold.
type Parts struct {
	done []chat.Part
	text string          // of the part under way, as long as it is one piece
	more strings.Builder // the same once there are several; text is empty then
}

// Text adds a paragraph: neighbouring texts become one part with a line break between them, so that a message cut into
// many pieces and the same message in one string are the same message.
func (p *Parts) Text(text string) {
	switch {
	case text == "":
		return
	case p.more.Len() == 0 && p.text == "":
		p.text = text
		return
	case p.more.Len() == 0:
		p.more.Grow(len(p.text) + 1 + len(text))
		p.more.WriteString(p.text)
		p.text = ""
	}
	if so := p.more.String(); so[len(so)-1] != '\n' {
		p.more.WriteByte('\n')
	}
	p.more.WriteString(text)
}

// Add adds a part. A text does not join those around it.
func (p *Parts) Add(part chat.Part) {
	p.end()
	p.done = append(p.done, part)
}

// All gives the parts. Nothing is added after it.
func (p *Parts) All() []chat.Part {
	p.end()
	return p.done
}

// end ends the text under way.
func (p *Parts) end() {
	text := p.text
	if p.more.Len() > 0 {
		text = p.more.String()
		p.more = strings.Builder{}
	}
	if p.text = ""; text != "" {
		p.done = append(p.done, chat.Part{Kind: chat.PartText, Text: text})
	}
}

// TextParts are the parts of a message of one text.
func TextParts(text string) []chat.Part {
	var p Parts
	p.Text(text)
	return p.All()
}

// AppendSystem adds text to the leading system message, or makes one.
func AppendSystem(r *chat.Request, text string) {
	if len(r.Messages) == 0 || r.Messages[0].Role != chat.System {
		system := chat.Message{Role: chat.System, Parts: TextParts(text)}
		r.Messages = append([]chat.Message{system}, r.Messages...)
		return
	}
	var p Parts
	for _, part := range r.Messages[0].Parts {
		if part.Kind == chat.PartText {
			p.Text(part.Text)
		} else {
			p.Add(part)
		}
	}
	p.Text(text)
	r.Messages[0].Parts = p.All()
}

// Turns are the messages of a turn of the model's in which calls were run here: results stand in messages of their own, between
// what it said before and after.
func Turns(parts []chat.Part) (turns []chat.Message) {
	from := 0
	for i := range parts {
		result := parts[i].Kind == chat.PartToolResult
		if i > from && result != (parts[from].Kind == chat.PartToolResult) {
			turns = append(turns, turn(parts[from:i]))
			from = i
		}
	}
	return append(turns, turn(parts[from:]))
}

// turn is a message of the model's, or of results.
func turn(parts []chat.Part) chat.Message {
	if len(parts) > 0 && parts[0].Kind == chat.PartToolResult {
		return chat.Message{Role: chat.ToolRole, Parts: parts}
	}
	return chat.Message{Role: chat.Assistant, Parts: parts}
}

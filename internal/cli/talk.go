package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hearth/internal/chat"
)

// talk is a conversation that is printed as it goes.
type talk struct {
	gen      chat.Generator
	out      io.Writer // answers
	notes    io.Writer // everything else
	terminal bool      // out is one: thinking is shown, control characters are not passed on
	messages []chat.Message
	images   []chat.Part // that go before the next text

	base bool // every text is continued by itself: the model does not chat
	most int  // tokens of such a text; 0: the settings'
}

// continues says in words what a base model does with a text.
func (t *talk) continues(once bool) string {
	what := "every line is continued by itself, and none is remembered"
	if once {
		what = "the text is continued"
	}
	if t.most > 0 {
		what += fmt.Sprintf(", by at most %d tokens (--max-tokens for more)", t.most)
	}
	return what + "; "
}

// request asks for what follows a text, and the conversation with it.
func (t *talk) request(text string) (*chat.Request, []chat.Message) {
	if t.base {
		return &chat.Request{Prompt: &chat.Prompt{Text: text, Path: "prompt"}, MaxTokens: t.most, ClampMaxTokens: true}, nil
	}
	asked := append(t.messages, chat.Message{Role: chat.User, Parts: append(slices.Clip(t.images), chat.Part{Kind: chat.PartText, Text: text})})
	return &chat.Request{Messages: asked}, asked
}

// Escape sequences around what the model thinks.
const (
	dim   = "\x1b[2m"
	plain = "\x1b[22m"
)

// turn asks, prints the answer and keeps both, the part that came before an interrupt too. A request that is refused
// leaves the conversation as it was.
func (t *talk) turn(ctx context.Context, text string) error {
	request, asked := t.request(text)
	start := time.Now()
	events, err := t.gen.Generate(ctx, request)
	if err != nil {
		return err
	}
	a := answer{talk: t, start: start}
	for e, err := range events {
		if errors.Is(err, context.Canceled) || err != nil && ctx.Err() != nil {
			break
		}
		if err != nil {
			a.end()
			return err
		}
		if err := a.event(&e); err != nil {
			return err
		}
	}
	a.end()
	a.speed()
	if t.base {
		return nil
	}
	t.images = nil // they are in the conversation now
	t.messages = append(asked, chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Kind: chat.PartText, Text: a.text.String()}}})
	return nil
}

// answer is the printing of one reply.
type answer struct {
	*talk
	start, first time.Time
	text         strings.Builder
	dimmed       bool
	begun        bool // something other than white space was printed
	newline      bool // the last character printed ended a line
	tokens       int
	finish       chat.Finish
}

func (a *answer) event(e *chat.Event) error {
	if (e.Kind == chat.EventText || e.Kind == chat.EventReasoning) && a.first.IsZero() {
		a.first = time.Now()
	}
	switch e.Kind {
	case chat.EventText:
		a.text.WriteString(e.Text)
		return a.print(e.Text, false)
	case chat.EventReasoning:
		if a.terminal {
			return a.print(e.Text, true)
		}
	case chat.EventFinish:
		a.finish = e.Finish
		if e.Usage != nil {
			a.tokens = e.Usage.Output
		}
	}
	return nil
}

// print writes text, switching between thinking and answer. Blank lines before the first word say nothing.
func (a *answer) print(text string, thinking bool) error {
	if !a.base && !a.begun || thinking != a.dimmed {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return nil
		}
	}
	if a.terminal {
		text = printable(text)
	}
	switch {
	case thinking && !a.dimmed:
		text = dim + text
	case !thinking && a.dimmed:
		text = plain + "\n\n" + text
	}
	a.dimmed, a.begun = thinking, true
	a.newline = strings.HasSuffix(text, "\n")
	_, err := io.WriteString(a.out, text)
	return err
}

// end closes the last line.
func (a *answer) end() {
	if a.dimmed {
		fmt.Fprint(a.out, plain)
	}
	if !a.newline {
		fmt.Fprintln(a.out)
	}
}

// speed reports tokens and rates. The first token belongs to the prompt, so the rate is of those after it.
func (a *answer) speed() {
	if a.tokens == 0 {
		return
	}
	s := fmt.Sprintf("%d tokens", a.tokens)
	if a.first.IsZero() {
		s += " and no text"
	} else {
		if d := time.Since(a.first).Seconds(); a.tokens > 1 && d > 0 {
			s += fmt.Sprintf(", %.1f tok/s", float64(a.tokens-1)/d)
		}
		s += fmt.Sprintf(", first after %.2f s", a.first.Sub(a.start).Seconds())
	}
	if a.finish == chat.FinishLength || a.finish == chat.FinishContext {
		s += ", cut off at the limit"
	}
	fmt.Fprintf(a.notes, "[%s]\n", s)
}

// printable drops control characters: a model's output must not command the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

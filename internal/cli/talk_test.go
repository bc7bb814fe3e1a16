package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/peterh/liner"

	"hearth/internal/chat"
	"hearth/internal/config"
)

// scripted answers with fixed events and notes what it was asked.
type scripted struct {
	events []chat.Event
	refuse error
	fail   error // after the events
	asked  [][]chat.Message
}

func (s *scripted) Model() chat.Model { return chat.Model{ID: "scripted"} }
func (s *scripted) Count(context.Context, *chat.Request) (int, error) {
	return 0, nil
}

func (s *scripted) Generate(_ context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	s.asked = append(s.asked, r.Messages)
	if s.refuse != nil {
		return nil, s.refuse
	}
	return func(yield func(chat.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
		if s.fail != nil {
			yield(chat.Event{}, s.fail)
		}
	}, nil
}

// typed is a prompter that types lines, then ends; "^C" aborts the line.
type typed struct{ lines []string }

func (p *typed) Prompt(string) (string, error) {
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	s := p.lines[0]
	p.lines = p.lines[1:]
	if s == "^C" {
		return "", liner.ErrPromptAborted
	}
	return s, nil
}

func (p *typed) AppendHistory(string) {}

func text(s string) chat.Event     { return chat.Event{Kind: chat.EventText, Text: s} }
func thinking(s string) chat.Event { return chat.Event{Kind: chat.EventReasoning, Text: s} }

var finish = chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &chat.Usage{Output: 3}}

func TestTurnOutput(t *testing.T) {
	events := []chat.Event{{Kind: chat.EventStart}, thinking("\nhm "), thinking("well\n"), text("\n\nyes"), text("\x1b[31m no"), finish}
	for name, tt := range map[string]struct {
		terminal bool
		events   []chat.Event
		want     string
	}{
		"terminal": {true, events, "\x1b[2mhm well\n\x1b[22m\n\nyes[31m no\n"},
		"pipe":     {false, events, "yes\x1b[31m no\n"},
		"newline":  {false, []chat.Event{text("a\n"), finish}, "a\n"},
		"thinking": {true, []chat.Event{thinking("a"), finish}, "\x1b[2ma\x1b[22m\n"},
		"nothing":  {false, []chat.Event{finish}, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, notes bytes.Buffer
			k := &talk{gen: &scripted{events: tt.events}, out: &out, notes: &notes, terminal: tt.terminal}
			if err := k.turn(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, out.String()); d != "" {
				t.Error(d)
			}
			begin := "[3 tokens, "
			if name == "nothing" {
				begin = "[3 tokens and no text]"
			}
			if !strings.HasPrefix(notes.String(), begin) {
				t.Errorf("notes %q", notes.String())
			}
		})
	}
}

func TestLoopKeepsTheConversation(t *testing.T) {
	gen := &scripted{events: []chat.Event{text("a"), finish}}
	var out, notes bytes.Buffer
	k := &talk{gen: gen, out: &out, notes: &notes}
	err := k.loop(t.Context(), &typed{lines: []string{"one", " ", "^C", "two", "/help", "/clear", "three", "/exit", "four"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ms := range gen.asked {
		var s []string
		for _, m := range ms {
			s = append(s, string(m.Role)+":"+m.Text())
		}
		got = append(got, strings.Join(s, " "))
	}
	if d := cmp.Diff([]string{"user:one", "user:one assistant:a user:two", "user:three"}, got); d != "" {
		t.Error(d)
	}
	if !strings.Contains(notes.String(), "/clear  forget") {
		t.Errorf("notes %q lack the help", notes.String())
	}
}

// A refusal is reported and forgotten; anything else ends the loop.
func TestLoopErrors(t *testing.T) {
	gen := &scripted{refuse: &chat.Error{Kind: chat.ContextLength, Msg: "prompt is too long"}}
	var out, notes bytes.Buffer
	k := &talk{gen: gen, out: &out, notes: &notes}
	if err := k.loop(t.Context(), &typed{lines: []string{"one"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes.String(), "hearth: error: prompt is too long\n") || len(k.messages) != 0 {
		t.Errorf("notes %q, %d messages kept", notes.String(), len(k.messages))
	}
	broken := errors.New("broken")
	k.gen = &scripted{events: []chat.Event{text("a")}, fail: broken}
	if err := k.loop(t.Context(), &typed{lines: []string{"one"}}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// What came before an interrupt is kept.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, notes bytes.Buffer
	k := &talk{gen: &scripted{events: []chat.Event{text("par")}, fail: context.Canceled}, out: &out, notes: &notes}
	err := interruptible(ctx, func(ctx context.Context) error {
		cancel()
		return k.turn(ctx, "q")
	})
	if !errors.Is(err, errInterrupted) || out.String() != "par\n" || len(k.messages) != 2 || k.messages[1].Text() != "par" {
		t.Errorf("error %v, output %q, messages %v", err, out.String(), k.messages)
	}
}

func TestRunArguments(t *testing.T) {
	for _, tt := range []struct {
		args          []string
		model, prompt string
		given         bool
	}{
		{nil, "", "", false},
		{[]string{"org/name"}, "org/name", "", false},
		{[]string{"What is it?"}, "", "What is it?", true},
		{[]string{"demo", "hi"}, "demo", "hi", true},
		{[]string{"demo", ""}, "demo", "", true},
	} {
		cfg := config.Default()
		prompt, given := arguments(cfg, tt.args)
		if cfg.Model != tt.model || prompt != tt.prompt || given != tt.given {
			t.Errorf("%q: model %q, prompt %q, given %v", tt.args, cfg.Model, prompt, given)
		}
	}
}

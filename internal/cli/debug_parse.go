package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hearth/internal/console"
	"hearth/internal/dialect"
	"hearth/internal/schema"
)

func newParseCmd() *cobra.Command {
	var family, reasoning, template, split string
	var events, raw bool
	cmd := &cobra.Command{
		Use:   "parse --family F",
		Short: "Take raw model output apart",
		Long: `Reads {"text": "...", "tools": [...], "thinking": true|false} a line and writes what the text means:
{"content": "...", "reasoning": "...", "tool_calls": [{"name": "...", "arguments": {...}}]}. Tools are in the form of either
API, or names; without tools there are no calls. With thinking the prompt has begun the reasoning, unless the text begins it
itself. "cut": true says that the text did not end by itself. A line that cannot be answered gives {"error": "line N: ..."},
and the command fails in the end.

F is a name that --tool-call-parser takes, or auto with --template.`,
		Example: `  echo '{"text":"<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>","tools":["f"]}' | hearth debug parse --family hermes
  hearth debug parse --family auto --template MODEL/chat_template.jinja --split every < outputs.jsonl`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := newOutputParser(family, reasoning, template, split)
			if err != nil {
				return err
			}
			p.events, p.raw = events, raw
			bad := 0
			err = eachLine(cmd, func(n int, line []byte) (any, error) {
				v, err := p.parse(line)
				if err != nil {
					bad++
					return nil, fmt.Errorf("line %d: %w", n, err)
				}
				return v, nil
			})
			if err == nil && bad > 0 {
				err = fmt.Errorf("%d of the lines failed", bad)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&family, "family", "", "`name` of the form in which the model writes tool calls")
	f.StringVar(&reasoning, "reasoning-parser", "auto", "`name` of the form in which it writes reasoning")
	f.StringVar(&template, "template", "", "chat template (`FILE`) that tells the family where the name is auto or stands for several")
	f.BoolVar(&events, "events", false, "write the list of events in place of their sum")
	f.BoolVar(&raw, "no-tool-repair", false, "take calls as they are written")
	f.StringVar(&split, "split", "", "feed the text in pieces of `N` bytes, or at every place: byte by byte and in any two pieces; the result must not change")
	return required(cmd, "family")
}

// outputParser answers the lines of debug parse.
type outputParser struct {
	family      *dialect.Family
	size        int  // of the pieces that the text is fed in; 0: whole
	every       bool // in any two pieces, and byte by byte
	events, raw bool
}

func newOutputParser(family, reasoning, template, split string) (*outputParser, error) {
	var e dialect.Evidence
	if template != "" {
		b, err := readFile(template)
		if err != nil {
			return nil, err
		}
		e.Template = string(b)
	}
	p := &outputParser{every: split == "every"}
	if n, err := strconv.Atoi(split); split != "" && !p.every {
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--split %s is neither a number of bytes nor every", split)
		}
		p.size = n
	}
	var err error
	p.family, _, err = dialect.Override(dialect.Choose(e), family, reasoning)
	return p, err
}

// output is a line that debug parse reads.
type output struct {
	Text     string            `json:"text"`
	Tools    []json.RawMessage `json:"tools"`
	Thinking bool              `json:"thinking"`
	Cut      bool              `json:"cut"`
}

// parsed is what debug parse writes of a line.
type parsed struct {
	Content   string       `json:"content"`
	Reasoning string       `json:"reasoning"`
	ToolCalls []parsedCall `json:"tool_calls"`
}

type parsedCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// parsedEvent is one entry of debug parse --events.
type parsedEvent struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
}

func (p *outputParser) parse(line []byte) (any, error) {
	var in output
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, fmt.Errorf(`want {"text":"…","tools":[…],"thinking":false}: %w`, err)
	}
	o := dialect.Options{NoRepair: p.raw}
	o.InReasoning = in.Thinking && !strings.HasPrefix(strings.TrimSpace(in.Text), strings.TrimSpace(p.family.Open))
	for i, raw := range in.Tools {
		t, err := toolOf(raw)
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		o.Tools = append(o.Tools, t)
	}
	run := func(parts ...string) []dialect.Piece { return pieces(p.family.New(o), in.Cut, parts) }
	whole := run(in.Text)
	differs := func(what string, parts ...string) error {
		if got := run(parts...); !slices.Equal(got, whole) {
			return fmt.Errorf("fed %s it gives %v, whole %v", what, eventsOf(got), eventsOf(whole))
		}
		return nil
	}
	var err error
	if p.size > 0 {
		err = differs(fmt.Sprintf("in pieces of %d bytes", p.size), chunks(in.Text, p.size)...)
	} else if p.every {
		err = differs("byte by byte", chunks(in.Text, 1)...)
		for at := 1; at < len(in.Text) && err == nil; at++ {
			err = differs(fmt.Sprintf("in two pieces, cut at byte %d,", at), in.Text[:at], in.Text[at:])
		}
	}
	switch {
	case err != nil:
		return nil, err
	case p.events:
		return eventsOf(whole), nil
	}
	return sumOf(whole), nil
}

func chunks(text string, size int) []string {
	var out []string
	for len(text) > size {
		out, text = append(out, text[:size]), text[size:]
	}
	return append(out, text)
}

// pieces feeds a text in parts; neighbours of a kind are joined whatever part they came in.
func pieces(p dialect.Parser, cut bool, parts []string) []dialect.Piece {
	var all []dialect.Piece
	for _, part := range parts {
		all = p.Feed(all, part)
	}
	if cut {
		p.Cut()
	}
	var out []dialect.Piece
	for _, q := range p.Finish(all) {
		if n := len(out); n > 0 && out[n-1].Kind == q.Kind && q.Kind != dialect.ToolStart && q.Kind != dialect.ToolEnd {
			out[n-1].Text += q.Text
			continue
		}
		out = append(out, q)
	}
	return out
}

var eventTypes = map[dialect.Kind]string{dialect.Text: "text", dialect.Reasoning: "reasoning", dialect.ToolStart: "tool_start",
	dialect.ToolArgs: "tool_args", dialect.ToolEnd: "tool_end"}

func eventsOf(ps []dialect.Piece) []parsedEvent {
	out := []parsedEvent{}
	for _, p := range ps {
		e := parsedEvent{Type: eventTypes[p.Kind], Text: p.Text}
		if p.Kind == dialect.ToolStart {
			e.Name, e.Text = p.Text, ""
		}
		out = append(out, e)
	}
	return out
}

// sumOf adds the pieces up. A call without an end was cut short and is left out.
func sumOf(ps []dialect.Piece) parsed {
	out := parsed{ToolCalls: []parsedCall{}}
	name, args := "", ""
	for _, p := range ps {
		switch p.Kind {
		case dialect.Text:
			out.Content += p.Text
		case dialect.Reasoning:
			out.Reasoning += p.Text
		case dialect.ToolStart:
			name, args = p.Text, ""
		case dialect.ToolArgs:
			args += p.Text
		case dialect.ToolEnd:
			out.ToolCalls = append(out.ToolCalls, parsedCall{name, json.RawMessage(args)})
		}
	}
	return out
}

// toolOf reads a tool as OpenAI or Anthropic writes it, or a name.
func toolOf(raw json.RawMessage) (dialect.Tool, error) {
	type function struct {
		Name        string          `json:"name"`
		Parameters  json.RawMessage `json:"parameters"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var t struct {
		function
		Function *function `json:"function"`
	}
	if err := json.Unmarshal(raw, &t.Name); err != nil {
		if err := json.Unmarshal(raw, &t); err != nil {
			return dialect.Tool{}, err
		}
	}
	if t.Function != nil {
		t.function = *t.Function
	}
	if t.Name == "" {
		return dialect.Tool{}, errors.New("has no name")
	}
	if t.Parameters == nil {
		t.Parameters = t.InputSchema
	}
	return dialect.Tool{Name: t.Name, Schema: &schema.Document{Raw: t.Parameters}}, nil
}

package interop

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropic1 is anthropic-sdk-go v1.
type anthropic1 struct{ client anthropic.Client }

func newAnthropic1(url, key string) sdk {
	return anthropic1{anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0))}
}

func (a anthropic1) params(c call) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{
		Model: anthropic.Model(c.model), MaxTokens: 200,
		System:   []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(c.prompt))},
	}
	if c.tool {
		p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: toolName, Description: anthropic.String("The weather in a city."),
			InputSchema: anthropic.ToolInputSchemaParam{
				Properties: map[string]any{toolParam: map[string]any{"type": "string"}}, Required: []string{toolParam},
			},
		}}}
	}
	if c.previous != nil {
		p.Messages = append(p.Messages, c.previous.turn.(anthropic.MessageParam))
		var results []anthropic.ContentBlockParamUnion
		for _, t := range c.previous.calls {
			results = append(results, anthropic.NewToolResultBlock(t.id, c.result, false))
		}
		p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
	}
	return p
}

func (a anthropic1) create(ctx context.Context, c call) (*reply, error) {
	m, err := a.client.Messages.New(ctx, a.params(c))
	if err != nil {
		return nil, err
	}
	return a.reply(m), nil
}

func (a anthropic1) stream(ctx context.Context, c call) (*reply, error) {
	s := a.client.Messages.NewStreaming(ctx, a.params(c))
	defer s.Close()
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return nil, err
		}
	}
	return a.reply(&m), s.Err()
}

func (a anthropic1) reply(m *anthropic.Message) *reply {
	r := &reply{model: string(m.Model), stop: string(m.StopReason), input: m.Usage.InputTokens, output: m.Usage.OutputTokens, turn: m.ToParam()}
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case anthropic.TextBlock:
			r.text += b.Text
		case anthropic.ThinkingBlock:
			r.reasoning += b.Thinking
		case anthropic.ToolUseBlock:
			r.calls = append(r.calls, toolCall{b.ID, b.Name, string(b.Input)})
		}
	}
	return r
}

func (a anthropic1) models(ctx context.Context) ([]string, error) {
	var ids []string
	pages := a.client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{})
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	return ids, pages.Err()
}

func (a anthropic1) model(ctx context.Context, id string) (string, error) {
	m, err := a.client.Models.Get(ctx, id, anthropic.ModelGetParams{})
	if err != nil {
		return "", err
	}
	return m.ID, nil
}

func (a anthropic1) failure(err error) (int, string, string) {
	var e *anthropic.Error
	if !errors.As(err, &e) {
		return 0, "", ""
	}
	return e.StatusCode, string(e.Type()), e.Error()
}

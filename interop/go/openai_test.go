package interop

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/option"
)

// openai3 is openai-go v3.
type openai3 struct{ client openai.Client }

func newOpenAI3(url, key string) sdk {
	return openai3{openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))}
}

// newAzure3 is the same client for Azure: the model's name goes into the path, as that of a deployment.
func newAzure3(url, key string) sdk {
	return openai3{openai.NewClient(azure.WithEndpoint(url, "2024-10-21"), azure.WithAPIKey(key), azure.WithUnsafeAllowHTTP(), option.WithMaxRetries(0))}
}

func (o openai3) params(c call) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model: c.model, MaxCompletionTokens: openai.Int(200),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage(c.prompt)},
	}
	if c.tool {
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: toolName, Description: openai.String("The weather in a city."),
			Parameters: openai.FunctionParameters{
				"type": "object", "properties": map[string]any{toolParam: map[string]any{"type": "string"}}, "required": []string{toolParam},
			},
		})}
	}
	if c.previous != nil {
		p.Messages = append(p.Messages, c.previous.turn.(openai.ChatCompletionMessageParamUnion))
		for _, t := range c.previous.calls {
			p.Messages = append(p.Messages, openai.ToolMessage(c.result, t.id))
		}
	}
	return p
}

func (o openai3) create(ctx context.Context, c call) (*reply, error) {
	m, err := o.client.Chat.Completions.New(ctx, o.params(c))
	if err != nil {
		return nil, err
	}
	return o.reply(m), nil
}

func (o openai3) stream(ctx context.Context, c call) (*reply, error) {
	p := o.params(c)
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := o.client.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	var acc openai.ChatCompletionAccumulator
	var reasoning string
	for s.Next() {
		chunk := s.Current()
		if !acc.AddChunk(chunk) {
			return nil, errors.New("the accumulator refused a chunk: " + chunk.RawJSON())
		}
		for _, c := range chunk.Choices {
			reasoning += reasoningOf(c.Delta.RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	r := o.reply(&acc.ChatCompletion)
	r.reasoning = reasoning
	return r, nil
}

// reasoningOf reads the field that OpenAI's types do not have.
func reasoningOf(raw string) string {
	var d struct {
		Reasoning string `json:"reasoning_content"`
	}
	_ = json.Unmarshal([]byte(raw), &d)
	return d.Reasoning
}

func (o openai3) reply(m *openai.ChatCompletion) *reply {
	r := &reply{model: m.Model, input: m.Usage.PromptTokens, output: m.Usage.CompletionTokens}
	for _, c := range m.Choices {
		r.text, r.stop, r.turn = c.Message.Content, c.FinishReason, c.Message.ToParam()
		r.reasoning = reasoningOf(c.Message.RawJSON())
		for _, t := range c.Message.ToolCalls {
			r.calls = append(r.calls, toolCall{t.ID, t.Function.Name, t.Function.Arguments})
		}
	}
	return r
}

func (o openai3) models(ctx context.Context) ([]string, error) {
	page, err := o.client.Models.List(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}

func (o openai3) model(ctx context.Context, id string) (string, error) {
	m, err := o.client.Models.Get(ctx, id)
	if err != nil {
		return "", err
	}
	return m.ID, nil
}

func (o openai3) failure(err error) (int, string, string) {
	var e *openai.Error
	if !errors.As(err, &e) {
		return 0, "", ""
	}
	return e.StatusCode, e.Type, e.Message
}

package interop

import (
	"context"
	"encoding/json"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
	"hearth/internal/wire/wiretest"
)

// scriptedKey is the key the scripted server asks for.
const scriptedKey = "scripted-key"

// keepAlive of the scripted server: short, so that its pauses show keep-alives.
const keepAlive = 5 * time.Millisecond

// newScripted returns hearth's HTTP front over a generator that plays a script chosen by the model's name.
func newScripted() *server.Server {
	g := wiretest.New()
	g.Names = []string{"thinking", "slow", "midway", "overloaded", "long"}
	g.Script = script
	return server.New(server.Options{
		Models: g, Protocols: []wire.Protocol{anthropic.Protocol{Thinking: chat.On}, openai.Protocol{}, responses.Protocol{Store: store.New(store.Options{Mode: store.Memory})}}, Keys: []access.Key{access.PlainKey(scriptedKey)},
		Health:    func() server.Health { return server.Health{Status: "ok", Model: g.Desc.ID} },
		KeepAlive: keepAlive,
	})
}

func script(r *chat.Request) ([]wiretest.Step, error) {
	usage := chat.Usage{Prompt: 20, Cached: 8}
	if r.Form != nil {
		usage.Form = chat.Unchecked // a script is held to nothing
	}
	steps := []wiretest.Step{{Event: chat.Event{Kind: chat.EventStart, Usage: &usage}}}
	add := func(e chat.Event) { steps = append(steps, wiretest.Step{Event: e}) }
	end := func(f chat.Finish) {
		u := usage
		u.Output, u.Reasoning = 7, 2
		add(chat.Event{Kind: chat.EventFinish, Finish: f, Usage: &u})
	}
	last := r.Messages[len(r.Messages)-1]
	switch {
	case r.Model == "overloaded":
		return nil, &chat.Error{Kind: chat.Overloaded, Msg: "the queue is full", RetryAfter: time.Second}
	case r.Model == "long":
		return nil, &chat.Error{Kind: chat.ContextLength, Tokens: 5000, Limit: 4096}
	case last.Role == chat.ToolRole:
		add(chat.Event{Kind: chat.EventText, Text: "The tool says: " + chat.Text(last.Parts[0].Result.Parts)})
		end(chat.FinishStop)
		return steps, nil
	case len(r.Tools) > 0:
		args := json.RawMessage(`{"city":"Paris"}`)
		tool := &chat.ToolCall{ID: "call_1", Name: r.Tools[0].Name, Arguments: args}
		add(chat.Event{Kind: chat.EventToolStart, Call: tool})
		add(chat.Event{Kind: chat.EventToolArgs, Text: string(args[:6])})
		add(chat.Event{Kind: chat.EventToolArgs, Text: string(args[6:])})
		add(chat.Event{Kind: chat.EventToolEnd, Call: tool})
		end(chat.FinishToolCalls)
		return steps, nil
	case r.Model == "thinking":
		add(chat.Event{Kind: chat.EventReasoning, Text: "Let me "})
		add(chat.Event{Kind: chat.EventReasoning, Text: "see."})
	}
	add(chat.Event{Kind: chat.EventText, Text: "Hello, "})
	add(chat.Event{Kind: chat.EventText, Text: "wörld"})
	switch r.Model {
	case "midway":
		return append(steps, wiretest.Step{Err: &chat.Error{Kind: chat.Internal, Msg: "a step failed"}}), nil
	case "slow": // keep-alives before the first event and between events
		for i := range steps {
			steps[i].Before = func(ctx context.Context) {
				select {
				case <-time.After(10 * keepAlive):
				case <-ctx.Done():
				}
			}
		}
	}
	end(chat.FinishStop)
	return steps, nil
}

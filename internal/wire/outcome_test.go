package wire_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
	"hearth/internal/wire/wiretest"
)

// api is a way to ask for a reply: its path, and the fields that have a question, ask for JSON of a schema or any object, and
// have a tool and demand a call.
type api struct{ path, ask, schema, object, tool, required, named string }

const (
	schemaA = `{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}, "required": ["a"]}`
	ofChat  = `"messages": [{"role": "user", "content": "q"}]`
	ofOther = `, "guided_json": ` + schemaA

	chatSchema    = `, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": ` + schemaA + `}}`
	chatObject    = `, "response_format": {"type": "json_object"}`
	chatTool      = `, "tools": [{"type": "function", "function": {"name": "f", "strict": STRICT, "parameters": ` + schemaA + `}}]`
	chatNamed     = `, "tool_choice": {"type": "function", "function": {"name": "f"}}`
	required      = `, "tool_choice": "required"`
	textSchema    = `, "text": {"format": {"type": "json_schema", "name": "n", "schema": ` + schemaA + `}}`
	textObject    = `, "text": {"format": {"type": "json_object"}}`
	responsesTool = `, "tools": [{"type": "function", "name": "f", "strict": STRICT, "parameters": ` + schemaA + `}]`
	responseNamed = `, "tool_choice": {"type": "function", "name": "f"}`
)

var apis = []api{
	{"/v1/chat/completions", ofChat, chatSchema, chatObject, chatTool, required, chatNamed},
	{"/v1/chat/completions", ofChat, ofOther, chatObject, "", "", ""},
	{"/openai/deployments/d/chat/completions", ofChat, chatSchema, chatObject, chatTool, required, chatNamed},
	{"/v1/completions", `"prompt": "q"`, ofOther, chatObject, "", "", ""},
	{"/v1/completions", `"prompt": "q", "echo": true`, chatSchema, chatObject, "", "", ""},
	{"/openai/deployments/d/completions", `"prompt": "q"`, ofOther, chatObject, "", "", ""},
	{"/v1/responses", `"input": "q"`, textSchema, textObject, responsesTool, required, responseNamed},
	{"/openai/v1/responses", `"input": "q"`, textSchema, textObject, responsesTool, required, responseNamed},
	{"/openai/deployments/d/responses", `"input": "q"`, ofOther, textObject, responsesTool, required, responseNamed},
	{"/v1/messages", ofChat, `, "output_config": {"format": {"type": "json_schema", "schema": ` + schemaA + `}}`, "",
		`, "tools": [{"name": "f", "strict": STRICT, "input_schema": ` + schemaA + `}]`, `, "tool_choice": {"type": "any"}`, `, "tool_choice": {"type": "tool", "name": "f"}`},
}

// asks sends what an API is asked to all of them, whole and as a stream, and compares what the header and the usage say became
// of the form. Where it is enforced that is said before the reply.
func asks(t *testing.T, fields func(a *api) string, steps []wiretest.Step, want chat.Outcome) {
	t.Helper()
	g := wiretest.New(steps...)
	g.Names = []string{"*"}
	protocols := []wire.Protocol{responses.Protocol{}, anthropic.Protocol{}, openai.Protocol{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range protocols {
			if p.Speaks(r) {
				mux := http.NewServeMux()
				p.Mount(mux, wiretest.Options(g))
				mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{})))
				return
			}
		}
	}))
	defer srv.Close()
	for i := range apis {
		a := &apis[i]
		more := fields(a)
		if more == "" {
			continue
		}
		for _, stream := range []string{"false", "true"} {
			body := `{"stream": ` + stream + `, ` + a.ask + more + `}`
			if stream == "true" && strings.Contains(a.path, "completions") {
				body = `{"stream_options": {"include_usage": true}, ` + body[1:]
			}
			r, err := http.Post(srv.URL+a.path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := r.Write(&b); err != nil { // reads to the end, behind which trailers are
				t.Fatal(err)
			}
			r.Body.Close()
			before, after := r.Header.Get(wire.SchemaHeader), r.Trailer.Get(wire.SchemaHeader)
			if stream == "false" && want != chat.Enforced {
				before, after = after, before
			}
			got := map[chat.Outcome]bool{"": true}
			for _, part := range strings.Split(b.String(), `"hearth_schema":`)[1:] {
				var of chat.Outcome
				if err := json.NewDecoder(strings.NewReader(part)).Decode(&of); err != nil {
					t.Fatal(err)
				}
				got[of] = true
			}
			if wantBefore := want == chat.Enforced; r.StatusCode != 200 || before+after != string(want) || wantBefore != (before != "") || !got[want] || len(got) > 2 || want == "" && len(got) > 1 {
				t.Errorf("%s %s: %q before, %q after, %v in usage, want %q: %s", a.path, body, before, after, got, want, b.String())
			}
		}
	}
}

// TestSchemaHeader: what became of a form is told in a header, or after a stream; at once where the text is held to it.
func TestSchemaHeader(t *testing.T) {
	schema := func(a *api) string { return a.schema }
	object := func(a *api) string { return a.object }
	other := func(field string) func(*api) string { // Messages has none
		return func(a *api) string {
			if a.object == "" {
				return ""
			}
			return ", " + field
		}
	}
	for _, tt := range []struct {
		name   string
		fields func(*api) string
		text   string
		finish chat.Finish
		held   chat.Outcome
		want   chat.Outcome
	}{
		{"met", schema, `{"a": [1]}`, chat.FinishStop, chat.Unchecked, chat.Checked},
		{"missed", schema, `{"b": 1}`, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"missed in what is not held", schema, `{"a": [1, 1]}`, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"cut short", schema, `{"a": `, chat.FinishLength, chat.Unchecked, chat.Unmet},
		{"words", object, `Sure: {}`, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"an object", object, ` {}`, chat.FinishStop, chat.Unchecked, chat.Checked},
		{"a call first", schema, `Let me look.`, chat.FinishToolCalls, chat.Unchecked, ""},
		{"held", schema, `{"a": [1]}`, chat.FinishStop, chat.Enforced, chat.Enforced},
		{"held and cut short", schema, `{"a": `, chat.FinishLength, chat.Enforced, chat.Enforced},
		{"text", func(a *api) string {
			if a.schema == textSchema {
				return `, "text": {"format": {"type": "text"}}`
			}
			return `, "response_format": {"type": "text"}`
		}, `Sure`, chat.FinishStop, "", ""},
		{"nothing asked", func(*api) string { return `, "n": 1` }, `Sure`, chat.FinishStop, "", ""},
		{"a pattern", other(`"guided_regex": "a+"`), `aa`, chat.FinishStop, chat.Unchecked, chat.Checked},
		{"no such text", other(`"guided_regex": "a+"`), `ab`, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"a choice", other(`"guided_choice": ["a", "b"]`), `b`, chat.FinishStop, chat.Unchecked, chat.Checked},
		{"no choice", other(`"guided_choice": ["a", "b"]`), `ab`, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"a grammar", other(`"grammar": "root ::= \"a\"+"`), `aa`, chat.FinishStop, chat.Unchecked, chat.Checked},
		{"cut within a grammar", other(`"guided_grammar": "start: \"ab\"+"`), `aba`, chat.FinishLength, chat.Unchecked, chat.Unmet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := wiretest.Hello(1)
			steps[0].Event.Usage.Form = tt.held
			steps[1].Event.Text, steps[2].Event.Finish = tt.text, tt.finish
			asks(t, tt.fields, steps, tt.want)
		})
	}
}

// TestSchemaOfChoices: one choice that is not of the form is enough, of several prompts too.
func TestSchemaOfChoices(t *testing.T) {
	for _, c := range []struct {
		texts [2]string
		want  chat.Outcome
	}{{[2]string{`{"a": [1]}`, `{"a": [2]}`}, chat.Checked}, {[2]string{`{"a": [1]}`, `{}`}, chat.Unmet}, {[2]string{`{}`, `{"a": [1]}`}, chat.Unmet}} {
		steps := wiretest.Hello(2)
		steps[0].Event.Usage.Form = chat.Unchecked
		steps[1].Event.Text, steps[3].Event.Text = c.texts[0], c.texts[1]
		asks(t, func(a *api) string {
			switch {
			case !strings.Contains(a.path, "completions"):
				return ""
			case !strings.Contains(a.ask, "prompt"):
				return `, "n": 2` + a.schema
			}
			return `, "n": 2, "prompt": ["a", "b"]` + a.schema
		}, steps, c.want)
	}
}

// TestSchemaOfCalls: the calls that are demanded, and those of strict tools, are compared with the parameters of their tools
// where they are not held to them.
func TestSchemaOfCalls(t *testing.T) {
	demanded := func(strict string, choice func(*api) string) func(*api) string {
		return func(a *api) string {
			if a.tool == "" {
				return ""
			}
			return strings.ReplaceAll(a.tool, "STRICT", strict) + choice(a)
		}
	}
	any := demanded("false", func(a *api) string { return a.required })
	named := demanded("false", func(a *api) string { return a.named })
	strict := demanded("true", func(*api) string { return "" })
	free := demanded("false", func(*api) string { return "" })
	beside := demanded("true", func(a *api) string { return a.schema })
	custom := func(syntax, definition string) func(*api) string {
		return func(a *api) string {
			g := `"syntax": "` + syntax + `", "definition": ` + strconv.Quote(definition)
			switch a.tool {
			case chatTool:
				return `, "tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {` + g + `}}}}]`
			case responsesTool:
				return `, "tools": [{"type": "custom", "name": "f", "format": {"type": "grammar", ` + g + `}}]`
			}
			return ""
		}
	}
	inputs := custom("lark", `start: ("a" | "(" start ")")+`)
	for _, tt := range []struct {
		name   string
		fields func(*api) string
		calls  []chat.ToolCall
		finish chat.Finish
		held   chat.Outcome
		want   chat.Outcome
	}{
		{"valid", any, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Checked},
		{"not valid", any, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1, 1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"no JSON", any, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": `)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"the second", any, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": []}`)}, {Name: "f", Arguments: json.RawMessage(`{}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"none", any, nil, chat.FinishStop, chat.Unchecked, chat.Unmet},
		{"cut short", any, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishLength, chat.Unchecked, chat.Unmet},
		{"unknown", any, []chat.ToolCall{{Name: "g", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"named", named, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Checked},
		{"held", named, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishToolCalls, chat.Enforced, chat.Enforced},
		{"strict", strict, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Checked},
		{"strict, not valid", strict, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"b": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"strict, not called", strict, nil, chat.FinishStop, chat.Unchecked, ""},
		{"not strict", free, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"b": [1]}`)}}, chat.FinishToolCalls, "", ""},
		{"strict beside a form", beside, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"b": [1]}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"an input", inputs, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"input": "a(a)"}`)}, {Name: "f", Arguments: json.RawMessage(`{"input": "a"}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Checked},
		{"an input of another form", inputs, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"input": "a(a)"}`)}, {Name: "f", Arguments: json.RawMessage(`{"input": "a("}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"an input beside others", inputs, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"input": "a", "b": 1}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"an input that is held", inputs, []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"input": "a"}`)}}, chat.FinishToolCalls, chat.Enforced, chat.Enforced},
		{"an input of a pattern", custom("regex", "a+"), []chat.ToolCall{{Name: "f", Arguments: json.RawMessage(`{"input": "ba"}`)}}, chat.FinishToolCalls, chat.Unchecked, chat.Unmet},
		{"the text beside strict", beside, nil, chat.FinishStop, chat.Unchecked, chat.Unmet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := []wiretest.Step{{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Form: tt.held}}}}
			if tt.calls == nil {
				steps = append(steps, wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: "No."}})
			}
			for i := range tt.calls {
				steps = append(steps, wiretest.Step{Event: chat.Event{Kind: chat.EventToolStart, Tool: i, Call: &chat.ToolCall{ID: "c", Name: tt.calls[i].Name}}},
					wiretest.Step{Event: chat.Event{Kind: chat.EventToolEnd, Tool: i, Call: &tt.calls[i]}})
			}
			steps = append(steps, wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: tt.finish, Usage: &chat.Usage{}}})
			asks(t, tt.fields, steps, tt.want)
		})
	}
}

// TestSchemaSpent: where comparing takes too much work, the reply says so.
func TestSchemaSpent(t *testing.T) {
	steps := wiretest.Hello(1)
	steps[0].Event.Usage.Form = chat.Unchecked
	steps[1].Event.Text = `"` + strings.Repeat("a", 6<<20) + `"`
	asks(t, func(a *api) string {
		if a.schema != chatSchema || strings.Contains(a.path, "deployments") {
			return ""
		}
		return `, "guided_json": {"pattern": "(a{1,100}){1,10}b$"}`
	}, steps, chat.Unchecked)
}

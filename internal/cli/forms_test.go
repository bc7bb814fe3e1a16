package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hearth/internal/config"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

const personSchema = `{"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
	"tags": {"type": "array", "items": {"enum": ["a", "b", null]}, "maxItems": 3}, "when": {"type": "string", "format": "date"}}, "required": ["name", "age"], "additionalProperties": false}`

// TestForms: what the demo draws at a high temperature is of the form that a request asks for, in every API's and other servers'
// way to ask; what is cut off is the beginning of such a text.
func TestForms(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) {})
	post := func(path, body string) (http.Header, []byte) {
		t.Helper()
		r, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%s %s: %d %s, %v", path, body, r.StatusCode, b, err)
		}
		return r.Header, b
	}
	const person = "person"
	quoted, err := json.Marshal(personSchema)
	if err != nil {
		t.Fatal(err)
	}
	for i, field := range []struct{ body, want string }{
		{`"response_format": {"type": "json_object"}`, "object"},
		{`"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": true, "schema": ` + personSchema + `}}`, person},
		{`"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": ` + personSchema + `}}`, person},
		{`"response_format": {"type": "json_object", "schema": ` + personSchema + `}`, person},
		{`"json_schema": ` + personSchema, person},
		{`"guided_json": ` + personSchema, person},
		{`"guided_json": ` + string(quoted), person},
		{`"structured_outputs": {"json": ` + personSchema + `}`, person},
		{`"structured_outputs": {"json_object": true}`, "object"},
		{`"guided_regex": "[a-z]{1,3}[0-9]{2}"`, `^[a-z]{1,3}[0-9]{2}$`},
		{`"structured_outputs": {"regex": "[a-z]{1,3}[0-9]{2}"}`, `^[a-z]{1,3}[0-9]{2}$`},
		{`"guided_choice": ["yes", "no", "not at all"]`, `^(yes|no|not at all)$`},
		{`"structured_outputs": {"choice": ["yes", "no", "not at all"]}`, `^(yes|no|not at all)$`},
		{`"grammar": "root ::= \"(\" [a-c]{1,4} \")\""`, `^\([a-c]{1,4}\)$`},
		{`"grammar": "start: \"(\" /[a-c]{1,4}/ \")\""`, `^\([a-c]{1,4}\)$`},
		{`"guided_grammar": "root ::= \"(\" [a-c]{1,4} \")\""`, `^\([a-c]{1,4}\)$`},
	} {
		ended := 0
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			if i%3 == 0 && path == "/v1/completions" {
				continue
			}
			header, b := post(path, fmt.Sprintf(`{"messages": [{"role": "user", "content": "Hello"}], "prompt": "Hello", "n": 6, "temperature": 1.5, "top_p": 1, "seed": %d, "max_tokens": 100, "enable_thinking": %t, %s}`, len(field.body), i%4 == 0, field.body))
			var got struct {
				Choices []struct {
					Text    string
					Message struct{ Content string }
					Finish  string `json:"finish_reason"`
				}
			}
			if err := json.Unmarshal(b, &got); err != nil || header.Get("X-Hearth-Schema") != "enforced" || len(got.Choices) != 6 {
				t.Fatalf("%s %s: %q %s", path, field.body, header, b)
			}
			for _, c := range got.Choices {
				text := c.Text + c.Message.Content
				if c.Finish == "stop" {
					ended++
				}
				if why := misses(t, field.want, text, c.Finish != "stop"); why != "" {
					t.Errorf("%s %s: %s: %q", path, field.body, why, text)
				}
			}
		}
		if ended < 4 && (ended == 0 || field.want != "object") {
			t.Errorf("%s: %d of up to 12 ended", field.body, ended)
		}
	}

	header, b := post("/v1/responses", `{"input": "Hello", "temperature": 1.5, "reasoning": {"effort": "none"}, "text": {"format": {"type": "json_schema", "name": "p", "strict": true, "schema": `+personSchema+`}}}`)
	var resp struct {
		Output []struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(b, &resp); err != nil || header.Get("X-Hearth-Schema") != "enforced" || misses(t, person, resp.Output[len(resp.Output)-1].Content[0].Text, false) != "" {
		t.Errorf("%s", b)
	}
	header, b = post("/v1/messages", `{"max_tokens": 300, "messages": [{"role": "user", "content": "Hello"}], "temperature": 1, "output_config": {"format": {"type": "json_schema", "schema": `+personSchema+`}}}`)
	var msg struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(b, &msg); err != nil || header.Get("X-Hearth-Schema") != "enforced" || misses(t, person, msg.Content[len(msg.Content)-1].Text, false) != "" {
		t.Errorf("%s", b)
	}
}

// TestFormErrors: a form that is none, or that a reply cannot be held to, is a 400 that says why and where, in every API's and
// other servers' way to ask; of a script too, which holds to nothing.
func TestFormErrors(t *testing.T) {
	const (
		chats    = `"messages": [{"role": "user", "content": "Hello"}]`
		one      = `"guided_choice": ["a"]`
		strict   = 1 << iota // the field asks for all to be held
		any                  // it takes texts of schemas
		tool                 // it is that of a strict tool
		anywhere = "/v1/chat/completions /v1/completions /v1/responses"
	)
	asks := map[string]string{"/v1/chat/completions": chats, "/v1/completions": `"prompt": "Hello"`, "/v1/responses": `"input": "Hello"`, "/v1/messages": chats}
	type fault struct {
		fields, param, words string
		held                 bool // it takes a model that is held
	}
	// Schemas, and what is said of each.
	nested := func(n int, end string) string { return strings.Repeat(`{"items": `, n) + end + strings.Repeat("}", n) }
	wide := strings.TrimSuffix(strings.Repeat(`{"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}, `, 14), ", ")
	schemas := [][2]string{
		{`{"$ref": "#/$defs/a"}`, "$ref"},
		{`{"properties": {"a": {"$ref": "https://example.com/a"}}}`, `"/properties/a" is wrong: $ref`},
		{`{"$ref": "#"}`, "$ref"},
		{`{"properties": {"a": {"pattern": "(a"}}}`, `"/properties/a" is wrong: pattern`},
		{`{"items": {"type": "text"}}`, `"/items" is wrong: type`},
		{`{"properties": {"a/b": {"minLength": "3"}}}`, `"/properties/a~1b" is wrong: minLength`},
		{`{"required": "a"}`, "is wrong: required"},
		{`{"enum": 1}`, "is wrong: enum"},
		{`{"anyOf": []}`, "is wrong: anyOf"},
		{`{"allOf": [` + wide + `]}`, "more than 4096 alternatives"},
		{nested(300, "{}"), "256 levels"},
		{`{"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}, "$ref": "#/$defs/a"}`, "no text"},
	}
	faults := map[string][]fault{}
	add := func(paths string, f fault) {
		for _, path := range strings.Fields(paths) {
			faults[path] = append(faults[path], f)
		}
	}
	for _, f := range []struct {
		paths, param, fields string
		kind                 int
	}{
		{"/v1/chat/completions /v1/completions", "response_format.json_schema.schema", `"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": true, "schema": S}}`, strict},
		{"/v1/chat/completions /v1/completions", "response_format.json_schema.schema", `"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": S}}`, 0},
		{"/v1/chat/completions /v1/completions", "response_format.schema", `"response_format": {"type": "json_object", "schema": S}`, 0},
		{"/v1/responses", "text.format.schema", `"text": {"format": {"type": "json_schema", "name": "p", "strict": true, "schema": S}}`, strict},
		{"/v1/responses", "text.format.schema", `"text": {"format": {"type": "json_schema", "name": "p", "schema": S}}`, 0},
		{anywhere, "guided_json", `"guided_json": S`, any},
		{anywhere, "json_schema", `"json_schema": S`, any},
		{anywhere, "structured_outputs.json", `"structured_outputs": {"json": S}`, any},
		{"/v1/messages", "output_config.format.schema", `"output_config": {"format": {"type": "json_schema", "schema": S}}`, 0},
		{"/v1/messages", "output_format.schema", `"output_format": {"type": "json_schema", "schema": S}`, 0},
		{"/v1/chat/completions", "tools[0].function.parameters", `"tools": [{"type": "function", "function": {"name": "f", "strict": true, "parameters": S}}]`, tool},
		{"/v1/chat/completions", "tools[1].function.parameters", `"tools": [{"type": "custom", "custom": {"name": "c"}}, {"type": "function", "function": {"name": "f", "strict": true, "parameters": S}}]`, tool},
		{"/v1/responses", "tools[0].parameters", `"tools": [{"type": "function", "name": "f", "strict": true, "parameters": S}]`, tool},
		{"/v1/responses", "tools[0].tools[0].parameters", `"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "strict": true, "parameters": S}]}]`, tool},
		{"/v1/messages", "tools.0.input_schema", `"tools": [{"name": "f", "strict": true, "input_schema": S}]`, tool},
	} {
		of := func(schema, words string) {
			param, held := f.param, false
			switch {
			case words == "256 levels":
				param = ""
			case f.kind == tool && (words == "no text" || strings.HasPrefix(words, "more than") || strings.Contains(words, "Items at")):
				words, held = strings.Replace(words, "no text", "none of its calls can be written", 1), true
			}
			add(f.paths, fault{strings.ReplaceAll(f.fields, "S", schema), param, words, held})
		}
		for _, s := range schemas {
			of(s[0], s[1])
		}
		for _, v := range []string{"1", "[]", "true"} {
			of(v, "expected an object, got")
		}
		if f.kind == any {
			of(`"{"`, "JSON")
			of(`"[]"`, "neither an object nor a boolean")
		} else {
			of(`"{}"`, "got a string")
		}
		if f.kind == strict || f.kind == tool {
			of(`{"properties": {"a": {"type": "array", "uniqueItems": true}}}`, `uniqueItems at "/properties/a"`)
			if f.kind == strict {
				of(`{"items": {"pattern": "(a)\\1"}}`, `pattern at "/items"`)
			}
		}
	}
	for _, f := range [][3]string{
		{`"guided_regex": "(a"`, "guided_regex", "a group that is not closed (at byte 2)"},
		{`"guided_regex": "(a)\\1"`, "guided_regex", "not supported"},
		{`"guided_regex": 1`, "guided_regex", "expected a string"},
		{`"guided_regex": "` + strings.Repeat("a", 1<<16+1) + `"`, "guided_regex", "65536 bytes"},
		{`"structured_outputs": {"regex": "*"}`, "structured_outputs.regex", "at byte 0"},
		{`"guided_choice": []`, "guided_choice", "no text"},
		{`"guided_choice": [1]`, "guided_choice[0]", "expected a string"},
		{`"guided_choice": "a"`, "guided_choice", "expected an array"},
		{`"structured_outputs": {"choice": []}`, "structured_outputs.choice", "no text"},
		{`"grammar": "root ::= a"`, "grammar", "line 1, column 10: "},
		{`"grammar": "root ::= (\"a\""`, "grammar", "line 1, column "},
		{`"grammar": "start: \"a\nb: c"`, "grammar", "line 1, column "},
		{`"guided_grammar": "start: a"`, "guided_grammar", "not defined"},
		{`"structured_outputs": {"grammar": "root ::= root"}`, "structured_outputs.grammar", "no text"},
		{`"structured_outputs": {"grammar": {}}`, "structured_outputs.grammar", "expected a string"},
		{`"structured_outputs": {"structural_tag": "x"}`, "structured_outputs.structural_tag", "not supported"},
		{`"structured_outputs": {"jsno": {}}`, "structured_outputs", "json, regex, choice"},
		{`"structured_outputs": []`, "structured_outputs", "expected an object"},
		{`"structured_outputs": {"json_object": 1}`, "structured_outputs.json_object", "expected a boolean"},
		{`"grammar": "root ::= \"a\"", ` + one, "grammar", "guided_choice"},
		{`"guided_json": {}, ` + one, "guided_choice", "guided_json"},
		{`"structured_outputs": {"json": {}, "regex": "a"}`, "structured_outputs.regex", "structured_outputs.json"},
		{`"guided_json": {}, "json_schema": {}`, "guided_json", "json_schema"},
	} {
		add(anywhere, fault{f[0], f[1], f[2], false})
	}
	add("/v1/chat/completions /v1/completions", fault{`"response_format": {"type": "json_object"}, ` + one, "guided_choice", "response_format", false})
	add("/v1/chat/completions", fault{`"response_format": {"type": "xml"}`, "response_format.type", "json_schema", false})
	add("/v1/responses", fault{`"text": {"format": {"type": "json_object"}}, ` + one, "guided_choice", "text.format", false})
	add("/v1/responses", fault{`"text": {"format": {"type": "xml"}}`, "text.format.type", "json_schema", false})
	add("/v1/messages", fault{`"output_format": {"type": "json_schema", "schema": {}}, "output_config": {"format": {"type": "json_schema", "schema": {}}}`, "output_format", "output_config.format", false})
	add("/v1/messages", fault{`"output_config": {"format": {"type": "json_object"}}`, "output_config.format.type", "json_schema", false})
	for definition, words := range map[string]string{`"lark", "definition": "start: \"a\"\n  | x"`: "line 2, column 5: the rule x is not defined", `"lark", "definition": "start: start"`: "no text",
		`"regex", "definition": "a("`: "a group that is not closed (at byte 2)", `"regex", "definition": "(a)\\1"`: "not supported",
		`"lark", "definition": 1`: "expected a string"} {
		add("/v1/chat/completions", fault{`"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": ` + definition + `}}}}]`,
			"tools[0].custom.format.grammar.definition", words, false})
		add("/v1/responses", fault{`"tools": [{"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": ` + definition + `}}]`, "tools[0].format.definition", words, false})
	}
	for path, f := range map[string][2]string{
		"/v1/chat/completions": {`"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "text"}}}]`, "tools[0].function.parameters"},
		"/v1/responses":        {`"tool_choice": "required", "tools": [{"type": "function", "name": "f", "parameters": {"type": "text"}}]`, "tools[0].parameters"},
		"/v1/messages":         {`"tool_choice": {"type": "tool", "name": "f"}, "tools": [{"name": "f", "input_schema": {"type": "text"}}]`, "tools.0.input_schema"},
	} {
		add(path, fault{f[0], f[1], `of the tool "f": the schema at its root is wrong: type`, false})
	}
	add("/v1/messages", fault{`"tool_choice": {"type": "any"}, "tools": [{"name": "f", "strict": true, "input_schema": {"properties": {"a": {"type": "array", "uniqueItems": true}}}}]`,
		"tools.0.input_schema", `uniqueItems at "/properties/a"`, true})
	// What the form is makes no difference where a call is demanded.
	add("/v1/chat/completions", fault{`"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required", "response_format": {"type": "json_object", "schema": {"type": "text"}}`, "response_format.schema", "type", false})

	hello := scriptFile(t, `{"raw": "Hello"}`)
	for server, url := range map[string]string{"demo": serveDemo(t, func(*config.Config) {}), "script": serveDemo(t, func(c *config.Config) { c.Script = hello })} {
		for path, list := range faults {
			for _, c := range list {
				if c.held && server == "script" {
					continue
				}
				for _, stream := range []string{"", `, "stream": true`} {
					if stream != "" && len(c.fields)%7 > 0 {
						continue
					}
					status, b := request(t, "POST", url+path, `{"max_tokens": 5, `+asks[path]+stream+`, `+c.fields+`}`)
					var e struct {
						Type  string
						Error struct{ Type, Message, Param string }
					}
					if err := json.Unmarshal(b, &e); err != nil {
						t.Fatalf("%s", b)
					}
					if path == "/v1/messages" && c.param != "" { // which has it in the message
						e.Error.Param, _, _ = strings.Cut(e.Error.Message, ": ")
					}
					if status != 400 || e.Error.Type != "invalid_request_error" || e.Error.Param != c.param || !strings.Contains(e.Error.Message, c.words) || (e.Type == "error") != (path == "/v1/messages") {
						t.Errorf("%s %s: %.200s: %d %s, want %s, %s", server, path, c.fields, status, b, c.param, c.words)
					}
				}
			}
		}
	}
}

// TestFormCut: a reply that max tokens or a stop string ends within its form has the text as far as it came, streamed or not, and
// the API's own word for that.
func TestFormCut(t *testing.T) {
	url := serveDemo(t, func(*config.Config) {})
	const chats = `"messages": [{"role": "user", "content": "Hello"}]`
	format := func(kind string) string {
		return `{"type": "json_schema", "name": "p", ` + kind + `"schema": ` + personSchema + `}`
	}
	strict := format(`"strict": true, `)
	for _, c := range []struct{ path, fields, ends, want string }{
		{"/v1/chat/completions", chats + `, "response_format": {"type": "json_schema", "json_schema": ` + strict + `}`, `"max_tokens": 7`, "length"},
		{"/v1/chat/completions", chats + `, "guided_json": ` + personSchema, `"stop": ": "`, "stop"},
		{"/v1/completions", `"prompt": "Hello", "guided_json": ` + personSchema, `"max_tokens": 7`, "length"},
		{"/v1/responses", `"input": "Hello", "text": {"format": ` + strict + `}`, `"max_output_tokens": 7`, "incomplete max_output_tokens"},
		{"/v1/messages", chats + `, "output_config": {"format": ` + format("") + `}`, `"max_tokens": 7`, "max_tokens"},
		{"/v1/messages", chats + `, "output_config": {"format": ` + format("") + `}`, `"max_tokens": 100, "stop_sequences": [": "]`, "stop_sequence :"},
	} {
		var texts [2]string
		for i, stream := range []string{"false", "true"} {
			r, err := http.Post(url+c.path, "application/json", strings.NewReader(`{"stream": `+stream+`, "temperature": 0, "enable_thinking": false, `+c.ends+`, `+c.fields+`}`))
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != 200 || r.Header.Get("X-Hearth-Schema") != "enforced" {
				t.Fatalf("%s: %d %q %s, %v", c.path, r.StatusCode, r.Header, b, err)
			}
			var reason string
			for line := range strings.Lines(string(b)) {
				if data, ok := strings.CutPrefix(line, "data: "); stream == "false" || ok && !strings.HasPrefix(data, "[DONE]") {
					said, ended := readReply(t, strings.TrimPrefix(line, "data: "))
					texts[i] += said
					reason += ended
				}
			}
			var cut any
			if err := json.NewDecoder(strings.NewReader(texts[i])).Decode(&cut); err != io.ErrUnexpectedEOF || reason != c.want || !strings.HasPrefix(texts[i], `{"name"`) {
				t.Errorf("%s %s: %q, ended by %q, want %q: %v", c.path, stream, texts[i], reason, c.want, err)
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q, streamed %q", c.path, texts[0], texts[1])
		}
	}
}

// readReply is the text in a reply, or in an event of one, of any API, and why it ended.
func readReply(t *testing.T, body string) (text, reason string) {
	t.Helper()
	type response struct {
		Status     string
		Incomplete struct{ Reason string } `json:"incomplete_details"`
		Output     []struct{ Content []struct{ Text string } }
	}
	var all struct {
		Type    string
		Choices []struct {
			Text    string
			Message struct{ Content string }
			Delta   struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Content []struct{ Text string }
		Stop    string `json:"stop_reason"`
		Hit     string `json:"stop_sequence"`
		Delta   json.RawMessage
		response
		Response response
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, c := range all.Choices {
		text, reason = text+c.Text+c.Message.Content+c.Delta.Content, reason+c.Finish
	}
	for _, c := range all.Content {
		text += c.Text
	}
	var delta struct {
		Text string
		Stop string `json:"stop_reason"`
		Hit  string `json:"stop_sequence"`
	}
	switch all.Type {
	case "response.output_text.delta":
		_ = json.Unmarshal(all.Delta, &delta.Text)
	case "content_block_delta", "message_delta":
		_ = json.Unmarshal(all.Delta, &delta)
	case "response.incomplete":
		all.response = all.Response
		all.Output = nil
	}
	for _, o := range all.Output {
		for _, c := range o.Content {
			text += c.Text
		}
	}
	if all.Incomplete.Reason != "" {
		reason = all.Status + " " + all.Incomplete.Reason
	}
	return text + delta.Text, strings.TrimSpace(reason + all.Stop + delta.Stop + " " + all.Hit + delta.Hit)
}

// misses tells why a text is not what a form wants: the name of one in JSON, or an expression.
func misses(t *testing.T, want, text string, cut bool) string {
	t.Helper()
	switch {
	case cut && (want != "object" || text == ""): // it reasoned all along
		return ""
	case cut:
		if d := json.NewDecoder(strings.NewReader(text)); d.Decode(new(any)) != io.ErrUnexpectedEOF {
			return "no beginning of JSON"
		}
		return ""
	case want != "object" && want != "person":
		if !regexp.MustCompile(want).MatchString(text) {
			return "does not match"
		}
		return ""
	}
	v, err := schema.Parse([]byte(text))
	if err != nil || v.Kind() != schema.Object {
		return "no object"
	}
	if want == "object" {
		return ""
	}
	root, err := schema.Parse([]byte(personSchema))
	if err != nil {
		t.Fatal(err)
	}
	s, err := jsonschema.Read(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if s.Checker(true).Check(t.Context(), v) != jsonschema.Valid {
		return "not valid"
	}
	return ""
}

// patch is a grammar of the kind that agents have for their edits.
const patch = `start: "*** Begin\n" edit ~ 1..2 "*** End"
edit: ("*** Add: " | "*** Change: ") NAME "\n" line ~ 1..3
line: ("+" | "-" | " ") /[^\n]{0,20}/ "\n"
NAME: /[a-z]{1,8}/`

// TestCustomTools: the input of a call that is demanded of the demo is of the tool's grammar, written as JSON and between tags.
func TestCustomTools(t *testing.T) {
	whole := regexp.MustCompile(`^\*\*\* Begin\n(\*\*\* (Add|Change): [a-z]{1,8}\n([-+ ][^\n]{0,20}\n){1,3}){1,2}\*\*\* End$`)
	definition := strconv.Quote(patch)
	for _, parser := range []string{"auto", "qwen3_coder"} {
		url := serveDemo(t, func(c *config.Config) { c.ToolCallParser = parser })
		for path, fields := range map[string]string{
			"/v1/responses": `"input": "Hi", "max_output_tokens": 400, "tool_choice": {"type": "custom", "name": "edit"},
				"tools": [{"type": "custom", "name": "edit", "format": {"type": "grammar", "syntax": "lark", "definition": ` + definition + `}}]`,
			"/v1/chat/completions": `"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 400, "tool_choice": {"type": "custom", "custom": {"name": "edit"}},
				"tools": [{"type": "custom", "custom": {"name": "edit", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": ` + definition + `}}}}]`,
		} {
			ended := 0
			for seed := range 6 {
				r, err := http.Post(url+path, "application/json", strings.NewReader(fmt.Sprintf(`{"temperature": 1.5, "top_p": 1, "seed": %d, %s}`, seed, fields)))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || r.StatusCode != 200 || r.Header.Get("x-hearth-schema") != "enforced" {
					t.Fatalf("%s: %d %v %s, %v", path, r.StatusCode, r.Header, b, err)
				}
				var got struct {
					Output []struct {
						Type, Name string
						Input      *string
						Status     string
					}
					Choices []struct {
						FinishReason string `json:"finish_reason"`
						Message      struct {
							ToolCalls []struct{ Custom struct{ Name, Input string } } `json:"tool_calls"`
						}
					}
				}
				if err := json.Unmarshal(b, &got); err != nil {
					t.Fatal(err)
				}
				name, input := "", ""
				switch {
				case len(got.Output) == 1 && got.Output[0].Status == "completed":
					name, input = got.Output[0].Name, *got.Output[0].Input
				case len(got.Choices) == 1 && got.Choices[0].FinishReason == "tool_calls":
					name, input = got.Choices[0].Message.ToolCalls[0].Custom.Name, got.Choices[0].Message.ToolCalls[0].Custom.Input
				default:
					continue // it was cut
				}
				if ended++; name != "edit" || !whole.MatchString(input) {
					t.Errorf("%s: %q(%q)", path, name, input)
				}
			}
			if ended == 0 {
				t.Errorf("%s: no call ended", path)
			}
		}
	}
}

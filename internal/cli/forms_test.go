package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
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

// TestFormErrors: a form that is none, or that a reply cannot be held to, is a 400 that says why.
func TestFormErrors(t *testing.T) {
	url := serveDemo(t, func(c *config.Config) {})
	format := func(schema string) string {
		return `"response_format": {"type": "json_schema", "json_schema": {"name": "p", "strict": true, "schema": ` + schema + `}}`
	}
	for _, c := range []struct{ fields, param, words string }{
		{format(`{"$ref": "#/$defs/a"}`), "response_format.json_schema.schema", "$ref"},
		{format(`{"properties": {"a": {"type": "text"}}}`), "response_format.json_schema.schema", "/properties/a"},
		{format(`{"properties": {"a": {"type": "array", "uniqueItems": true}}}`), "response_format.json_schema.schema", "uniqueItems"},
		{format(`{"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}, "$ref": "#/$defs/a"}`), "response_format.json_schema.schema", "no text"},
		{`"guided_regex": "(a"`, "guided_regex", "regular expression"},
		{`"guided_regex": "(a)\\1"`, "guided_regex", "not supported"},
		{`"guided_choice": []`, "guided_choice", "no text"},
		{`"guided_choice": [1]`, "guided_choice[0]", "string"},
		{`"grammar": "root ::= a"`, "grammar", "not defined"},
		{`"grammar": "root ::= \"a\"", "guided_choice": ["a"]`, "grammar", "guided_choice"},
		{`"structured_outputs": {"structural_tag": "x"}`, "structured_outputs.structural_tag", "not supported"},
		{`"guided_json": "{"`, "guided_json", "JSON"},
	} {
		status, b := request(t, "POST", url+"/v1/chat/completions", `{"messages": [{"role": "user", "content": "Hello"}], `+c.fields+`}`)
		var e struct {
			Error struct{ Message, Param string }
		}
		if err := json.Unmarshal(b, &e); err != nil || status != 400 || e.Error.Param != c.param || !strings.Contains(e.Error.Message, c.words) {
			t.Errorf("%s: %d %s", c.fields, status, b)
		}
	}
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

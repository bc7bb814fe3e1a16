//go:build linux

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// api is one of the protocols.
type api struct {
	name, path string
	anthropic  bool
}

var (
	openai    = api{name: "chat", path: "/v1/chat/completions"}
	anthropic = api{name: "messages", path: "/v1/messages", anthropic: true}
	both      = []api{openai, anthropic}
)

// ask is a request: a user's message with that content as JSON, and more fields, as ", …".
func (a api) ask(content, more string) request {
	return request{api: a, path: a.path, body: fmt.Appendf(nil, `{"max_tokens": 64, "temperature": 0, "messages": [{"role": "user", "content": %s}]%s}`, content, more)}
}

// say is ask for text.
func (a api) say(text, more string) request { return a.ask(quote(text), more) }

// tools are the fields for tools f, f1, f2, … with these schemas.
func (a api) tools(schemas ...string) string {
	var list []string
	for i, schema := range schemas {
		name := "f"
		if i > 0 {
			name = fmt.Sprintf("f%d", i)
		}
		if a.anthropic {
			list = append(list, fmt.Sprintf(`{"name": %q, "input_schema": %s}`, name, schema))
		} else {
			list = append(list, fmt.Sprintf(`{"type": "function", "function": {"name": %q, "parameters": %s}}`, name, schema))
		}
	}
	return `, "tools": [` + strings.Join(list, ",") + `]`
}

// forced makes the model call f.
func (a api) forced(schema string) string {
	if a.anthropic {
		return a.tools(schema) + `, "tool_choice": {"type": "tool", "name": "f"}`
	}
	return a.tools(schema) + `, "tool_choice": {"type": "function", "function": {"name": "f"}}`
}

func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// request is one call.
type request struct {
	api    api
	path   string
	body   []byte
	header map[string]string
}

// reply is what came of it.
type reply struct {
	code int
	body []byte
	err  error
}

func (r request) send(ctx context.Context, url string) (p reply) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+r.path, bytes.NewReader(r.body))
	if err != nil {
		return reply{err: err}
	}
	q.Header.Set("Content-Type", "application/json")
	for k, v := range r.header {
		q.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // leaving closes the connection
	res, err := client.Do(q)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	p.code = res.StatusCode
	p.body, p.err = io.ReadAll(res.Body)
	return p
}

// longestMessage is what "one clear sentence" may take at most, in bytes.
const longestMessage = 1000

// check tells what is wrong with a reply: neither success nor an error in the caller's protocol.
func (p reply) check(a api) error {
	switch {
	case p.err != nil:
		return fmt.Errorf("no whole reply: %w", p.err)
	case p.code == http.StatusOK:
		return p.checkSuccess(a)
	case p.code < 400 || p.code > 599:
		return fmt.Errorf("status %d", p.code)
	case p.code == http.StatusRequestHeaderFieldsTooLarge: // net/http's own, before any protocol
		return nil
	}
	_, err := p.message(a)
	return err
}

// checkSuccess looks at the end of a stream, or whether a whole reply is JSON.
func (p reply) checkSuccess(a api) error {
	if json.Valid(p.body) {
		return nil
	}
	events := bytes.Split(bytes.TrimSpace(p.body), []byte("\n\n"))
	last := events[len(events)-1]
	end := "data: [DONE]"
	if a.anthropic {
		end = `data: {"type":"message_stop"}`
	}
	if bytes.HasSuffix(last, []byte(end)) {
		return nil
	}
	_, data, _ := bytes.Cut(last, []byte("data: "))
	if _, err := (reply{body: data}).message(a); err != nil {
		return fmt.Errorf("a stream that neither ends as one nor with an error: %.100q", last)
	}
	return nil
}

// message is that of an error reply of the protocol's shape.
func (p reply) message(a api) (string, error) {
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	switch err := json.Unmarshal(p.body, &e); {
	case err != nil:
		return "", fmt.Errorf("status %d with a body that is not an error's: %.200q", p.code, p.body)
	case a.anthropic && (e.Type != "error" || e.Error.Type == ""), !a.anthropic && e.Type != "":
		return "", fmt.Errorf("status %d with an error of another protocol: %.200q", p.code, p.body)
	case e.Error.Message == "", strings.Contains(e.Error.Message, "\n"), len(e.Error.Message) > longestMessage:
		return "", fmt.Errorf("status %d with %d bytes of message, not one sentence: %.200q", p.code, len(e.Error.Message), e.Error.Message)
	}
	return e.Error.Message, nil
}

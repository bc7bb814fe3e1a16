package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hearth/internal/console"
	"hearth/internal/regular"
)

// api is one that a server may speak.
type api struct {
	name       string // of --api
	title      string
	path       string
	unfinished string // what a stream lacks that was cut
	body       func(c *conversation, model string, tokens int) map[string]any
	event      func(r *reply, data []byte) (grew bool, err error)
}

var apis = []*api{
	{"openai", "Chat Completions", "/v1/chat/completions", "there was no finish_reason", chatBody, chatEvent},
	{"anthropic", "Messages", "/v1/messages", "there was no message_stop", messagesBody, messagesEvent},
}

type object = map[string]any

// chatBody is a request of Chat Completions.
func chatBody(c *conversation, model string, tokens int) object {
	messages := []object{{"role": "system", "content": c.system}}
	var calls []toolCall
	for _, m := range c.messages {
		switch {
		case m.assistant:
			o := object{"role": "assistant", "content": m.text}
			calls = m.calls
			var all []object
			for i := range calls {
				all = append(all, object{"id": calls[i].id, "type": "function", "function": object{"name": calls[i].name, "arguments": string(calls[i].object())}})
			}
			if all != nil {
				o["tool_calls"] = all
			}
			messages = append(messages, o)
		case m.results != nil:
			for i, r := range m.results {
				messages = append(messages, object{"role": "tool", "tool_call_id": calls[i].id, "content": r})
			}
		default:
			messages = append(messages, object{"role": "user", "content": m.text})
		}
	}
	body := object{"model": model, "max_tokens": tokens, "temperature": 0, "stream": true, "stream_options": object{"include_usage": true}, "messages": messages}
	var all []object
	for _, t := range c.tools {
		all = append(all, object{"type": "function", "function": object{"name": t.name, "description": t.about, "parameters": t.schema()}})
	}
	if all != nil {
		body["tools"] = all
	}
	return body
}

// messagesBody is a request of Messages. Its marks say, as agents do, where a prompt is worth keeping.
func messagesBody(c *conversation, model string, tokens int) object {
	keep := object{"type": "ephemeral"}
	var messages []object
	var calls []toolCall
	for i, m := range c.messages {
		var content []object
		if m.text != "" {
			content = append(content, object{"type": "text", "text": m.text})
		}
		role := "user"
		if m.assistant {
			role, calls = "assistant", m.calls
			for j := range calls {
				content = append(content, object{"type": "tool_use", "id": calls[j].id, "name": calls[j].name, "input": calls[j].object()})
			}
		}
		for j, r := range m.results {
			content = append(content, object{"type": "tool_result", "tool_use_id": calls[j].id, "content": r})
		}
		if i == len(c.messages)-1 {
			content[len(content)-1]["cache_control"] = keep
		}
		messages = append(messages, object{"role": role, "content": content})
	}
	body := object{"model": model, "max_tokens": tokens, "temperature": 0, "stream": true, "messages": messages,
		"system": []object{{"type": "text", "text": c.system, "cache_control": keep}}}
	var all []object
	for _, t := range c.tools {
		all = append(all, object{"name": t.name, "description": t.about, "input_schema": t.schema()})
	}
	if all != nil {
		body["tools"] = all
	}
	return body
}

// client talks to a server.
type client struct {
	base   string // with no slash at its end
	api    *api
	model  string
	key    string
	server string // what it calls itself; "": nothing
	http   *http.Client
}

// newClient is one for the address that was typed, with so many connections at once.
func newClient(address, key string, connections int) (*client, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, console.Hintf(fmt.Errorf("%s is no address of a server", regular.Quote(address)), "it is like http://127.0.0.1:8080")
	}
	base := strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/")
	for _, a := range apis { // whole addresses of a route are taken too
		base = strings.TrimSuffix(base, a.path)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.DisableCompression = connections, true // compressed events come late
	return &client{base: strings.TrimSuffix(base, "/v1"), key: key, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key is for this address
	}}, nil
}

// do sends a request, with the key in the header of each API.
func (c *client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("User-Agent", "hearth-bench")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
		if c.api == nil || c.api.name == "anthropic" {
			req.Header.Set("X-Api-Key", c.key)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil && ctx.Err() == nil {
		err = console.Hintf(fmt.Errorf("%s does not answer: %w", c.base, err), "is a server running there? hearth serve starts one, and says its address")
	}
	return resp, err
}

// mostAnswer is the bytes that are read of an answer that is no stream.
const mostAnswer = 4 << 20

// discover finds out which API the server speaks, where want is "auto", and which model it has, where none is named.
func (c *client) discover(ctx context.Context, want, model string) error {
	for _, a := range apis {
		if want != "auto" && want != a.name {
			continue
		}
		// A request with nothing in it is refused by who knows the route, and costs nothing.
		resp, err := c.do(ctx, http.MethodPost, a.path, []byte("{}"))
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer)) // what came of it will do
		_ = resp.Body.Close()                                        // it was read
		c.server = resp.Header.Get("Server")
		switch resp.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return c.refusal(ctx, a.path, resp, text)
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			continue
		}
		c.api = a
		break
	}
	if c.api == nil && want == "auto" {
		return console.Hintf(fmt.Errorf("%s speaks neither API: there is no %s and no %s", c.base, apis[0].path, apis[1].path),
			"the address is what stands before /v1, as in http://127.0.0.1:8080")
	}
	if c.api == nil {
		return console.Hintf(fmt.Errorf("%s does not speak the API %s", c.base, want), "without --api hearth finds out which it speaks")
	}
	c.model = model
	if model != "" {
		return nil
	}
	names, err := c.models(ctx)
	if err != nil || len(names) == 0 {
		return console.Hintf(errors.Join(fmt.Errorf("%s does not say which models it has", c.base), err), "name one: --model NAME")
	}
	c.model = names[0]
	return nil
}

// models are the names that the server lists.
func (c *client) models(ctx context.Context) ([]string, error) {
	resp, err := c.do(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return nil, err
	}
	var list struct{ Data []struct{ ID string } }
	if resp.StatusCode != http.StatusOK || json.Unmarshal(text, &list) != nil {
		return nil, fmt.Errorf("GET /v1/models: %s: %s", resp.Status, regular.Clip(string(text)))
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// refusal is an answer that is no reply, with what to do about it.
func (c *client) refusal(ctx context.Context, path string, resp *http.Response, text []byte) error {
	var e struct{ Error json.RawMessage }
	said := string(text)
	if json.Unmarshal(text, &e) == nil && e.Error != nil {
		var of wireError
		if json.Unmarshal(e.Error, &of) == nil && of.Message != "" {
			said = of.Message
		} else if json.Unmarshal(e.Error, &said) != nil {
			said = string(e.Error)
		}
	}
	err := fmt.Errorf("POST %s%s: %s: %s", c.base, path, resp.Status, regular.Clip(cmp.Or(strings.TrimSpace(said), "nothing else was said")))
	lower := strings.ToLower(said)
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return console.Hintf(err, "name a key that it takes: --api-key KEY, or in the variable that --api-key-env names")
	case resp.StatusCode == http.StatusNotFound && c.model != "":
		names, _ := c.models(ctx) // none will do
		has := "--model NAME names another"
		if len(names) > 0 {
			has = "it has " + regular.Clip(strings.Join(names, ", ")) + ": --model NAME"
		}
		return console.Hintf(err, "%s", has)
	case strings.Contains(lower, "context") || strings.Contains(lower, "too long"):
		return console.Hintf(err, "conversations outgrow its context: fewer --turns, or a smaller --result and --system")
	}
	return err
}

const (
	mostTries = 6                // of a turn that the server is too busy for
	mostPause = 10 * time.Second // between them
)

// busy reports whether a server asks to come back later.
func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 529
}

// ask sends a conversation and reads what comes of it. It waits where the server is too busy, and says how often it was.
func (c *client) ask(ctx context.Context, conv *conversation, tokens int) (r *reply, refused int, err error) {
	body, err := json.Marshal(c.api.body(conv, c.model, tokens))
	if err != nil {
		return nil, 0, err
	}
	for try := 1; ; try++ {
		r, pause, err := c.once(ctx, body)
		if pause == 0 {
			return r, refused, err
		}
		refused++
		if try == mostTries {
			return nil, refused, console.Hintf(err, "it was too busy %d times: fewer --agents, or a limit of requests that is higher", mostTries)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, refused, ctx.Err()
		}
	}
}

// once sends a request; pause is how long to wait before another try, 0 for none.
func (c *client) once(ctx context.Context, body []byte) (r *reply, pause time.Duration, err error) {
	start := time.Now()
	resp, err := c.do(ctx, http.MethodPost, c.api.path, body)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		r = &reply{}
		return r, 0, r.read(c.api, resp.Body, func() time.Duration { return time.Since(start) })
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer)) // what came of it will do
	err = c.refusal(ctx, c.api.path, resp, text)
	if busy(resp.StatusCode) {
		pause = time.Second
		if s, bad := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); bad == nil && s >= 0 {
			pause = time.Duration(min(s, mostPause.Seconds()) * float64(time.Second))
		}
		pause = max(pause, time.Millisecond)
	}
	return nil, pause, err
}

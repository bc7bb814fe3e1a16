package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
)

// shelf is a manager that notes what it is asked.
type shelf struct {
	done []string
	err  error
	late bool // the error of Pull comes after an event
}

func (m *shelf) Models(_ context.Context, tokens int) (ManagedList, error) {
	list := ManagedList{Models: []Managed{{ID: "org/m", Status: "loaded", State: "whole", Kind: "chat"}}}
	if tokens > 0 {
		list.Models[0].Memory = &Need{Context: min(tokens, 8192), Bytes: 5}
		list.Memory = &Room{9, 4, 5}
	}
	return list, m.err
}

func (m *shelf) Remove(_ context.Context, model, revision string) (Removed, error) {
	m.done = append(m.done, "remove "+model+"@"+revision)
	return Removed{ID: model, Bytes: 7, Left: []string{}}, m.err
}

func (m *shelf) Load(_ context.Context, model string, keep *time.Duration) error {
	m.done = append(m.done, fmt.Sprint("load ", model))
	if keep != nil {
		m.done[len(m.done)-1] += fmt.Sprint(" for ", *keep)
	}
	return m.err
}

func (m *shelf) Unload(_ context.Context, model string) error {
	m.done = append(m.done, "unload "+model)
	return m.err
}

func (m *shelf) Pull(_ context.Context, model, revision string, tell func(string, any) error) error {
	m.done = append(m.done, "pull "+model+"@"+revision)
	if m.err != nil && !m.late {
		return m.err
	}
	return errors.Join(tell("plan", map[string]string{"event": "plan"}), m.err)
}

func (m *shelf) Aliases(context.Context) ([]Alias, error) { return nil, m.err }

func (m *shelf) SetAlias(_ context.Context, a Alias) error {
	m.done = append(m.done, "alias "+a.Name+" "+a.Model)
	return m.err
}

func (m *shelf) RemoveAlias(_ context.Context, name string) error {
	m.done = append(m.done, "no alias "+name)
	return m.err
}

func managed(m Manager) Options {
	o := options()
	o.Manager, o.Token, o.Monitor = m, "made-at-start", &figures{}
	return o
}

const bearer = "Authorization: Bearer made-at-start"

func TestManage(t *testing.T) {
	m := &shelf{}
	s := New(managed(m))
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/hearth/models", "", 200, `{"models":[{"id":"org/m","kind":"chat","status":"loaded","state":"whole"}]}`},
		{"GET", "/hearth/models?context=4096", "", 200, `"memory":{"context":4096,"bytes":5,"fits":false,"beside":false}}],"memory":{"capacity_bytes":9,"held_bytes":4,"free_bytes":5}}`},
		{"GET", "/hearth/models?context=max", "", 200, `"context":8192`},
		{"GET", "/hearth/models?context=0", "", 400, `expected a number of tokens from 1 on, or \"max\"`},
		{"GET", "/hearth/models?context=", "", 400, `not \"\"`},
		{"GET", "/hearth/models?context=4k", "", 400, `"param":"context"`},
		{"DELETE", "/hearth/models", `{"model":"org/m","revision":"v1"}`, 200, `{"id":"org/m","freed_bytes":7,"kept_files":0,"other_revisions":[]}`},
		{"DELETE", "/hearth/models", `{"revision":"v1"}`, 400, `model: a text is needed here`},
		{"DELETE", "/hearth/models", `{"model":"org/m","revision":1}`, 400, `this must be a text, not number`},
		{"DELETE", "/hearth/models", `{"model":"org/m","force":true}`, 400, `unknown field`},
		{"DELETE", "/hearth/models", `[]`, 400, `the body must be a JSON object with`},
		{"DELETE", "/hearth/models", `{"model":"` + strings.Repeat("x", maxManage) + `"}`, 413, `larger than 65536 bytes`},
		{"POST", "/hearth/models/load", `{"model":"org/m","keep_alive":"5m"}`, 200, `{"model":"org/m","status":"loaded"}`},
		{"POST", "/hearth/models/load", `{"model":"org/m","keep_alive":-1}`, 200, `{"model":"org/m","status":"loaded"}`},
		{"POST", "/hearth/models/load", `{"model":"org/m"}`, 200, `{"model":"org/m","status":"loaded"}`},
		{"POST", "/hearth/models/load", `{"model":"org/m","keep_alive":"soon"}`, 400, `expected seconds or a time`},
		{"POST", "/hearth/models/load", `{"model":"org/m","keep_alive":[]}`, 400, `keep_alive: expected a number of seconds`},
		{"POST", "/hearth/models/load", `{}`, 400, `model: a text is needed here`},
		{"POST", "/hearth/models/unload", `{"model":"org/m"}`, 200, `{"model":"org/m"}`},
		{"POST", "/hearth/models/pull", `{"model":"org/n"}`, 200, "event: plan\ndata: {\"event\":\"plan\"}\n\n"},
		{"POST", "/hearth/models/pull", `{}`, 400, `model: a text is needed here`},
		{"GET", "/hearth/models/pull", ``, 405, `use POST`},
		{"GET", "/hearth/aliases", "", 200, `{"aliases":[]}`},
		{"PUT", "/hearth/aliases", `{"name":"a","model":"org/m"}`, 200, `{"aliases":[]}`},
		{"PUT", "/hearth/aliases", `{"name":"a"}`, 400, `model: a text is needed here`},
		{"DELETE", "/hearth/aliases", `{"name":"a"}`, 200, `{"aliases":[]}`},
		{"GET", "/hearth/cache", "", 200, `{"type":"prefix_tree"`},
		{"DELETE", "/hearth/cache", "", 200, `{"dropped_entries":1`},
		{"POST", "/hearth/models", "{}", 405, `use DELETE or GET`},
		{"GET", "/hearth/none", "", 404, `there is nothing at GET /hearth/none`},
	} {
		if w := do(s, tc.method, tc.path, tc.body, bearer); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s %.60s = %d %s\nwant %d %s", tc.method, tc.path, tc.body, w.Code, w.Body, tc.status, tc.want)
		}
	}
	if got := strings.Join(m.done, "; "); got != "remove org/m@v1; load org/m for 5m0s; load org/m for -1s; load org/m; unload org/m; pull org/n@; alias a org/m; no alias a" {
		t.Errorf("asked for %s", got)
	}
	m.err = &chat.Error{Kind: chat.NotFound, Msg: "no such model"}
	if w := do(s, "DELETE", "/hearth/models", `{"model":"x"}`, bearer); w.Code != 404 || !strings.Contains(w.Body.String(), "no such model") {
		t.Error(w.Code, w.Body)
	}
	if w := do(s, "POST", "/hearth/models/pull", `{"model":"x"}`, bearer); w.Code != 404 || w.Header().Get("Content-Type") != "application/json" {
		t.Error(w.Code, w.Body)
	}
	m.late = true
	if w := do(s, "POST", "/hearth/models/pull", `{"model":"x"}`, bearer); w.Code != 200 || !strings.HasSuffix(w.Body.String(), "event: error\ndata: {\"event\":\"error\",\"message\":\"no such model\"}\n\n") {
		t.Error(w.Code, w.Body)
	}
	m.err = errors.New("disk on fire")
	if w := do(s, "GET", "/hearth/models", "", bearer); w.Code != 500 {
		t.Error(w.Code, w.Body)
	}
}

// Where there is no key, being on this machine is not enough: web pages of others are too.
func TestToken(t *testing.T) {
	const cookie = "Cookie: hearth_token=made-at-start"
	for name, tc := range map[string]struct {
		method, body string
		headers      []string
		status       int
	}{
		"nothing":                     {"GET", "", nil, 401},
		"the token":                   {"GET", "", []string{bearer}, 200},
		"the token as a key":          {"GET", "", []string{"X-Api-Key: made-at-start"}, 200},
		"another token":               {"GET", "", []string{"Authorization: Bearer made-at-star"}, 401},
		"an empty token":              {"GET", "", []string{"Authorization: Bearer "}, 401},
		"the cookie":                  {"GET", "", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200},
		"the cookie, an old browser":  {"GET", "", []string{cookie}, 200},
		"another cookie":              {"GET", "", []string{"Cookie: hearth_token=x", "Sec-Fetch-Site: same-origin"}, 401},
		"a script of another origin":  {"GET", "", []string{cookie, "Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 401},
		"an image on another page":    {"GET", "", []string{cookie, "Sec-Fetch-Site: cross-site"}, 401},
		"another port of the machine": {"GET", "", []string{cookie, "Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"}, 401},
		"the same without its site":   {"GET", "", []string{cookie, "Origin: http://localhost:3000"}, 401},
		"a sandboxed page":            {"GET", "", []string{cookie, "Origin: null"}, 401},
		"a rebinding name":            {"GET", "", []string{cookie, "Host: evil.example", "Sec-Fetch-Site: same-origin", "Origin: http://evil.example"}, 401},
		"a rebinding name, no cookie": {"GET", "", []string{"Host: evil.example", "Sec-Fetch-Site: same-origin"}, 401},
		"a page's request":            {"DELETE", `{"name":"a"}`, []string{cookie, "Content-Type: application/json", "Origin: http://localhost:8080"}, 200},
		"a page's request, by site":   {"DELETE", `{"name":"a"}`, []string{cookie, "Content-Type: application/json; charset=utf-8", "Sec-Fetch-Site: same-origin"}, 200},
		"a simple POST":               {"POST", `{"name":"a"}`, []string{cookie, "Content-Type: text/plain", "Origin: http://localhost:8080"}, 401},
		"a form":                      {"POST", `name=a`, []string{cookie, "Content-Type: application/x-www-form-urlencoded", "Sec-Fetch-Site: same-origin"}, 401},
		"a POST from anywhere":        {"DELETE", `{"name":"a"}`, []string{cookie, "Content-Type: application/json"}, 401},
		"a POST without type":         {"DELETE", `{"name":"a"}`, []string{cookie, "Origin: http://localhost:8080"}, 401},
		"the token from its page":     {"GET", "", []string{bearer, "Origin: http://localhost:3000"}, 200},
		"the token from others":       {"GET", "", []string{bearer, "Origin: https://evil.example"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/hearth/aliases", "//hearth///aliases/", "/hearth/../hearth/aliases"} {
				m := &shelf{}
				w := do(New(managed(m)), tc.method, path, tc.body, tc.headers...)
				if path == "/hearth/../hearth/aliases" { // no such path, whoever asks
					if w.Code < 300 || len(m.done) > 0 {
						t.Errorf("%s = %d, %v", path, w.Code, m.done)
					}
					continue
				}
				if w.Code != tc.status || tc.status == 401 && len(m.done) > 0 {
					t.Errorf("%s = %d %s, did %v; want %d", path, w.Code, w.Body, m.done, tc.status)
				}
			}
		})
	}
	// The name that a server was told to take for its own is no name to trust with the cookie where it stands for all.
	o := managed(&shelf{})
	o.AllowedHosts = []string{"*"}
	if w := do(New(o), "GET", "/hearth/aliases", "", "Host: evil.example", cookie, "Sec-Fetch-Site: same-origin"); w.Code != 401 {
		t.Errorf("a rebinding name where all are allowed: %d", w.Code)
	}
	// A page of an allowed origin may ask whether it may send the token.
	w := do(New(managed(&shelf{})), "OPTIONS", "/hearth/aliases", "", "Origin: http://localhost:3000", "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: authorization")
	if w.Code != 204 || !strings.Contains(w.Header().Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("a preflight: %d", w.Code)
	}
}

// The cookie is for pages of this server alone, and no script reads it.
func TestTokenCookie(t *testing.T) {
	for name, tc := range map[string]struct {
		headers []string
		hosts   []string
		keys    []access.Key
		given   bool
	}{
		"a browser":         {[]string{"Sec-Fetch-Site: none"}, nil, nil, true},
		"a page of its own": {[]string{"Sec-Fetch-Site: same-origin"}, nil, nil, true},
		"curl":              {nil, nil, nil, true},
		"the machine":       {[]string{"Host: box.example.org"}, nil, nil, true},
		"a named host":      {[]string{"Host: llm.example"}, []string{"llm.example"}, nil, true},
		"another origin":    {[]string{"Sec-Fetch-Site: cross-site", "Origin: http://localhost:3000"}, nil, nil, false},
		"a link elsewhere":  {[]string{"Sec-Fetch-Site: cross-site"}, nil, nil, false},
		"another port":      {[]string{"Sec-Fetch-Site: same-site"}, nil, nil, false},
		"a rebinding name":  {[]string{"Host: evil.example"}, nil, nil, false},
		"all hosts":         {[]string{"Host: evil.example"}, []string{"*"}, nil, false},
		"where keys are":    {nil, nil, plain("secret"), false},
	} {
		o := managed(&shelf{})
		o.AllowedHosts, o.Keys = tc.hosts, tc.keys
		w := do(New(o), "GET", "/", "", tc.headers...)
		c := w.Header().Get("Set-Cookie")
		if (c != "") != tc.given {
			t.Errorf("%s: cookie %q", name, c)
		}
		if tc.given && c != "hearth_token=made-at-start; Path=/hearth/; HttpOnly; SameSite=Strict" {
			t.Errorf("%s: cookie %q", name, c)
		}
	}
	if w := do(New(options()), "GET", "/", ""); w.Header().Get("Set-Cookie") != "" {
		t.Error("a server without a manager gives a cookie")
	}
}

// Where there are keys, these routes are the operator's, and the token's.
func TestManageKeys(t *testing.T) {
	o := managed(&shelf{})
	o.Keys = append(plain("user"), access.Key{Sum: access.PlainKey("boss").Sum, Operator: true})
	s := New(o)
	for header, status := range map[string]int{
		"X-None: x":                          401,
		"Cookie: hearth_token=made-at-start": 401,
		"Authorization: Bearer user":         http.StatusForbidden,
		"Authorization: Bearer boss":         200,
		bearer:                               200,
	} {
		if w := do(s, "GET", "/hearth/models", "", header); w.Code != status {
			t.Errorf("%s: %d %s, want %d", header, w.Code, w.Body, status)
		}
	}
	if w := do(s, "GET", "/v1/models", "", bearer); w.Code != 401 {
		t.Errorf("the token opens more than it is for: %d", w.Code)
	}
}

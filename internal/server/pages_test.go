package server

import (
	"strings"
	"testing"
)

// TestPages: browsers get the page at /, all others the line of text, and neither needs a key; nor do the page's files.
func TestPages(t *testing.T) {
	o := options()
	o.Keys = plain("k")
	s := New(o)
	for _, tt := range []struct {
		path, accept string
		status       int
		starts       string
	}{
		{"/", "text/html,application/xhtml+xml,*/*;q=0.8", 200, "<!doctype html>"}, {"/", "*/*", 200, "hearth is running"}, {"/", "", 200, "hearth is running"},
		{"/", "application/json", 200, "hearth is running"}, {"/webui/app.js", "*/*", 200, "//"}, {"/webui/none.js", "*/*", 404, "{"}, {"/v1/models", "text/html", 401, "{"},
	} {
		w := do(s, "GET", tt.path, "", "Accept: "+tt.accept)
		if w.Code != tt.status || !strings.HasPrefix(w.Body.String(), tt.starts) {
			t.Errorf("%s for %q: %d %.80s", tt.path, tt.accept, w.Code, w.Body)
		}
		if page := tt.starts == "<!doctype html>"; page != (w.Header().Get("Content-Security-Policy") != "") {
			t.Errorf("%s for %q: policy %q", tt.path, tt.accept, w.Header().Get("Content-Security-Policy"))
		}
	}
	if w := do(s, "POST", "/webui/app.js", "{}", "X-Api-Key: k"); w.Code != 405 {
		t.Errorf("POST is %d", w.Code)
	}
}

// TestMarkdown: texts are rendered for who has the key, up to a size, and count among no limits of requests.
func TestMarkdown(t *testing.T) {
	o := options()
	o.Keys, o.Limits.PerMinute = plain("k"), 1
	s := New(o)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"texts": ["*a*", "<b>"]}`, 200, `{"html":["<p><em>a</em></p>\n","<pre>&lt;b&gt;</pre>\n"]}`}, {`{"texts": []}`, 200, `{"html":[]}`},
		{`{}`, 400, "a list of texts is needed here"}, {`{"texts": [1]}`, 400, "a list of texts"}, {`[`, 400, "a list of texts"},
		{`{"texts": ["` + strings.Repeat("a", maxMarkdown) + `"]}`, 413, "larger than 262144 bytes"},
	} {
		w := do(s, "POST", "/v1/markdown", tt.body, "X-Api-Key: k")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%.40s: %d %.200s", tt.body, w.Code, w.Body)
		}
	}
	if w := do(s, "POST", "/v1/markdown", `{"texts": []}`); w.Code != 401 {
		t.Errorf("without a key it is %d", w.Code)
	}
}

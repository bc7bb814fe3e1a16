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

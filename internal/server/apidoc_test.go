package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hearth/internal/access"
	"hearth/internal/apidoc/apidoctest"
	"hearth/internal/mcp"
	"hearth/internal/metrics"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
)

// everything is a server with all routes that there are.
func everything(t *testing.T) *Server {
	t.Helper()
	o := managed(&shelf{})
	o.Monitor = &figures{status: Status{Status: "running", Model: "m", Cache: Cache{Type: "prefix_tree"}}, history: someHistory, tree: someTree}
	kept := store.New(store.Options{Mode: store.Memory})
	t.Cleanup(func() { _ = kept.Close() })
	o.Protocols = []wire.Protocol{anthropic.Protocol{}, responses.Protocol{Store: kept}, openai.Protocol{}}
	o.Metrics, o.MCP = metrics.New(metrics.Options{Version: "1", Commit: "c"}), toolbox{}
	return New(o)
}

// someHistory and someTree have all of their fields.
var (
	someHistory = History{Now: 9, First: 9, Step: 1, Columns: Columns{Prompt: []int64{1}, Cached: []int64{1}, Output: []int64{1}, Requests: []int64{1}, Running: []int64{1},
		Waiting: []int64{1}, Batch: []float64{1.5}, State: []int64{1}, Cache: []int64{1}, Hits: Hits{[]int64{1}, []int64{1}, []int64{1}, []int64{1}, []int64{1}}}}
	someTree = Tree{PageTokens: 64, Nodes: []TreeNode{{ID: 0, Model: "m", Tokens: 64, InMemory: true, Label: "Hello"}, {ID: 1, Parent: new(int64), Tokens: 64, OnDisk: 64, DiskBytes: 1}}, LeftOut: 1}
)

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// allowed are the methods at a path; none: it is no route.
func allowed(h http.Handler, path string) []string {
	r, w := httptest.NewRequest(http.MethodOptions, path, nil), httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), &wire.Info{Client: access.Client{Operator: true}})))
	return slices.DeleteFunc(strings.Split(w.Header().Get("Allow"), ", "), func(m string) bool { return m == "" || m == http.MethodOptions })
}

// TestAPIDocRoutes: every route of the mux is in the document, with its methods, and the reverse.
func TestAPIDocRoutes(t *testing.T) {
	mux := everything(t).routes.mux
	described := map[string]map[string]bool{} // methods by pattern
	for name, o := range apidoctest.Read().Operations() {
		path := parameter.ReplaceAllString(o.Path, "x")
		_, pattern := mux.Handler(httptest.NewRequest(o.Method, path, nil))
		if described[pattern] == nil {
			described[pattern] = map[string]bool{}
		}
		described[pattern][o.Method] = true
		_, socket := o.Body["responses"].(map[string]any)["101"]
		if pattern == "/" || !socket && !slices.Contains(allowed(mux, path), o.Method) {
			t.Errorf("%s is no route: it leads to %q, which allows %v", name, pattern, allowed(mux, path))
		}
	}
	for _, pattern := range mux.patterns {
		if pattern == "/" { // all that is no route
			continue
		}
		path := parameter.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "x")
		if described[pattern] == nil {
			t.Errorf("the document does not have %s", pattern)
		}
		for _, method := range allowed(mux, path) {
			if !described[pattern][method] {
				t.Errorf("the document does not have %s %s", method, pattern)
			}
		}
	}
	if len(mux.patterns) < 50 {
		t.Errorf("the mux has %d patterns", len(mux.patterns))
	}
}

// TestAPIDocReplies: what the routes answer that are the server's own is what the document says.
func TestAPIDocReplies(t *testing.T) {
	s := everything(t)
	made := do(s, "POST", "/v1/responses", `{"input":"Hi"}`)
	var response struct{ ID string }
	if err := json.Unmarshal(made.Body.Bytes(), &response); err != nil {
		t.Fatal(err)
	}
	made = do(s, "POST", "/v1/conversations", `{"items":[{"role":"user","content":"Hi"}]}`)
	var conversation struct{ ID string }
	if err := json.Unmarshal(made.Body.Bytes(), &conversation); err != nil {
		t.Fatal(err)
	}
	named := func(s string) string {
		return strings.NewReplacer("RESPONSE", response.ID, "CONVERSATION", conversation.ID).Replace(s)
	}
	for _, tc := range []struct {
		operation, path, body string
		status                int
	}{
		{"GET /", "/", "", 200},
		{"GET /openapi.json", "/openapi.json", "", 200},
		{"GET /docs", "/docs", "", 200},
		{"GET /webui/{file}", "/webui/docs.js", "", 200},
		{"POST /v1/markdown", "/v1/markdown", `{"texts":["*Hi*"]}`, 200},
		{"POST /v1/markdown", "/v1/markdown", `{}`, 400},
		{"GET /health", "/health", "", 200},
		{"GET /livez", "/livez", "", 200},
		{"GET /readyz", "/readyz", "", 200},
		{"GET /metrics", "/metrics", "", 200},
		{"GET /v1/status", "/v1/status", "", 200},
		{"GET /v1/status/history", "/v1/status/history", "", 200},
		{"GET /v1/status/history", "/v1/status/history?since=-1", "", 400},
		{"GET /v1/cache/tree", "/v1/cache/tree?most=7", "", 200},
		{"GET /v1/cache/tree", "/v1/cache/tree?most=x", "", 400},
		{"GET /v1/cache/stats", "/v1/cache/stats", "", 200},
		{"GET /v1/requests", "/v1/requests", "", 200},
		{"GET /v1/requests/{id}", "/v1/requests/x", "", 404},
		{"DELETE /v1/cache", "/v1/cache", "", 200},
		{"DELETE /v1/requests/{id}", "/v1/requests/x", "", 404},
		{"POST /v1/requests/{id}/cancel", "/v1/requests/x/cancel", "", 404},
		{"GET /v1/models", "/v1/models", "", 200},
		{"GET /v1/models", "/v1/models?limit=0", "", 400},
		{"GET /v1/models/{id}", "/v1/models/test-model", "", 200},
		{"GET /v1/models/{id}", "/v1/models/other", "", 404},
		{"GET /hearth/models", "/hearth/models", "", 200},
		{"GET /hearth/models", "/hearth/models?context=max", "", 200},
		{"GET /hearth/models", "/hearth/models?context=-1", "", 400},
		{"DELETE /hearth/models", "/hearth/models", `{"model":"m"}`, 200},
		{"DELETE /hearth/models", "/hearth/models", `{"model":"m","x":1}`, 400},
		{"POST /hearth/models/load", "/hearth/models/load", `{"model":"m","keep_alive":5}`, 200},
		{"POST /hearth/models/unload", "/hearth/models/unload", `{"model":"m"}`, 200},
		{"GET /hearth/aliases", "/hearth/aliases", "", 200},
		{"PUT /hearth/aliases", "/hearth/aliases", `{"name":"a","model":"m"}`, 200},
		{"DELETE /hearth/aliases", "/hearth/aliases", `{"name":"a"}`, 200},
		{"GET /hearth/cache", "/hearth/cache", "", 200},
		{"DELETE /hearth/cache", "/hearth/cache", "", 200},
		{"GET /v1/mcp/servers", "/v1/mcp/servers", "", 200},
		{"GET /v1/mcp/tools", "/v1/mcp/tools", "", 200},
		{"POST /v1/mcp/execute", "/v1/mcp/execute", `{"tool_name":"box__echo"}`, 200},
		{"POST /v1/mcp/execute", "/v1/mcp/execute", `{"tool_name":"box__locked"}`, 403},
		{"POST /v1/messages/count_tokens", "/v1/messages/count_tokens", messages, 200},
		{"POST /v1/completions", "/v1/completions", `{"prompt":"Hi"}`, 200},
		{"POST /v1/completions", "/v1/completions", `{"prompt":"Hi","stream":true,"stream_options":{"include_usage":true}}`, 200},
		{"POST /openai/deployments/{deployment}/chat/completions", "/openai/deployments/a/b/chat/completions", messages, 404},
		{"POST /v1/embeddings", "/v1/embeddings", `{"input":"Hi"}`, 400},
		{"POST /v1/rerank", "/v1/rerank", `{"query":"Hi","documents":["a"]}`, 400},
		{"GET /v1/responses", "/v1/responses", "", 405},
		{"POST /v1/responses/input_tokens", "/v1/responses/input_tokens", `{"input":"Hi"}`, 200},
		{"POST /v1/responses/compact", "/v1/responses/compact", `{"model":"test-model","input":[{"role":"user","content":"Hi"}]}`, 200},
		{"GET /v1/responses/{id}", "/v1/responses/RESPONSE", "", 200},
		{"GET /v1/responses/{id}/input_items", "/v1/responses/RESPONSE/input_items", "", 200},
		{"POST /v1/responses/{id}/cancel", "/v1/responses/RESPONSE/cancel", "", 400},
		{"DELETE /v1/responses/{id}", "/v1/responses/RESPONSE", "", 200},
		{"DELETE /v1/responses/{id}", "/v1/responses/RESPONSE", "", 404},
		{"GET /v1/conversations/{id}", "/v1/conversations/CONVERSATION", "", 200},
		{"POST /v1/conversations/{id}", "/v1/conversations/CONVERSATION", `{"metadata":{"a":"b"}}`, 200},
		{"POST /v1/conversations/{id}/items", "/v1/conversations/CONVERSATION/items", `{"items":[{"id":"msg_1","role":"user","content":"Hi"}]}`, 200},
		{"GET /v1/conversations/{id}/items", "/v1/conversations/CONVERSATION/items?limit=1", "", 200},
		{"GET /v1/conversations/{id}/items/{item}", "/v1/conversations/CONVERSATION/items/msg_1", "", 200},
		{"DELETE /v1/conversations/{id}/items/{item}", "/v1/conversations/CONVERSATION/items/msg_1", "", 200},
		{"DELETE /v1/conversations/{id}", "/v1/conversations/CONVERSATION", "", 200},
	} {
		o := apidoctest.Read().Operations()[tc.operation]
		if o == nil {
			t.Errorf("there is no %s", tc.operation)
			continue
		}
		if tc.body != "" && tc.status < 300 {
			o.Request(t, []byte(tc.body))
		}
		w := do(s, o.Method, named(tc.path), tc.body, bearer)
		if w.Code != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.operation, w.Code, w.Body, tc.status)
		}
		o.Reply(t, w.Code, w.Header().Get("Content-Type"), w.Body.Bytes())
	}
}

// TestAPIDocFields: the fields of bodies that have more than a test makes them show are those of the document.
func TestAPIDocFields(t *testing.T) {
	doc := apidoctest.Read()
	for name, v := range map[string]any{
		"Health": Health{}, "Probe": probed{}, "Status": Status{}, "OwnStatus": OwnStatus{}, "CacheStats": CacheStats{}, "OwnCacheStats": OwnCacheStats{},
		"Cleared": Cleared{}, "History": History{}, "Traces": Traces{}, "Trace": Trace{}, "CacheTree": Tree{}, "Managed": Managed{}, "Removed": Removed{}, "AliasList": struct {
			Aliases []Alias `json:"aliases"`
		}{}, "MCPServers": struct {
			Servers []mcp.Status `json:"servers"`
		}{}, "MCPTools": struct {
			Tools []mcp.Tool `json:"tools"`
			Count int        `json:"count"`
		}{}, "MCPResult": executed{},
	} {
		sameFields(t, doc, name, reflect.TypeOf(v), map[string]any{"$ref": "#/components/schemas/" + name})
	}
}

// sameFields compares the fields of a type with the members that a schema describes. Those without omitempty are required.
func sameFields(t *testing.T, doc *apidoctest.Doc, at string, of reflect.Type, schema map[string]any) {
	t.Helper()
	schema = doc.Plain(schema)
	switch of.Kind() {
	case reflect.Pointer:
		sameFields(t, doc, at, of.Elem(), schema)
	case reflect.Slice:
		if items, ok := schema["items"].(map[string]any); ok && of.Elem().Kind() != reflect.Uint8 {
			sameFields(t, doc, at+"[]", of.Elem(), items)
		}
	case reflect.Struct:
		described, _ := schema["properties"].(map[string]any)
		left := maps.Clone(described)
		required, _ := schema["required"].([]any)
		for i := range of.NumField() {
			name, option, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			delete(left, name)
			switch p, ok := described[name].(map[string]any); {
			case !ok:
				t.Errorf("%s.%s is not described", at, name)
			case (option == "omitempty") == slices.Contains(required, any(name)):
				t.Errorf("%s.%s: the document says required: %t", at, name, option == "omitempty")
			default:
				sameFields(t, doc, at+"."+name, of.Field(i).Type, p)
			}
		}
		for name := range left {
			t.Errorf("%s.%s is described, and not there", at, name)
		}
	}
}

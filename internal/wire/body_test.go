package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

func TestReadBody(t *testing.T) {
	for _, tc := range []struct {
		name, mediaType, encoding, body string
		length                          int64 // Content-Length, 0: chunked
		kind                            chat.ErrorKind
		code, want                      string // want "" means no error
	}{
		{"plain", "application/json", "", `{"a":1}`, 7, 0, "", ""},
		{"charset", "application/json; charset=utf-8", "identity", `{}`, 0, 0, "", ""},
		{"text", "text/plain", "", `{}`, 2, chat.Invalid, wire.CodeMediaType, `must be application/json, got "text/plain"`},
		{"no type", "", "", `{}`, 2, chat.Invalid, wire.CodeMediaType, "must be application/json"},
		{"brotli", "application/json", "br", "x", 1, chat.Invalid, wire.CodeMediaType, "send the body as gzip, zstd or uncompressed"},
		{"announced too large", "application/json", "", `["` + strings.Repeat("x", 100) + `"]`, 104, chat.TooLarge, "", "larger than the limit of 64 bytes"},
		{"chunked too large", "application/json", "", `["` + strings.Repeat("x", 100) + `"]`, 0, chat.TooLarge, "", "larger than the limit of 64 bytes"},
		{"exactly the limit", "application/json", "", `["` + strings.Repeat("x", 60) + `"]`, 0, 0, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
			r.ContentLength = tc.length
			if tc.length == 0 {
				r.ContentLength = -1
			}
			r.Header.Set("Content-Type", tc.mediaType)
			r.Header.Set("Content-Encoding", tc.encoding)
			o := wire.Options{MaxBody: 64}.WithDefaults()
			got := ""
			var err *chat.Error
			body := o.Read(httptest.NewRecorder(), r, func(_ http.ResponseWriter, _ *http.Request, e *chat.Error) { err = e },
				func(v wire.Value) *chat.Error { got = string(v.Raw()); return nil })
			if tc.want == "" {
				if err != nil || got != tc.body {
					t.Fatalf("got %v, %v", got, err)
				}
				if o.Bodies.Held() == 0 {
					t.Error("nothing is held")
				}
				body.Close()
				body.Close()
			}
			if n := o.Bodies.Held(); n != 0 {
				t.Errorf("%d bytes are held at the end", n)
			}
			if tc.want == "" {
				return
			}
			if err == nil || err.Kind != tc.kind || err.Code != tc.code || !strings.Contains(err.Msg, tc.want) {
				t.Errorf("error %#v, want %q", err, tc.want)
			}
		})
	}
}

// readDeadlines is a reply that keeps what it is told of reading.
type readDeadlines struct {
	*httptest.ResponseRecorder
	set []time.Duration // from now; 0: none
}

func (d *readDeadlines) SetReadDeadline(at time.Time) error {
	left := time.Duration(0)
	if !at.IsZero() {
		left = time.Until(at).Round(time.Second)
	}
	d.set = append(d.set, left)
	return nil
}

// TestBodyDeadlines: a body has two minutes to come, what is left of a refused one five seconds, and what is read after a whole
// one has no deadline of a body's.
func TestBodyDeadlines(t *testing.T) {
	for _, tc := range []struct {
		body     string
		promised bool
		want     []time.Duration
	}{
		{`{}`, true, []time.Duration{2 * time.Minute, 0}},
		{strings.Repeat(" ", 1<<10), false, []time.Duration{2 * time.Minute, 5 * time.Second}},
		{strings.Repeat(" ", 1<<10), true, []time.Duration{5 * time.Second}},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
		if !tc.promised {
			r.ContentLength = -1
		}
		r.Header.Set("Content-Type", "application/json")
		w := &readDeadlines{ResponseRecorder: httptest.NewRecorder()}
		b := wire.Options{MaxBody: 64}.WithDefaults().Read(w, r, func(http.ResponseWriter, *http.Request, *chat.Error) {}, func(wire.Value) *chat.Error { return nil })
		b.Close()
		if !slices.Equal(w.set, tc.want) {
			t.Errorf("%d bytes, promised %v: deadlines %v, want %v", len(tc.body), tc.promised, w.set, tc.want)
		}
	}
}

func TestModels(t *testing.T) {
	g := wiretest.New()
	g.Desc.ID = "org/Model-4bit"
	g.Desc.Path = "/models/Model-4bit"
	g.Desc.Parser, g.Desc.Description, g.Desc.Quant = "hermes", "tiny, 8 bits", "8 bits"
	g.Desc.Output = 2048
	g.Names = []string{"alias"}
	mux := http.NewServeMux()
	wire.MountModels(mux, "", wiretest.Options(g), fail)
	object := `{"id":"org/Model-4bit","type":"model","object":"model","display_name":"org/Model-4bit","created_at":"2026-01-02T03:04:05Z","created":1767323045,"owned_by":"hearth","lifecycle":"active","max_input_tokens":4096,"max_tokens":2048,"context_length":4096,"context_window":4096,"max_model_len":4096,"modality":"text","quantization":"8 bits","tool_call_parser":"hermes","reasoning_parser":"hermes","description":"tiny, 8 bits","kind":"chat"}`
	list := func(objects, more, first, last string) string {
		return `{"object":"list","data":[` + objects + `],"has_more":` + more + `,"first_id":` + first + `,"last_id":` + last + `}`
	}
	whole := list(object, "false", `"org/Model-4bit"`, `"org/Model-4bit"`)
	for _, tc := range []struct {
		path, want string
		status     int
	}{
		{"/v1/models", whole, 200},
		{"/models?limit=1000", whole, 200},
		{"/v1/models?after_id=org/Model-4bit", list("", "false", "null", "null"), 200},
		{"/v1/models?before_id=org/Model-4bit", list("", "false", "null", "null"), 200},
		{"/v1/models?after_id=gone", list("", "false", "null", "null"), 200},
		{"/v1/models?limit=0", "limit: must be a number between 1 and 1000", http.StatusTeapot},
		{"/v1/models/org/Model-4bit", object, 200},
		{"/v1/models/org%2FModel-4bit", object, 200},
		{"/models/Model-4bit", object, 200},
		{"/v1/models/alias", object, 200},
		{"/v1/models/gpt-9", `model: there is no model "gpt-9" here`, http.StatusTeapot},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
		if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.want) {
			t.Errorf("GET %s = %d %s\nwant %d %s", tc.path, w.Code, w.Body, tc.status, tc.want)
		}
	}
}

// several are the models of a server that has more than one.
type several struct {
	*wiretest.Generator
	list []chat.Model
}

func (s several) List(context.Context) []chat.Model { return s.list }

// TestClaudeNames: clients of the Anthropic API meet every model that chats a second time, under a name that begins with claude
// and shows the id; SDKs and clients of other APIs do not. Anybody may ask for one by that name.
func TestClaudeNames(t *testing.T) {
	models := several{wiretest.New(), []chat.Model{
		{ID: "org/My Model-4bit"}, {ID: "claude-tuned"}, {ID: "größe:1.5_b"}, {ID: "bge-m3", Kind: chat.Embeds}, {ID: "claude-gr--e:1.5_b"},
	}}
	mux := http.NewServeMux()
	o := wiretest.Options(models.Generator)
	o.Models = models
	wire.MountModels(mux, "", o, fail)
	plain := []string{"org/My Model-4bit", "claude-tuned", "größe:1.5_b", "bge-m3", "claude-gr--e:1.5_b"}
	all := append(slices.Clone(plain), "claude-org-My-Model-4bit") // the last one's name is a model's own
	const version, sdk = "Anthropic-Version", "X-Stainless-Lang"
	for _, tc := range []struct {
		path   string
		header []string
		want   []string
		more   bool
	}{
		{"/v1/models", nil, plain, false},
		{"/v1/models?limit=1000", []string{version}, all, false},
		{"/v1/models", []string{version, sdk}, plain, false},
		{"/v1/models", []string{sdk}, plain, false},
		{"/models?limit=5", []string{version}, all[:5], true},
		{"/v1/models?limit=5", nil, plain, false},
		{"/v1/models?limit=2&after_id=bge-m3", []string{version}, all[4:], false},
		{"/v1/models?before_id=claude-org-My-Model-4bit&limit=2", []string{version}, all[3:5], true},
		{"/v1/models?after_id=claude-org-My-Model-4bit", []string{version}, nil, false},
	} {
		r, w := httptest.NewRequest(http.MethodGet, tc.path, nil), httptest.NewRecorder()
		for _, h := range tc.header {
			r.Header.Set(h, "2023-06-01")
		}
		mux.ServeHTTP(w, r)
		var list struct {
			Data []struct {
				ID   string
				Name string `json:"display_name"`
			}
			More bool `json:"has_more"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, m := range list.Data {
			ids = append(ids, m.ID)
			if want := m.ID; m.Name != want && (m.ID != all[5] || m.Name != plain[0]) {
				t.Errorf("%s is shown as %q", m.ID, m.Name)
			}
		}
		if !slices.Equal(ids, tc.want) || list.More != tc.more {
			t.Errorf("GET %s %v: %q, more %t; want %q, %t", tc.path, tc.header, ids, list.More, tc.want, tc.more)
		}
	}
	for id, want := range map[string]string{"claude-org-My-Model-4bit": plain[0], "claude-tuned": "claude-tuned", "claude-gr--e:1.5_b": "claude-gr--e:1.5_b"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models/"+id, nil))
		if want := fmt.Sprintf(`{"id":%q,"type":"model","object":"model","display_name":%q`, id, want); w.Code != 200 || !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("GET %s: %d %s, want %s", id, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models/claude-bge-m3", nil))
	if w.Code != http.StatusTeapot {
		t.Errorf("a model that does not chat has a name with claude: %d %s", w.Code, w.Body)
	}
}

func TestParts(t *testing.T) {
	var p wire.Parts
	for _, text := range []string{"", "a", "", "b\n", "c"} {
		p.Text(text)
	}
	p.Add(chat.Part{Kind: chat.PartReasoning, Text: "r"})
	p.Add(chat.Part{Kind: chat.PartReasoning, Text: "s"})
	p.Text("d")
	var got []string
	for _, part := range p.All() {
		got = append(got, fmt.Sprint(part.Kind, part.Text))
	}
	if want := []string{"0a\nb\nc", "1r", "1s", "0d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAppendSystem(t *testing.T) {
	r := &chat.Request{Messages: []chat.Message{{Role: chat.User}}}
	wire.AppendSystem(r, "a")
	wire.AppendSystem(r, "b")
	if len(r.Messages) != 2 || r.Messages[0].Role != chat.System || r.Messages[0].Text() != "a\nb" || len(r.Messages[0].Parts) != 1 {
		t.Errorf("got %+v", r.Messages)
	}
}

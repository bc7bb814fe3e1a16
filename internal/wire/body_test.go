package wire_test

import (
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
		{"gzip", "application/json", "gzip", "x", 1, chat.Invalid, wire.CodeMediaType, "send the body uncompressed"},
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
			body, err := o.ReadBody(httptest.NewRecorder(), r)
			if tc.want == "" {
				if err != nil || string(body.Raw()) != tc.body {
					t.Fatalf("got %v, %v", body, err)
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

// TestBodyDeadlines: a body has two minutes to come, what is left of a refused one five seconds, and what is read after
// that has no deadline of a body's.
func TestBodyDeadlines(t *testing.T) {
	for body, want := range map[string][]time.Duration{
		`{}`:                       {2 * time.Minute, 0},
		strings.Repeat(" ", 1<<10): {2 * time.Minute, 5 * time.Second, 0},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := &readDeadlines{ResponseRecorder: httptest.NewRecorder()}
		b, _ := wire.Options{MaxBody: 64}.WithDefaults().ReadBody(w, r)
		b.Close()
		if !slices.Equal(w.set, want) {
			t.Errorf("%d bytes: deadlines %v, want %v", len(body), w.set, want)
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
	wire.MountModels(mux, wiretest.Options(g), fail)
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

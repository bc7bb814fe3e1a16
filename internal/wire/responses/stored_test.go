package responses

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// api is the protocol with a store, on a real connection; who calls is told by a header.
type api struct {
	t   *testing.T
	url string
	got *chat.Request // what the generator was asked last
}

func serveStored(t *testing.T, s *store.Store, steps func(r *chat.Request) []wiretest.Step) *api {
	t.Helper()
	a := &api{t: t}
	g := wiretest.New()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) { return steps(r), nil }
	g.Got = func(r *chat.Request) { a.got = r }
	g.Names = []string{"*"}
	mux := http.NewServeMux()
	o := wiretest.Options(g)
	o.NewID = nil
	Protocol{Store: s}.Mount(mux, o)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &wire.Info{RequestID: "req_1"}
		copy(info.Owner[:], r.Header.Get("Owner"))
		mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), info)))
	}))
	t.Cleanup(srv.Close)
	a.url = srv.URL
	return a
}

// document is what tests look at in a reply.
type document struct {
	ID, Status, Object string
	Deleted, Store     bool
	Background         bool
	HasMore            bool   `json:"has_more"`
	PreviousID         string `json:"previous_response_id"`
	FirstID            string `json:"first_id"`
	LastID             string `json:"last_id"`
	CreatedAt          int64  `json:"created_at"`
	Conversation       *struct{ ID string }
	Metadata           map[string]any
	Output, Data       []map[string]any // items
	Usage              struct {
		Output int `json:"output_tokens"`
	}
	Error *struct{ Code, Message, Param string }
}

func (a *api) call(method, path, owner, body string) (int, *document) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Owner", owner)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	d := &document{}
	if err := json.NewDecoder(resp.Body).Decode(d); err != nil {
		a.t.Fatalf("%s %s: %d, %v", method, path, resp.StatusCode, err)
	}
	return resp.StatusCode, d
}

// create makes a response that must be complete.
func (a *api) create(body string) *document {
	a.t.Helper()
	status, d := a.call("POST", "/v1/responses", "ada", body)
	if status != 200 {
		a.t.Fatalf("%s: %d %+v", body, status, d.Error)
	}
	return d
}

// answer says how many messages it was asked, behind a thought.
func answer(r *chat.Request) []wiretest.Step {
	u := &chat.Usage{Prompt: 3, Output: 1}
	return []wiretest.Step{
		{Event: chat.Event{Kind: chat.EventStart, Usage: u}},
		{Event: chat.Event{Kind: chat.EventReasoning, Text: "Hm."}},
		{Event: chat.Event{Kind: chat.EventText, Text: fmt.Sprint(len(r.Messages), " messages")}},
		{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: u}},
	}
}

func writeEmpty(path string) error { return os.WriteFile(path, nil, 0o600) }

func newStore(t *testing.T, dir string) *store.Store {
	s := store.New(store.Options{Mode: store.Disk, Dir: dir})
	t.Cleanup(func() { s.Close() })
	return s
}

// said is a conversation in short.
func said(r *chat.Request) string {
	var all []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			all = append(all, string(m.Role)+":"+p.Text)
		}
	}
	return strings.Join(all, " ")
}

// TestChain: a response builds on another with all that was said and thought, whole and streamed, also after a restart and where
// nothing new is said; instructions do not come along.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	a := serveStored(t, s, answer)
	first := a.create(`{"input": "One.", "instructions": "Be brief.", "metadata": {"k": "v"}}`)
	if !first.Store || first.Status != completed {
		t.Fatalf("%+v", first)
	}
	second := a.create(`{"previous_response_id": "` + first.ID + `", "input": [{"role": "user", "content": "Two."}]}`)
	if want := "user:One. assistant:Hm. assistant:2 messages user:Two."; said(a.got) != want || second.PreviousID != first.ID {
		t.Errorf("%s, want %s", said(a.got), want)
	}
	s.Close()
	a = serveStored(t, newStore(t, dir), answer)
	status, got := a.call("GET", "/v1/responses/"+second.ID, "ada", "")
	if status != 200 || got.Status != completed || len(got.Output) != 2 {
		t.Errorf("%d %+v", status, got)
	}
	a.create(`{"previous_response_id": "` + second.ID + `"}`)
	if want := "user:One. assistant:Hm. assistant:2 messages user:Two. assistant:Hm. assistant:3 messages"; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
	a.create(`{"input": [{"type": "item_reference", "id": "` + second.Output[1]["id"].(string) + `"}, {"role": "user", "content": "Three."}]}`)
	if want := "assistant:3 messages user:Three."; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
}

// TestStoredStream: the stream's last event comes when the response can be read.
func TestStoredStream(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	resp, err := http.Post(a.url+"/v1/responses", "application/json", strings.NewReader(`{"input": "Hi", "stream": true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	seen := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e struct {
			Type     string
			Response document
		}
		if !ok || json.Unmarshal([]byte(data), &e) != nil || e.Response.ID == "" {
			continue
		}
		seen++
		want := inProgress
		if e.Type == "response.completed" {
			want = completed
		}
		if status, got := a.call("GET", "/v1/responses/"+e.Response.ID, "", ""); status != 200 || want == completed && got.Status != want {
			t.Errorf("after %s: %d %s", e.Type, status, got.Status)
		}
	}
	if seen != 3 {
		t.Errorf("%d events with a response", seen)
	}
}

// TestNotStored: what is not to be stored is not there.
func TestNotStored(t *testing.T) {
	for name, a := range map[string]*api{
		"asked for": serveStored(t, newStore(t, t.TempDir()), answer),
		"off":       serveStored(t, store.New(store.Options{Mode: store.Off}), answer),
		"no store":  serveStored(t, nil, answer),
	} {
		d := a.create(`{"input": "Hi", "store": false}`)
		if d.Store {
			t.Errorf("%s: it says that it is stored", name)
		}
		for _, c := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/cancel"}, {"GET", "/input_items"}} {
			if status, got := a.call(c[0], "/v1/responses/"+d.ID+c[1], "ada", "{}"); status != 404 || got.Error == nil || !strings.Contains(got.Error.Message, d.ID) {
				t.Errorf("%s: %s%s: %d %+v", name, c[0], c[1], status, got.Error)
			}
		}
		status, got := a.call("POST", "/v1/responses", "ada", `{"input": "Hi", "previous_response_id": "`+d.ID+`"}`)
		if status != 400 || got.Error.Code != "previous_response_not_found" || got.Error.Param != "previous_response_id" {
			t.Errorf("%s: %d %+v", name, status, got.Error)
		}
	}
}

// TestOwners: an id of one owner is none for another.
func TestOwners(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	d := a.create(`{"input": "Hi"}`)
	for _, c := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/cancel"}, {"GET", "/input_items"}} {
		for _, owner := range []string{"bob", ""} {
			if status, _ := a.call(c[0], "/v1/responses/"+d.ID+c[1], owner, "{}"); status != 404 {
				t.Errorf("%s%s by %q: %d", c[0], c[1], owner, status)
			}
		}
	}
	body := `{"input": "Hi", "previous_response_id": "` + d.ID + `"}`
	if status, got := a.call("POST", "/v1/responses", "bob", body); status != 400 || got.Error.Code != "previous_response_not_found" {
		t.Errorf("%d %+v", status, got.Error)
	}
	item := `{"input": [{"type": "item_reference", "id": "` + d.Output[1]["id"].(string) + `"}]}`
	if status, got := a.call("POST", "/v1/responses", "bob", item); status != 404 || got.Error.Code != "item_not_found" {
		t.Errorf("%d %+v", status, got.Error)
	}
	if status, _ := a.call("GET", "/v1/responses/"+d.ID, "ada", ""); status != 200 {
		t.Errorf("%d for its owner", status)
	}
}

func TestDelete(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	d := a.create(`{"input": "Hi"}`)
	if status, got := a.call("DELETE", "/openai/v1/responses/"+d.ID, "ada", ""); status != 200 || !got.Deleted || got.ID != d.ID || got.Object != "response" {
		t.Errorf("%d %+v", status, got)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, _ := a.call(method, "/v1/responses/"+d.ID, "ada", ""); status != 404 {
			t.Errorf("%s: %d", method, status)
		}
	}
}

// TestInputItems: what went in, newest first, in pages.
func TestInputItems(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	first := a.create(`{"input": "One."}`)
	d := a.create(`{"previous_response_id": "` + first.ID + `", "input": [{"role": "user", "content": "Two."}, {"type": "message", "id": "msg_mine", "role": "user", "content": [{"type": "input_text", "text": "Three."}]}]}`)
	list := func(query string) (*document, string) {
		t.Helper()
		status, got := a.call("GET", "/v1/responses/"+d.ID+"/input_items"+query, "ada", "")
		if status != 200 {
			t.Fatalf("%s: %d %+v", query, status, got.Error)
		}
		var texts []string
		for _, i := range got.Data {
			text, _ := json.Marshal(i["content"])
			texts = append(texts, string(text))
		}
		return got, strings.Join(texts, " ")
	}
	all, texts := list("?order=asc&limit=100")
	if len(all.Data) != 5 || all.HasMore || all.LastID != "msg_mine" || all.Object != "list" || !strings.Contains(texts, "One.") {
		t.Errorf("%+v", all)
	}
	for _, i := range all.Data {
		if i["id"] == nil || i["type"] == nil {
			t.Errorf("%v", i)
		}
	}
	page, _ := list("?limit=2")
	if page.FirstID != "msg_mine" || !page.HasMore || len(page.Data) != 2 {
		t.Errorf("%+v", page)
	}
	next, _ := list("?limit=2&after=" + page.LastID)
	last, _ := list("?after=" + next.LastID)
	if len(next.Data) != 2 || !next.HasMore || len(last.Data) != 1 || last.HasMore || last.FirstID != all.FirstID {
		t.Errorf("%+v, %+v", next, last)
	}
	if before, _ := list("?order=asc&before=" + all.LastID); len(before.Data) != 4 {
		t.Errorf("%+v", before)
	}
	for _, bad := range []string{"?limit=0", "?limit=101", "?limit=x", "?order=up", "?after=nobody"} {
		if status, got := a.call("GET", "/v1/responses/"+d.ID+"/input_items"+bad, "ada", ""); status != 400 || got.Error.Param == "" {
			t.Errorf("%s: %d %+v", bad, status, got.Error)
		}
	}
}

// waiting replies with a word and then waits until it is told to end.
func waiting(began chan<- struct{}) func(*chat.Request) []wiretest.Step {
	return func(*chat.Request) []wiretest.Step {
		return []wiretest.Step{
			{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}}, {Event: chat.Event{Kind: chat.EventText, Text: "Word"}},
			{Before: func(ctx context.Context) { close(began); <-ctx.Done() }, Err: context.Canceled, Event: chat.Event{Finish: chat.FinishCancelled}},
		}
	}
}

// TestCancel: a response in progress is ended by another request, whole and streamed; one that has ended is not.
func TestCancel(t *testing.T) {
	for _, stream := range []bool{false, true} {
		began := make(chan struct{})
		dir := t.TempDir()
		a := serveStored(t, newStore(t, dir), waiting(began))
		type reply struct {
			status int
			text   string
		}
		replies := make(chan reply)
		go func() {
			body := fmt.Sprintf(`{"input": "Hi", "stream": %t, "metadata": {"a": "b"}}`, stream)
			resp, err := http.Post(a.url+"/v1/responses", "application/json", strings.NewReader(body))
			if err != nil {
				replies <- reply{0, err.Error()}
				return
			}
			defer resp.Body.Close()
			var text strings.Builder
			_, _ = bufio.NewReader(resp.Body).WriteTo(&text)
			replies <- reply{resp.StatusCode, text.String()}
		}()
		<-began
		id := onlyID(t, dir)
		if status, got := a.call("POST", "/v1/responses/"+id+"/cancel", "", "{}"); status != 200 || got.Status != cancelled || got.ID != id {
			t.Errorf("%d %+v", status, got)
		}
		got := <-replies
		if got.status != 200 || !strings.Contains(got.text, `"status":"cancelled"`) || strings.Contains(got.text, `"status":"completed"`) {
			t.Errorf("stream %t: %d %s", stream, got.status, got.text)
		}
		if status, d := a.call("GET", "/v1/responses/"+id, "", ""); status != 200 || d.Status != cancelled || len(d.Output) != 1 {
			t.Errorf("%d %+v", status, d)
		}
		if status, d := a.call("POST", "/v1/responses/"+id+"/cancel", "", "{}"); status != 400 || !strings.Contains(d.Error.Message, "it is cancelled") {
			t.Errorf("again: %d %+v", status, d.Error)
		}
	}
}

// ids are those of the responses in the database of a folder.
func ids(t *testing.T, dir string) []string {
	t.Helper()
	return column(t, dir, "id")
}

// column is a column of the responses in the database of a folder.
func column(t *testing.T, dir, name string) []string {
	t.Helper()
	path := filepath.Join(dir, "responses.db")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT "+name+" FROM responses")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		all = append(all, "")
		if err := rows.Scan(&all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// onlyID is the id of the only response in the database of a folder.
func onlyID(t *testing.T, dir string) string {
	t.Helper()
	all := ids(t, dir)
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	return all[0]
}

// TestClientLeaves: a response whose client leaves is stored as cancelled, with what there was of it.
func TestClientLeaves(t *testing.T) {
	began, dir := make(chan struct{}), t.TempDir()
	s := newStore(t, dir)
	done := make(chan struct{})
	g := wiretest.New()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) { return waiting(began)(r), nil }
	mux := http.NewServeMux()
	Protocol{Store: s}.Mount(mux, wiretest.Options(g))
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/responses", strings.NewReader(`{"input": "Hi", "stream": true}`))
	r.Header.Set("Content-Type", "application/json")
	go func() { mux.ServeHTTP(httptest.NewRecorder(), r); close(done) }()
	<-began
	leave()
	<-done
	got, err := s.Get(t.Context(), store.Owner{}, onlyID(t, dir))
	if err != nil || got.Status != cancelled || !strings.Contains(string(got.Body), `"Word"`) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestServerEnds: what was in progress when a server ended has failed.
func TestServerEnds(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	if err := s.Begin(t.Context(), &store.Response{ID: "resp_1", Body: []byte(`{"id":"resp_1","status":"in_progress","output":[]}`)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	a := serveStored(t, newStore(t, dir), answer)
	if status, got := a.call("GET", "/v1/responses/resp_1", "", ""); status != 200 || got.Status != failed || got.Error == nil || got.Error.Code != "server_error" {
		t.Errorf("%d %+v", status, got)
	}
}

// TestErrorsAreStored: a reply that fails in the middle is stored as failed; one that never began is not stored.
func TestErrorsAreStored(t *testing.T) {
	dir := t.TempDir()
	fails := &chat.Error{Kind: chat.Internal, Msg: "a step failed"}
	a := serveStored(t, newStore(t, dir), func(r *chat.Request) []wiretest.Step {
		if len(r.Messages) == 1 {
			return []wiretest.Step{{Err: fails}}
		}
		return append(answer(r)[:2:2], wiretest.Step{Err: fails})
	})
	if status, _ := a.call("POST", "/v1/responses", "", `{"input": "Hi"}`); status != 500 {
		t.Errorf("%d", status)
	}
	if all := ids(t, dir); len(all) != 0 {
		t.Errorf("%v", all)
	}
	if status, _ := a.call("POST", "/v1/responses", "", `{"input": "Hi", "instructions": "x"}`); status != 500 {
		t.Errorf("%d", status)
	}
	if status, d := a.call("GET", "/v1/responses/"+onlyID(t, dir), "", ""); status != 200 || d.Status != failed || d.Error.Message != "a step failed" {
		t.Errorf("%d %+v", status, d)
	}
}

// TestBrokenStore: where nothing can be stored a request says so, and one that does not ask for it goes on.
func TestBrokenStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	s := newStore(t, filepath.Join(file, "dir"))
	if err := writeEmpty(file); err != nil {
		t.Fatal(err)
	}
	a := serveStored(t, s, answer)
	if status, d := a.call("POST", "/v1/responses", "", `{"input": "Hi"}`); status != 500 || !strings.Contains(d.Error.Message, "--store memory") || !strings.Contains(d.Error.Message, "store: false") {
		t.Errorf("%d %+v", status, d.Error)
	}
	if status, _ := a.call("POST", "/v1/responses", "", `{"input": "Hi", "store": false}`); status != 200 {
		t.Errorf("%d", status)
	}
}

// TestNotBuiltOn: a response that is deleted, too far along its chain, or in a circle is refused with what is wrong.
func TestNotBuiltOn(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	a := serveStored(t, s, answer)
	deleted := a.create(`{"input": "Hi"}`).ID
	a.call("DELETE", "/v1/responses/"+deleted, "ada", "")
	var ada store.Owner
	copy(ada[:], "ada")
	previous := ""
	for i := range store.MaxChain + 1 {
		id := fmt.Sprint("resp_", i)
		if err := s.Begin(t.Context(), &store.Response{ID: id, Owner: ada, Previous: previous, Body: []byte("{}"), Input: []store.Item{{ID: "msg_" + id, Body: []byte(`{"role":"user","content":"Hi"}`)}}}); err != nil {
			t.Fatal(err)
		}
		previous = id
	}
	circle, next := a.create(`{"input": "Hi"}`).ID, ""
	next = a.create(`{"input": "Hi", "previous_response_id": "` + circle + `"}`).ID
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "responses.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "UPDATE responses SET previous = ? WHERE id = ?", next, circle)
	}
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for _, c := range []struct{ id, code, says string }{
		{deleted, "previous_response_not_found", deleted}, {previous, "", "longer than 1000"}, {next, "", "longer than 1000"},
	} {
		status, got := a.call("POST", "/v1/responses", "ada", `{"input": "Hi", "previous_response_id": "`+c.id+`"}`)
		if status != 400 || got.Error.Param != "previous_response_id" || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.says) {
			t.Errorf("%s: %d %+v", c.id, status, got.Error)
		}
	}
}

// TestResultOfNoCall: what goes on from a response with the result of a call has that call, whatever a client leaves out of ids;
// a client that sends all itself may have left the call out.
func TestResultOfNoCall(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	id := a.create(`{"input": [{"type": "function_call", "call_id": "call_a1", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "call_a1", "output": "x"}]}`).ID
	for body, want := range map[string]int{
		`{"previous_response_id": "` + id + `", "input": [{"type": "function_call_output", "call_id": "call_b", "output": "x"}]}`:                                                                        400,
		`{"previous_response_id": "` + id + `", "input": [{"type": "function_call_output", "call_id": "calla1", "output": "x"}]}`:                                                                        200,
		`{"previous_response_id": "` + id + `", "input": [{"type": "custom_tool_call", "call_id": "c", "name": "g", "input": "i"}, {"type": "custom_tool_call_output", "call_id": "c", "output": "x"}]}`: 200,
		`{"input": [{"type": "function_call_output", "call_id": "call_b", "output": "x"}]}`:                                                                                                              200,
	} {
		status, got := a.call("POST", "/v1/responses", "ada", body)
		if status != want || want == 400 && (got.Error.Param != "input[0].call_id" || !strings.Contains(got.Error.Message, "call_b")) {
			t.Errorf("%s: %d %+v", body, status, got.Error)
		}
	}
}

// TestLongItem: an item that is too long to be stored is refused, unless it need not be.
func TestLongItem(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	text := strings.Repeat("x", maxItem)
	if status, d := a.call("POST", "/v1/responses", "", `{"input": [{"role": "user", "content": "`+text+`"}]}`); status != 413 || d.Error.Param != "input[0]" {
		t.Errorf("%d %+v", status, d.Error)
	}
	if status, _ := a.call("POST", "/v1/responses", "", `{"store": false, "input": [{"role": "user", "content": "`+text+`"}]}`); status != 200 {
		t.Errorf("%d", status)
	}
}

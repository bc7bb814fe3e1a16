package responses

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/store"
	"hearth/internal/wire/wiretest"
)

// converse makes a conversation.
func (a *api) converse(body string) *document {
	a.t.Helper()
	status, d := a.call("POST", "/v1/conversations", "ada", body)
	if status != 200 || d.Object != "conversation" || !strings.HasPrefix(d.ID, "conv_") || d.CreatedAt == 0 {
		a.t.Fatalf("%s: %d %+v", body, status, d)
	}
	return d
}

// items are the texts of a conversation's items, the oldest first, and their ids.
func (a *api) items(id string) (texts string, ids []string) {
	a.t.Helper()
	status, d := a.call("GET", "/v1/conversations/"+id+"/items?order=asc&limit=100", "ada", "")
	if status != 200 || d.Object != "list" {
		a.t.Fatalf("%d %+v", status, d)
	}
	var all []string
	for _, i := range d.Data {
		parts, _ := i["content"].([]any)
		for _, p := range parts {
			all = append(all, p.(map[string]any)["text"].(string))
		}
		ids = append(ids, i["id"].(string))
	}
	return strings.Join(all, "|"), ids
}

// fails checks that a call is refused.
func (a *api) fails(method, path, owner, body string, status int, code string) {
	a.t.Helper()
	if got, d := a.call(method, path, owner, body); got != status || d.Error == nil || d.Error.Code != code {
		a.t.Errorf("%s %s by %q: %s: %d %+v, want %d %s", method, path, owner, body, got, d.Error, status, code)
	}
}

// TestConversation: what goes into responses on a conversation and comes out stands in it and before what comes next, stored or
// not, also after a restart.
func TestConversation(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir)
	a := serveStored(t, s, answer)
	c := a.converse(`{"items": [{"role": "developer", "content": "Be kind."}], "metadata": {"topic": "tests"}}`)
	if c.Metadata["topic"] != "tests" {
		t.Errorf("%+v", c)
	}
	first := a.create(`{"conversation": "` + c.ID + `", "input": "One.", "instructions": "Be brief."}`)
	if first.Conversation == nil || first.Conversation.ID != c.ID || first.PreviousID != "" {
		t.Errorf("%+v", first)
	}
	second := a.create(`{"conversation": {"id": "` + c.ID + `"}, "input": [{"role": "user", "content": "Two."}], "store": false}`)
	if want := "system:Be kind. user:One. assistant:Hm. assistant:3 messages user:Two."; said(a.got) != want || second.Store || second.Conversation == nil {
		t.Errorf("%s, want %s; %+v", said(a.got), want, second)
	}
	if status, _ := a.call("GET", "/v1/responses/"+second.ID, "ada", ""); status != 404 {
		t.Errorf("a response with store: false: %d", status)
	}
	s.Close()
	a = serveStored(t, newStore(t, dir), answer)
	a.create(`{"conversation": "` + c.ID + `"}`)
	if want := "system:Be kind. user:One. assistant:Hm. assistant:3 messages user:Two. assistant:Hm. assistant:4 messages"; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
	texts, ids := a.items(c.ID)
	if want := "Be kind.|One.|Hm.|3 messages|Two.|Hm.|4 messages|Hm.|5 messages"; texts != want || ids[3] != first.Output[1]["id"] {
		t.Errorf("%s, want %s; %v", texts, want, ids)
	}
	if status, got := a.call("GET", "/v1/responses/"+first.ID, "ada", ""); status != 200 || got.Conversation == nil || got.Conversation.ID != c.ID {
		t.Errorf("%d %+v", status, got)
	}
	if status, got := a.call("POST", "/v1/responses/input_tokens", "ada", `{"conversation": "`+c.ID+`", "input": "Hi"}`); status != 200 {
		t.Errorf("%d %+v", status, got)
	}
}

// TestBuildOnConversation: a response that was made on a conversation can be built on as it was, as long as there is the
// conversation, and lists what went into it.
func TestBuildOnConversation(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	c := a.converse(`{"items": [{"role": "user", "content": "Zero."}]}`)
	first := a.create(`{"conversation": "` + c.ID + `", "input": "One."}`)
	a.create(`{"conversation": "` + c.ID + `", "input": "Two."}`)
	a.create(`{"previous_response_id": "` + first.ID + `", "input": "Else."}`)
	if want := "user:Zero. user:One. assistant:Hm. assistant:2 messages user:Else."; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
	if status, d := a.call("GET", "/v1/responses/"+first.ID+"/input_items", "ada", ""); status != 200 || len(d.Data) != 2 {
		t.Errorf("%d %+v", status, d)
	}
	if status, d := a.call("DELETE", "/v1/conversations/"+c.ID, "ada", ""); status != 200 || !d.Deleted || d.ID != c.ID || d.Object != "conversation.deleted" {
		t.Errorf("%d %+v", status, d)
	}
	a.fails("POST", "/v1/responses", "ada", `{"previous_response_id": "`+first.ID+`", "input": "Else."}`, 400, "previous_response_not_found")
	a.fails("POST", "/v1/responses", "ada", `{"conversation": "`+c.ID+`", "input": "Else."}`, 404, "conversation_not_found")
	if status, d := a.call("GET", "/v1/responses/"+first.ID+"/input_items", "ada", ""); status != 200 || len(d.Data) != 1 {
		t.Errorf("%d %+v", status, d)
	}
	for _, path := range []string{"", "/items", "/items/msg_1"} {
		a.fails("GET", "/v1/conversations/"+c.ID+path, "ada", "", 404, map[bool]string{false: "conversation_not_found", true: "item_not_found"}[path == "/items/msg_1"])
	}
}

// TestConversationItems: items are added, read, listed in pages and taken out; metadata is changed; all at every path.
func TestConversationItems(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	for _, base := range []string{"", "/v1", "/openai", "/openai/v1"} {
		c := a.converse(`{}`)
		path := base + "/conversations/" + c.ID
		status, added := a.call("POST", path+"/items?include=message.output_text.logprobs", "ada", `{"items": [{"type": null, "status": null, "role": "user", "content": "One."},
			{"type": "message", "id": "msg_mine", "role": "assistant", "content": "Two."},
			{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "Three."}]}`)
		if status != 200 || len(added.Data) != 4 || added.HasMore || added.LastID != added.Data[3]["id"] || added.Data[1]["id"] != "msg_mine" {
			t.Fatalf("%s: %d %+v", base, status, added)
		}
		for _, i := range added.Data {
			if i["status"] != completed || i["type"] == nil {
				t.Errorf("%v", i)
			}
		}
		status, page := a.call("GET", path+"/items?limit=3&include=reasoning.encrypted_content", "ada", "")
		if status != 200 || len(page.Data) != 3 || !page.HasMore || page.FirstID != added.LastID || page.LastID != "msg_mine" {
			t.Errorf("%d %+v", status, page)
		}
		if _, rest := a.call("GET", path+"/items?after="+page.LastID, "ada", ""); len(rest.Data) != 1 || rest.HasMore || rest.FirstID != added.FirstID {
			t.Errorf("%+v", rest)
		}
		if status, i := a.call("GET", path+"/items/msg_mine", "ada", ""); status != 200 || i.ID != "msg_mine" {
			t.Errorf("%d %+v", status, i)
		}
		if status, got := a.call("DELETE", path+"/items/msg_mine", "ada", ""); status != 200 || got.Object != "conversation" || got.ID != c.ID {
			t.Errorf("%d %+v", status, got)
		}
		a.fails("GET", path+"/items/msg_mine", "ada", "", 404, "item_not_found")
		a.fails("DELETE", path+"/items/msg_mine", "ada", "", 404, "item_not_found")
		if _, ids := a.items(c.ID); len(ids) != 3 {
			t.Errorf("%v", ids)
		}
		if status, got := a.call("POST", path, "ada", `{"metadata": {"a": "b"}}`); status != 200 || got.Metadata["a"] != "b" {
			t.Errorf("%d %+v", status, got)
		}
		if status, got := a.call("POST", path, "ada", `{"metadata": null}`); status != 200 || len(got.Metadata) != 0 || got.Metadata == nil {
			t.Errorf("%d %+v", status, got)
		}
		for _, query := range []string{"?limit=0", "?limit=101", "?order=up", "?after=nobody"} {
			if status, d := a.call("GET", path+"/items"+query, "ada", ""); status != 400 || d.Error.Param == "" {
				t.Errorf("%s: %d %+v", query, status, d.Error)
			}
		}
		for _, c := range [][2]string{{"GET", base + "/conversations"}, {"PUT", path}, {"DELETE", path + "/items"}, {"POST", path + "/items/x"}} {
			a.fails(c[0], c[1], "ada", "{}", 405, "method_not_allowed")
			if !(Protocol{}).Speaks(httptest.NewRequest(c[0], c[1], nil)) {
				t.Errorf("%s is not claimed", c[1])
			}
		}
	}
}

// TestConversationOwners: a conversation of one owner is none for another.
func TestConversationOwners(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	c := a.converse(`{"items": [{"id": "msg_1", "role": "user", "content": "One."}]}`)
	for _, owner := range []string{"bob", ""} {
		for _, call := range [][3]string{
			{"GET", "", ""}, {"POST", "", `{"metadata": {}}`}, {"DELETE", "", ""}, {"GET", "/items", ""},
			{"POST", "/items", `{"items": [{"role": "user", "content": "Two."}]}`},
		} {
			a.fails(call[0], "/v1/conversations/"+c.ID+call[1], owner, call[2], 404, "conversation_not_found")
		}
		for _, method := range []string{"GET", "DELETE"} {
			a.fails(method, "/v1/conversations/"+c.ID+"/items/msg_1", owner, "", 404, "item_not_found")
		}
		a.fails("POST", "/v1/responses", owner, `{"conversation": "`+c.ID+`", "input": "Hi"}`, 404, "conversation_not_found")
		a.fails("POST", "/v1/responses", owner, `{"input": [{"type": "item_reference", "id": "msg_1"}]}`, 404, "item_not_found")
	}
	if texts, _ := a.items(c.ID); texts != "One." {
		t.Error(texts)
	}
}

// TestConversationHeld: while a response on a conversation is in progress there is no other, and its items stay as they are; what
// is cancelled adds nothing, and then it is free.
func TestConversationHeld(t *testing.T) {
	for _, stream := range []bool{false, true} {
		began, dir := make(chan struct{}), t.TempDir()
		first := true
		a := serveStored(t, newStore(t, dir), func(r *chat.Request) []wiretest.Step {
			if first {
				first = false
				return waiting(began)(r)
			}
			return answer(r)
		})
		c := a.converse(`{"items": [{"id": "msg_1", "role": "user", "content": "Zero."}]}`)
		done := make(chan struct{})
		ask := `{"conversation": "` + c.ID + `", "input": "One."}`
		go func() {
			defer close(done)
			body := strings.Replace(ask, "{", fmt.Sprintf(`{"stream": %t, `, stream), 1)
			r, _ := http.NewRequest("POST", a.url+"/v1/responses", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Owner", "ada")
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = resp.Body.Read(make([]byte, 1<<16))
				for n := 1; n > 0; {
					n, _ = resp.Body.Read(make([]byte, 1<<16))
				}
				resp.Body.Close()
			}
		}()
		<-began
		path := "/v1/conversations/" + c.ID
		a.fails("POST", "/v1/responses", "ada", ask, 400, "conversation_locked")
		a.fails("POST", path+"/items", "ada", `{"items": [{"role": "user", "content": "Two."}]}`, 400, "conversation_locked")
		a.fails("DELETE", path+"/items/msg_1", "ada", "", 400, "conversation_locked")
		if status, _ := a.call("POST", path, "ada", `{"metadata": {"a": "b"}}`); status != 200 {
			t.Errorf("%d", status)
		}
		if status, _ := a.call("POST", "/v1/responses/"+onlyID(t, dir)+"/cancel", "ada", "{}"); status != 200 {
			t.Errorf("%d", status)
		}
		<-done
		if texts, _ := a.items(c.ID); texts != "Zero." {
			t.Errorf("after a response that was cancelled: %s", texts)
		}
		a.create(ask)
		if texts, _ := a.items(c.ID); texts != "Zero.|One.|Hm.|2 messages" {
			t.Error(texts)
		}
	}
}

// atEnd is a client that does something as soon as it is told how a response has ended.
type atEnd struct {
	http.ResponseWriter
	do func()
}

func (w atEnd) Write(b []byte) (int, error) {
	if text := string(b); strings.Contains(text, `"status":"completed","incomplete_details"`) || strings.Contains(text, "a step failed") {
		w.do()
	}
	return w.ResponseWriter.Write(b)
}

// TestConversationIsFree: who is told of the end of a response, or of an error, can go on with its conversation at once.
func TestConversationIsFree(t *testing.T) {
	g := wiretest.New()
	g.Names = []string{"*"}
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		fails := &chat.Error{Kind: chat.Internal, Msg: "a step failed"}
		switch steps := answer(r); r.Messages[len(r.Messages)-1].Parts[0].Text {
		case "never":
			return nil, fails
		case "fail at once":
			return []wiretest.Step{{Err: fails}}, nil
		case "fail":
			return append(steps[:3:3], wiretest.Step{Err: fails}), nil
		default:
			return steps, nil
		}
	}
	s := newStore(t, t.TempDir())
	mux := http.NewServeMux()
	o := wiretest.Options(g)
	o.NewID = nil
	Protocol{Store: s}.Mount(mux, o)
	if err := s.AddConversation(t.Context(), &store.Conversation{ID: "c", Metadata: []byte("{}")}, nil); err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{"go on", "never", "fail at once", "fail"} {
		for _, extra := range []string{"", `"stream": true, `, `"store": false, `, `"store": false, "stream": true, `} {
			free := 0
			r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(`{`+extra+`"conversation": "c", "input": "`+input+`"}`))
			r.Header.Set("Content-Type", "application/json")
			mux.ServeHTTP(atEnd{httptest.NewRecorder(), func() {
				c, err := s.Conversation(t.Context(), store.Owner{}, "c")
				if err != nil {
					t.Fatal(err)
				}
				release, err := s.Hold(t.Context(), store.Owner{}, "c", c.Next, nil)
				if err != nil {
					t.Errorf("%s, %s: %v", input, extra, err)
				}
				release()
				free++
			}}, r)
			if free != 1 {
				t.Errorf("%s, %s: %d ends", input, extra, free)
			}
		}
	}
}

// TestConversationBackground: a response in the background holds its conversation too, and what is cancelled or done lets it go.
func TestConversationBackground(t *testing.T) {
	began := make(chan struct{})
	first := true
	a := serveStored(t, newStore(t, t.TempDir()), func(r *chat.Request) []wiretest.Step {
		if first {
			first = false
			return waiting(began)(r)
		}
		return answer(r)
	})
	c := a.converse(`{}`)
	ask := `{"conversation": "` + c.ID + `", "input": "One.", "background": true}`
	d := a.create(ask)
	<-began
	a.fails("POST", "/v1/responses", "ada", ask, 400, "conversation_locked")
	a.fails("POST", "/v1/responses", "ada", strings.Replace(ask, "true", "false", 1), 400, "conversation_locked")
	if status, got := a.call("POST", "/v1/responses/"+d.ID+"/cancel", "ada", "{}"); status != 200 || got.Status != cancelled {
		t.Errorf("%d %+v", status, got)
	}
	d = a.create(ask)
	if d.Conversation == nil || d.Conversation.ID != c.ID {
		t.Errorf("%+v", d)
	}
	for done := false; !done; { // as OpenAI's documentation has clients do it
		status, got := a.call("GET", "/v1/responses/"+d.ID, "ada", "")
		if done = got.Status == completed; status != 200 || !done && got.Status != inProgress && got.Status != "queued" {
			t.Fatalf("%d %+v", status, got)
		}
	}
	if texts, _ := a.items(c.ID); texts != "One.|Hm.|1 messages" {
		t.Error(texts)
	}
}

// TestConversationSocket: responses on a conversation come over a WebSocket too; a prompt that is computed ahead adds nothing.
func TestConversationSocket(t *testing.T) {
	var kept *store.Store
	s := serveSockets(t, answering(), func(p *Protocol, _ *server.Options) {
		kept = store.New(store.Options{Mode: store.Memory})
		t.Cleanup(func() { kept.Close() })
		p.Store = kept
	})
	if err := kept.AddConversation(t.Context(), &store.Conversation{ID: "c", Metadata: []byte("{}")}, nil); err != nil {
		t.Fatal(err)
	}
	c := s.dial(t)
	c.ask(create(`"conversation": "c", "input": "Ahead", "generate": false`))
	first := c.ask(create(`"conversation": "c", "input": "One", "store": false`))
	if e := c.ask(create(`"conversation": "c", "input": "Two"`)); e.says() != "user:One assistant:user:One user:Two" {
		t.Errorf("%+v", e)
	}
	if e := c.ask(create(`"previous_response_id": "` + first.Response.ID + `", "input": "Three"`)); e.Status != 400 || e.Error.Code != "previous_response_not_found" {
		t.Errorf("%+v", e)
	}
	if e := c.ask(create(`"conversation": "d", "input": "Three"`)); e.Status != 404 || e.Error.Code != "conversation_not_found" {
		t.Errorf("%+v", e)
	}
	if _, items, err := kept.ConversationItems(t.Context(), store.Owner{}, "c"); err != nil || len(items) != 4 {
		t.Errorf("%d items, %v", len(items), err)
	}
}

// TestConversationFails: a response that fails adds nothing to its conversation; one that is cut short by its limit does; one
// whose conversation is deleted meanwhile is complete without it.
func TestConversationFails(t *testing.T) {
	var a *api
	var c *document
	a = serveStored(t, newStore(t, t.TempDir()), func(r *chat.Request) []wiretest.Step {
		steps := answer(r)
		switch r.Messages[len(r.Messages)-1].Parts[0].Text {
		case "fail":
			return append(steps[:3:3], wiretest.Step{Err: &chat.Error{Kind: chat.Internal, Msg: "a step failed"}})
		case "cut":
			steps[3].Event.Finish = chat.FinishLength
		case "delete":
			steps[2].Before = func(context.Context) {
				if status, _ := a.call("DELETE", "/v1/conversations/"+c.ID, "ada", ""); status != 200 {
					t.Errorf("%d", status)
				}
			}
		}
		return steps
	})
	c = a.converse(`{}`)
	ask := func(text string) string { return `{"conversation": "` + c.ID + `", "input": "` + text + `"}` }
	for _, store := range []string{"true", "false"} {
		if status, _ := a.call("POST", "/v1/responses", "ada", strings.Replace(ask("fail"), "{", `{"store": `+store+`, `, 1)); status != 500 {
			t.Errorf("%d", status)
		}
	}
	if texts, _ := a.items(c.ID); texts != "" {
		t.Errorf("a response that failed has left %s", texts)
	}
	if d := a.create(ask("cut")); d.Status != unfinished {
		t.Errorf("%+v", d)
	}
	if texts, _ := a.items(c.ID); texts != "cut|Hm.|1 messages" {
		t.Error(texts)
	}
	d := a.create(ask("delete"))
	if status, got := a.call("GET", "/v1/responses/"+d.ID, "ada", ""); status != 200 || got.Status != completed {
		t.Errorf("%d %+v", status, got)
	}
	a.fails("GET", "/v1/conversations/"+c.ID, "ada", "", 404, "conversation_not_found")
}

// TestConversationRepeats: items that a conversation has already are refused; a reference becomes the item itself, in a
// conversation as in a chain.
func TestConversationRepeats(t *testing.T) {
	a := serveStored(t, newStore(t, t.TempDir()), answer)
	other := a.create(`{"input": "Other."}`)
	reference := `{"type": "item_reference", "id": "` + other.Output[1]["id"].(string) + `"}`
	c := a.converse(`{"items": [` + reference + `, {"id": "msg_1", "role": "user", "content": "One."}]}`)
	path, again := "/v1/conversations/"+c.ID+"/items", `{"id": "msg_1", "role": "user", "content": "Again."}`
	a.fails("POST", path, "ada", `{"items": [`+again+`]}`, 400, "duplicate_item")
	a.fails("POST", path, "ada", `{"items": [{"id": "a", "role": "user", "content": "x"}, {"id": "a", "role": "user", "content": "y"}]}`, 400, "duplicate_item")
	a.fails("POST", "/v1/responses", "ada", `{"conversation": "`+c.ID+`", "input": [`+again+`]}`, 400, "duplicate_item")
	a.fails("POST", "/v1/responses", "ada", `{"conversation": "`+c.ID+`", "input": [`+reference+`]}`, 400, "duplicate_item")
	if texts, _ := a.items(c.ID); texts != "1 messages|One." {
		t.Error(texts)
	}
	a.create(`{"conversation": "` + c.ID + `", "input": [{"type": "item_reference", "id": "` + other.Output[0]["id"].(string) + `"}]}`)
	if texts, _ := a.items(c.ID); texts != "1 messages|One.|Hm.|Hm.|3 messages" {
		t.Error(texts)
	}
	d := a.create(`{"input": [` + reference + `]}`)
	a.create(`{"previous_response_id": "` + d.ID + `", "input": "Two."}`)
	if want := "assistant:1 messages assistant:Hm. assistant:1 messages user:Two."; said(a.got) != want {
		t.Errorf("%s, want %s", said(a.got), want)
	}
}

// TestConversationNotStored: where nothing is stored there are no conversations.
func TestConversationNotStored(t *testing.T) {
	for _, s := range []*store.Store{nil, store.New(store.Options{Mode: store.Off})} {
		a := serveStored(t, s, answer)
		if status, d := a.call("POST", "/v1/conversations", "ada", `{}`); status != 400 || !strings.Contains(d.Error.Message, "--store off") {
			t.Errorf("%d %+v", status, d.Error)
		}
		a.fails("GET", "/v1/conversations/conv_1", "ada", "", 404, "conversation_not_found")
		a.fails("POST", "/v1/responses", "ada", `{"conversation": "conv_1", "input": "Hi"}`, 404, "conversation_not_found")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := writeEmpty(file); err != nil {
		t.Fatal(err)
	}
	a := serveStored(t, newStore(t, filepath.Join(file, "dir")), answer)
	if status, d := a.call("POST", "/v1/conversations", "ada", `{}`); status != 500 || !strings.Contains(d.Error.Message, "--store memory") {
		t.Errorf("%d %+v", status, d.Error)
	}
}

// TestConversationBounds: bounds of a conversation are told of by name.
func TestConversationBounds(t *testing.T) {
	dir := t.TempDir()
	a := serveStored(t, newStore(t, dir), answer)
	pairs := func(n int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("k", i)] = strings.Repeat("é", maxMetadataValue)
		}
		m["k0"], m[strings.Repeat("é", maxMetadataKey)] = "", m["k0"]
		delete(m, "k0")
		text, _ := json.Marshal(m)
		return `{"metadata": ` + string(text) + `}`
	}
	messages := func(n int) string {
		return `{"items": [` + strings.TrimSuffix(strings.Repeat(`{"role": "user", "content": "Hi"},`, n), ",") + `]}`
	}
	a.converse(pairs(maxMetadata))
	a.converse(messages(maxAdded))
	for body, words := range map[string]string{
		pairs(maxMetadata + 1): "at most 16",
		`{"metadata": {"` + strings.Repeat("é", maxMetadataKey+1) + `": "x"}}`:   "at most 64 characters",
		`{"metadata": {"x": "` + strings.Repeat("é", maxMetadataValue+1) + `"}}`: "at most 512 characters",
		messages(maxAdded + 1): "at most 20",
	} {
		if status, d := a.call("POST", "/v1/conversations", "ada", body); status != 400 || !strings.Contains(d.Error.Message, words) {
			t.Errorf("%d %+v, want %s", status, d.Error, words)
		}
	}
	c := a.converse(`{}`)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "responses.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE conversations SET items = ? WHERE id = ?", store.MaxItems, c.ID); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{"conversations/" + c.ID + "/items": messages(1), "responses": `{"conversation": "` + c.ID + `", "input": "Hi"}`} {
		if status, d := a.call("POST", "/v1/"+path, "ada", body); status != 400 || !strings.Contains(d.Error.Message, "at most 10000 items and 64 MiB") {
			t.Errorf("%s: %d %+v", path, status, d.Error)
		}
	}
}

// wholeConversation is a body with every field that is read.
const wholeConversation = `{"metadata": {"k": "v"}, "items": [
  {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
  {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "x"},
  {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "completed"},
  {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
]}`

// TestBadConversations: no broken body makes a conversation or gets a 5xx, and all paths answer alike.
func TestBadConversations(t *testing.T) {
	post := func(base, body string) (int, string) {
		s := store.New(store.Options{Mode: store.Memory}) // ids are the same each time
		defer s.Close()
		return wiretest.Post(t, Protocol{Store: s}, base+"/conversations", body)
	}
	if status, reply := post("/v1", wholeConversation); status != http.StatusOK {
		t.Fatalf("%d %s", status, reply)
	}
	bodies := breaking.All(t, wholeConversation)
	maps.Copy(bodies, map[string]string{
		"body empty": "", "body not JSON": "hello", "body array": "[]", "body null": "null", "item unknown": `{"items": [{"type": "massage"}]}`,
		"reference": `{"items": [{"type": "item_reference", "id": "msg_1"}]}`, "metadata of numbers": `{"metadata": {"a": 1}}`,
		"metadata nested": `{"metadata": {"a": {"b": "c"}}}`, "items of one id": `{"items": [{"id": "a", "role": "user", "content": "x"}, {"id": "a", "role": "user", "content": "y"}]}`,
	})
	var table strings.Builder
	refused, accepted := 0, 0
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		status, reply := post("/v1", bodies[name])
		if status == http.StatusOK {
			accepted++
			continue
		}
		refused++
		e := answered(t, name, status, reply)
		for _, base := range []string{"", "/openai", "/openai/v1"} {
			if s, again := post(base, bodies[name]); s != status || again != reply {
				t.Errorf("%s at %s: %d %s, want %d %s", name, base, s, again, status, reply)
			}
		}
		fmt.Fprintf(&table, "%s\n\t%d %s\n", name, status, e.Message)
	}
	head := fmt.Sprintf("# Broken conversations and their answers: %d refused, %d accepted (not listed). Written by go test -run TestBadConversations -update.\n", refused, accepted)
	wiretest.Golden(t, "testdata/bad_conversations.txt", head+table.String())
}

// FuzzConversations: whatever is posted is refused or becomes a conversation, on which a response can be made.
func FuzzConversations(f *testing.F) {
	f.Add([]byte(wholeConversation))
	f.Add([]byte(`{"items":[{"role":"user","content":"Hi","id":"a","status":null},{"type":"message","role":"assistant","content":""}]}`))
	f.Add([]byte(`{"metadata":{"a":"b"}}`))
	g := wiretest.New(wiretest.Hello(1)...)
	g.Names = []string{"*"}
	s := store.New(store.Options{Mode: store.Memory})
	f.Cleanup(func() { s.Close() })
	mux := http.NewServeMux()
	Protocol{Store: s}.Mount(mux, wiretest.Options(g))
	call := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := call("POST", "/v1/conversations", string(body))
		switch {
		case !json.Valid(w.Body.Bytes()) || w.Code >= 500:
			t.Fatalf("%d %s", w.Code, w.Body)
		case w.Code != http.StatusOK:
			return
		}
		var c document
		if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		defer call("DELETE", "/v1/conversations/"+c.ID, "")
		if w := call("GET", "/v1/conversations/"+c.ID+"/items", ""); w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := call("POST", "/v1/responses", `{"conversation":"`+c.ID+`","input":"Hi"}`); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

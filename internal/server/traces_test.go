package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// Three callers see their own requests alone, waiting, running and ended, and the text of their own; the operator sees all
// requests, what is wrong with others' in a word, and the text of nobody else.
func TestTraces(t *testing.T) {
	f := &figures{}
	started, ended := make(chan string), make(chan struct{})
	gen := wiretest.New()
	gen.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		words := r.Messages[0].Text()
		steps := wiretest.Hello(1)
		for _, i := range []int{0, len(steps) - 1} {
			u := *steps[i].Event.Usage
			u.Hit, u.Cached, u.Disk, u.Common, u.Parted, u.Around = "lcp", 2, 1, 3, 1, [2]string{words + " before", words + " after"}
			u.Instead = words + " instead"
			u.Tokenized, u.Queued, u.Matched, u.Prefill, u.Decode = 2e6, 30e6, 10e6, 5e6, 1e9
			u.Output = 3 * min(i, 1)
			steps[i].Event.Usage = &u
		}
		switch words {
		case "wait":
			steps[1].Before = func(context.Context) { started <- r.Origin.ID; <-ended }
		case "fail":
			return nil, &chat.Error{Kind: chat.Invalid, Code: "odd", Param: "messages[0]", Msg: "the words of " + r.Origin.Session + " do not suit me"}
		case "cut":
			steps[2] = wiretest.Step{Err: errors.New("secret of the machine")}
		}
		return steps, nil
	}
	o := options()
	o.Models, o.Monitor, o.Keys = gen, f, named("alice", "bob", "carol", "OP")
	s := New(o)
	ask := func(who, words string) {
		do(s, "POST", "/v1/messages", strings.Replace(messages, "Hi", words, 1), "X-Api-Key: key-"+who, "X-Session-Id: of-"+who)
	}
	get := func(who, path string, want int, into any) string {
		t.Helper()
		w := do(s, "GET", path, "", "X-Api-Key: key-"+who)
		if w.Code != want || into != nil && json.Unmarshal(w.Body.Bytes(), into) != nil {
			t.Fatalf("%s of %s: %d %s", path, who, w.Code, w.Body)
		}
		return w.Body.String()
	}
	list := func(who string) (text string, all []Trace) {
		t.Helper()
		var x Traces
		text = get(who, "/v1/requests", 200, &x)
		return text, x.Requests
	}
	ask("alice", "apples")
	ask("alice", "fail")
	ask("bob", "cut")
	do(s, "POST", "/v1/messages", "{", "X-Api-Key: key-bob")
	do(s, "POST", "/v1/messages/count_tokens", messages, "X-Api-Key: key-bob")
	do(s, "POST", "/v1/requests/none/cancel", "", "X-Api-Key: key-bob")
	replied := make(chan struct{})
	go func() { ask("alice", "wait"); close(replied) }()
	hers := <-started
	f.live = []Trace{{ID: hers, Model: "m", State: "prefill", Prompt: 40, Phases: Phases{Prefill: 1}}, {ID: "req_theirs", Model: "m"}}
	f.status.Requests = []RequestStatus{{ID: hers}, {ID: "req_theirs"}}

	text, a := list("alice")
	if len(a) != 3 || a[0].ID != hers || a[0].State != "prefill" || a[0].Prompt != 40 || a[0].Phases.Prefill != 1 || a[0].Session != "of-alice" || a[0].API != "/v1/messages" || a[0].Wall <= 0 ||
		a[1].State != "failed" || a[1].Error != "messages[0]: the words of of-alice do not suit me" || a[2].State != "done" || a[2].Error != "" || strings.Contains(text, "parting") || strings.Contains(text, "apples") {
		t.Errorf("alice sees %s", text)
	}
	done := a[2]
	if done.Model != "test-model" || done.Prompt != 3 || done.Cached != 2 || done.Disk != 1 || done.Common != 3 || done.Output != 3 || done.HitType != "lcp" || done.Finish != "stop" || *done.Parted != 0 ||
		done.PerSecond != 2 || done.Phases.Tokenize != 0.002 || done.Phases.Queue != 0.02 || done.Phases.Match != 0.01 || done.Phases.Prefill != 0.005 || done.Phases.Decode != 1 ||
		done.TTFT <= 0 || done.Began < float64(time.Now().Unix()-60) {
		t.Errorf("what has ended: %+v", done)
	}
	text, b := list("bob")
	if len(b) != 2 || b[0].State != "failed" || b[1].State != "failed" || b[1].Error != "internal error: secret of the machine" || strings.Contains(text, "alice") || strings.Contains(text, hers) {
		t.Errorf("bob sees %s", text)
	}
	if text, c := list("carol"); len(c) != 0 || text != `{"requests":[]}`+"\n" {
		t.Errorf("carol sees %s", text)
	}
	text, all := list("OP")
	if len(all) != 5 || strings.Contains(text, "do not suit") || strings.Contains(text, "secret") || !strings.Contains(text, `"error":"odd"`) || strings.Contains(text, "parting") {
		t.Errorf("the operator sees %s", text)
	}
	for who, want := range map[string]string{"alice": "of-alice", "bob": ""} {
		var st OwnStatus
		text := get(who, "/v1/status", 200, &st)
		if (len(st.Requests) == 1) != (who == "alice") || len(st.Requests) > 0 && st.Requests[0].Session != want {
			t.Errorf("%s's status is %s", who, text)
		}
	}

	var one Trace
	if text := get("alice", "/v1/requests/"+done.ID, 200, &one); one.Parting == nil || *one.Parting != (Parting{"apples before", "apples after", "apples instead"}) {
		t.Errorf("alice's request is %s", text)
	}
	if get("alice", "/v1/requests/"+hers, 200, &one); one.State != "prefill" {
		t.Errorf("her running request is %+v", one)
	}
	if text := get("OP", "/v1/requests/"+done.ID, 200, nil); strings.Contains(text, "apples") || strings.Contains(text, "parting\"") {
		t.Errorf("the operator sees alice's text: %s", text)
	}
	for _, who := range []string{"bob", "carol"} {
		for _, id := range []string{done.ID, hers} {
			others, none := get(who, "/v1/requests/"+id, 404, nil), get(who, "/requests/req_none", 404, nil)
			if strings.ReplaceAll(others, id, "") != strings.ReplaceAll(none, "req_none", "") {
				t.Errorf("%s hears of %s: %s", who, id, others)
			}
		}
		get(who, "/v1/status/history", 403, nil)
	}
	get("OP", "/v1/status/history?since=5", 200, nil)
	do(s, "DELETE", "/v1/requests/"+hers, "", "X-Api-Key: key-alice")
	close(ended)
	<-replied
	if get("alice", "/v1/requests/"+hers, 200, &one); one.State != "cancelled" || one.Error != "the request was cancelled" {
		t.Errorf("cancelled: %+v", one)
	}
	if get("OP", "/v1/requests/"+hers, 200, &one); one.State != "cancelled" || one.Error != "request_cancelled" {
		t.Errorf("cancelled, for the operator: %+v", one)
	}
	if len(s.requests.of) != 0 {
		t.Errorf("%d are still there", len(s.requests.of))
	}
}

// loading is a model that is there when it is told.
type loading struct {
	*wiretest.Generator
	told chan struct{}
}

func (l loading) Open(ctx context.Context, name string) (chat.Generator, error) {
	<-l.told
	return l.Generator.Open(ctx, name)
}

// While a request waits for its model its trace says for how long, and goes on saying so when it runs.
func TestTraceOfLoad(t *testing.T) {
	runs, ended := make(chan struct{}), make(chan struct{})
	gen := wiretest.New()
	gen.Script = func(*chat.Request) ([]wiretest.Step, error) {
		steps := wiretest.Hello(1)
		steps[1].Before = func(context.Context) { close(runs); <-ended }
		return steps, nil
	}
	o, f, told := options(), &figures{}, make(chan struct{})
	o.Models, o.Monitor = loading{gen, told}, f
	s := New(o)
	replied := make(chan struct{})
	go func() { do(s, "POST", "/v1/messages", messages); close(replied) }()
	until := func(what string, good func(x *Trace) bool) Trace {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			var x Traces
			if w := do(s, "GET", "/v1/requests", ""); json.Unmarshal(w.Body.Bytes(), &x) != nil {
				t.Fatal(w.Body)
			}
			if len(x.Requests) == 1 && good(&x.Requests[0]) {
				return x.Requests[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, x)
			}
		}
	}
	first := until("it loads", func(x *Trace) bool { return x.Phases.Load > 0 && x.State == "queued" })
	later := until("it loads on", func(x *Trace) bool { return x.Phases.Load > first.Phases.Load })
	close(told)
	<-runs
	f.live = []Trace{{ID: first.ID, State: "generation", Phases: Phases{Tokenize: 0.5}}}
	running := until("it runs", func(x *Trace) bool { return x.State == "generation" && x.Phases.Tokenize == 0.5 })
	close(ended)
	<-replied
	f.live = nil
	done := until("it is done", func(x *Trace) bool { return x.State == "done" })
	if running.Phases.Load < later.Phases.Load || running.Phases.Load != done.Phases.Load || running.Phases.Load > running.Wall {
		t.Errorf("it loaded for %v, then %v, then %v", later.Phases.Load, running.Phases.Load, done.Phases.Load)
	}
}

// encoder is a model for vectors that is there, and begins, when it is told.
type encoder struct {
	chat.Encoders
	told chan struct{}
}

func (e encoder) Model() chat.Model { return chat.Model{ID: "e"} }

func (e encoder) OpenEmbedder(context.Context, string) (chat.Embedder, error) {
	<-e.told
	return e, nil
}

func (e encoder) Embed(context.Context, *chat.EmbedRequest) (*chat.Embeddings, error) {
	<-e.told
	return &chat.Embeddings{Vectors: [][]float32{{1}}, Tokens: 5, EncodeTimes: chat.EncodeTimes{Tokenized: 1e6, Queued: 2e6, Ran: 3e6}}, nil
}

// A request for vectors is among the others while it waits and runs, and when it has ended, with the phases that it has.
func TestTraceOfEmbedding(t *testing.T) {
	o, f, e := options(), &figures{}, encoder{told: make(chan struct{})}
	o.Encoders, o.Monitor, o.Keys = e, f, named("alice", "bob")
	s := New(o)
	replied := make(chan struct{})
	go func() {
		do(s, "POST", "/v1/embeddings", `{"model":"e","input":"secret"}`, "X-Api-Key: key-alice")
		close(replied)
	}()
	state := func(want string) (x Trace) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); x.State != want; time.Sleep(time.Millisecond) {
			var all Traces
			if w := do(s, "GET", "/v1/requests", "", "X-Api-Key: key-alice"); json.Unmarshal(w.Body.Bytes(), &all) != nil || strings.Contains(w.Body.String(), "secret") {
				t.Fatal(w.Body)
			}
			if len(all.Requests) == 1 {
				x = all.Requests[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is not %s: %+v", want, x)
			}
		}
		return x
	}
	if x := state("queued"); x.Model != "e" || x.API != "/v1/embeddings" || x.Phases.Load == 0 {
		t.Errorf("while it waits: %+v", x)
	}
	e.told <- struct{}{}
	state("prefill")
	e.told <- struct{}{}
	<-replied
	x := state("done")
	if want := (Phases{Load: x.Phases.Load, Tokenize: 0.001, Queue: 0.002, Prefill: 0.003}); x.Phases != want || x.Phases.Load == 0 || x.Prompt != 5 || x.Output != 0 {
		t.Errorf("at the end: %+v", x)
	}
	if w := do(s, "GET", "/v1/requests", "", "X-Api-Key: key-bob"); strings.Contains(w.Body.String(), "embeddings") {
		t.Errorf("another sees %s", w.Body)
	}
}

// The latest requests are remembered and no more, in the order in which they came.
func TestTracesWrap(t *testing.T) {
	q := requests{}
	began := time.Unix(1000, 0)
	for i := range mostEnded + 10 {
		info := &wire.Info{RequestID: fmt.Sprint(i), Began: began.Add(time.Duration(i) * time.Second), Usage: &chat.Usage{Output: i}}
		q.enter(info, &running{info: info, began: info.Began, ofModel: true})
		q.seen(info, "m")
		if i == mostEnded+9 {
			break // runs
		}
		q.end(info, time.Second)
		q.end(info, time.Second) // no twice
	}
	all := q.traces(&wire.Info{}, nil, began)
	if len(all) != mostEnded+1 || all[0].State != "queued" {
		t.Fatalf("%d, the newest %+v", len(all), all[0])
	}
	for i := range all[1:] {
		if want := mostEnded + 8 - i; all[i+1].ID != fmt.Sprint(want) || all[i+1].Output != want || all[i+1].State != "done" {
			t.Fatalf("place %d has %+v", i+1, all[i+1])
		}
	}
	if _, ok := q.trace("8", &wire.Info{}, nil, began); ok {
		t.Error("one too many is remembered")
	}
	if len(q.traces(&wire.Info{Client: access.Client{Owner: [16]byte{1}}}, nil, began)) != 0 {
		t.Error("another sees them")
	}
	// The states of those that do not end well.
	for _, tc := range []struct {
		err                error
		state, kind, telld string
	}{
		{wire.ErrClientGone, "cancelled", "client_gone", "the client closed the connection"},
		{errors.New("panic: secret"), "failed", "internal", "internal error"},
		{&chat.Error{Kind: chat.ContextLength, Msg: "too long"}, "failed", "context_length", "too long"},
		{&chat.Error{Kind: chat.Overloaded, Bound: chat.BoundQueueWait, Msg: "busy"}, "failed", string(chat.BoundQueueWait), "busy"},
		{&chat.Error{Kind: chat.Internal, Msg: strings.Repeat("x", 1000)}, "failed", "internal", strings.Repeat("x", longestTold) + "…"},
	} {
		if state, kind, told := outcome(&wire.Info{Err: tc.err}); state != tc.state || kind != tc.kind || told != tc.telld {
			t.Errorf("%v: %s, %s, %s", tc.err, state, kind, told)
		}
	}
}

package responses

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// local is the protocol with a store, without connections, so that a test can wait until nothing goes on any more.
type local struct {
	t     *testing.T
	dir   string
	store *store.Store
	mux   *http.ServeMux
	calls []string // all, those that the server makes to itself included
	ends  []context.CancelCauseFunc
}

// end ends what goes on apart, as a shutdown does.
func (l *local) end() {
	for _, cancel := range l.ends {
		cancel(&chat.Error{Kind: chat.Overloaded, Code: "shutting_down", Msg: "the server is shutting down"})
	}
}

// Detach implements wire.Server.
func (l *local) Detach(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := wire.Alone{}.Detach(ctx)
	l.ends = append(l.ends, cancel)
	return ctx, cancel
}

// Draining implements wire.Server.
func (*local) Draining() <-chan struct{} { return nil }

// serveLocal runs f in a bubble with a server on the folder dir.
func serveLocal(t *testing.T, dir string, steps func(*chat.Request) ([]wiretest.Step, error), f func(l *local)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &local{t: t, dir: dir, store: store.New(store.Options{Mode: store.Disk, Dir: dir}), mux: http.NewServeMux()}
		defer l.store.Close()
		g := wiretest.New()
		g.Script = steps
		o := wiretest.Options(g)
		o.NewID = nil
		o.Server = l
		Protocol{Store: l.store}.Mount(l.mux, o)
		f(l)
		synctest.Wait()
	})
}

func (l *local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.calls = append(l.calls, r.Method)
	info := &wire.Info{RequestID: "req_1"}
	copy(info.Owner[:], r.Header.Get("Owner"))
	l.mux.ServeHTTP(w, r.WithContext(wire.WithInfo(r.Context(), info)))
}

// asked is a call that is being answered.
type asked struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
	done  chan struct{}
}

// ask begins a call of ada's and waits until nothing goes on: it is answered, or waits for something.
func (l *local) ask(method, path, body string) *asked {
	ctx, leave := context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Owner", "ada")
	a := &asked{httptest.NewRecorder(), leave, make(chan struct{})}
	go func() { defer close(a.done); l.ServeHTTP(a, r) }()
	synctest.Wait()
	return a
}

// call makes a call that must be answered with that status.
func (l *local) call(status int, method, path, body string) *document {
	l.t.Helper()
	a := l.ask(method, path, body)
	select {
	case <-a.done:
	default:
		l.t.Fatalf("%s %s is not answered", method, path)
	}
	d := &document{}
	if err := json.Unmarshal(a.Body.Bytes(), d); err != nil || a.Code != status {
		l.t.Fatalf("%s %s: %d %s, want %d", method, path, a.Code, a.Body, status)
	}
	return d
}

// told are the events of a stream so far, without their comments.
func (a *asked) told() []string {
	var all []string
	for _, m := range dataLine.FindAllStringSubmatch(a.Body.String(), -1) {
		all = append(all, m[2])
	}
	return all
}

// kinds are those of events in short. They must be numbered from first on.
func kinds(t *testing.T, events []string, first int) string {
	t.Helper()
	var all []string
	for n, text := range events {
		var e struct {
			Type           string
			SequenceNumber int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.SequenceNumber != first+n {
			t.Errorf("event %d is %s, %v", first+n, text, err)
		}
		all = append(all, strings.TrimPrefix(e.Type, "response."))
	}
	return strings.Join(all, " ")
}

// gated replies with the first steps, waits until gate is closed or it is ended, and then with the others.
func gated(gate <-chan struct{}, first, then []wiretest.Step) func(*chat.Request) ([]wiretest.Step, error) {
	wait := wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: " "}, Before: func(ctx context.Context) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}}
	return func(*chat.Request) ([]wiretest.Step, error) {
		return slices.Concat(first, []wiretest.Step{wait}, then), nil
	}
}

const (
	inBackground = `{"input": "Hi", "background": true}`
	andStream    = `{"input": "Hi", "background": true, "stream": true}`
)

// TestBackground: a response in the background is answered as queued, is in progress, and then complete, in a call of its own.
func TestBackground(t *testing.T) {
	gate, begin := make(chan struct{}), make(chan struct{})
	steps := answer(&chat.Request{})
	steps[0].Before = func(context.Context) { <-begin }
	serveLocal(t, t.TempDir(), func(r *chat.Request) ([]wiretest.Step, error) { return gated(gate, steps[:2], steps[2:])(r) }, func(l *local) {
		begin, gate = make(chan struct{}), make(chan struct{})
		d := l.call(200, "POST", "/v1/responses", inBackground)
		if d.Status != queued || !d.Background || !d.Store || len(d.Output) != 0 {
			t.Errorf("%+v", d)
		}
		path := "/v1/responses/" + d.ID
		if d := l.call(200, "GET", path, ""); d.Status != queued {
			t.Errorf("%+v", d)
		}
		if d := l.call(400, "POST", "/v1/responses", `{"input": "And?", "previous_response_id": "`+d.ID+`"}`); d.Error.Param != "previous_response_id" || !strings.Contains(d.Error.Message, "not finished") {
			t.Errorf("%+v", d.Error)
		}
		close(begin)
		synctest.Wait()
		if d := l.call(200, "GET", path, ""); d.Status != inProgress || !d.Background {
			t.Errorf("%+v", d)
		}
		l.call(400, "GET", path+"?stream=true", "") // its events are not kept
		close(gate)
		synctest.Wait()
		for _, c := range []*document{l.call(200, "GET", path, ""), l.call(200, "POST", path+"/cancel", "{}")} {
			if c.Status != completed || len(c.Output) != 2 || c.ID != d.ID {
				t.Errorf("%+v", c)
			}
		}
		if d := l.call(400, "GET", path+"?stream=true", ""); d.Error.Param != "stream" {
			t.Errorf("%+v", d.Error)
		}
		if got := strings.Join(l.calls[:2], " "); got != "POST POST" {
			t.Errorf("%s", got)
		}
		next := l.call(200, "POST", "/v1/responses", `{"input": "And?", "previous_response_id": "`+d.ID+`"}`)
		if next.Status != completed || next.Background {
			t.Errorf("%+v", next)
		}
		l.call(400, "POST", "/v1/responses/"+next.ID+"/cancel", "{}") // it was not made in the background
		l.call(400, "GET", "/v1/responses/"+next.ID+"?stream=true", "")
	})
}

const wholeStream = "created queued in_progress output_item.added content_part.added reasoning_text.delta reasoning_text.done content_part.done output_item.done " +
	"output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done completed"

// TestBackgroundStream: who posted may leave; the events can be followed from any number, by several, while they come, when they
// have ended, and after a restart.
func TestBackgroundStream(t *testing.T) {
	dir, id := t.TempDir(), ""
	var all []string
	var gate chan struct{}
	steps := answer(&chat.Request{})
	serveLocal(t, dir, func(r *chat.Request) ([]wiretest.Step, error) { return gated(gate, steps[:2], steps[2:])(r) }, func(l *local) {
		gate = make(chan struct{})
		post := l.ask("POST", "/v1/responses", andStream)
		before := post.told()
		if got := kinds(t, before, 0); got != "created queued in_progress output_item.added content_part.added reasoning_text.delta" {
			t.Errorf("%s", got)
		}
		var created struct{ Response document }
		if err := json.Unmarshal([]byte(before[0]), &created); err != nil || created.Response.Status != queued || !created.Response.Background {
			t.Errorf("%s", before[0])
		}
		id = created.Response.ID
		post.leave()
		<-post.done
		var followers []*asked
		for n := -1; n < len(before)+1; n++ { // also from one that is to come
			a := l.ask("GET", resume(id, n), "")
			followers = append(followers, a)
			if got := a.told(); !slices.Equal(got, before[min(n+1, len(before)):]) {
				t.Errorf("from %d: %q", n, got)
			}
		}
		followers[2].leave()
		<-followers[2].done
		close(gate)
		synctest.Wait()
		all = followers[0].told()
		if got := kinds(t, all, 0); got != wholeStream {
			t.Errorf("%s", got)
		}
		for i, a := range followers {
			if i == 2 {
				continue
			}
			<-a.done
			if got := a.told(); !slices.Equal(got, all[i:]) || a.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
				t.Errorf("from %d: %q", i-1, got)
			}
		}
	})
	serveLocal(t, dir, nil, func(l *local) {
		for n := -1; n < len(all)-1; n++ {
			a := l.ask("GET", resume(id, n), "")
			<-a.done
			if got := a.told(); !slices.Equal(got, all[n+1:]) {
				t.Errorf("from %d, after a restart: %q", n, got)
			}
		}
		for _, n := range []int{len(all) - 1, len(all), 1 << 30} {
			if d := l.call(400, "GET", resume(id, n), ""); d.Error.Param != "starting_after" || !strings.Contains(d.Error.Message, fmt.Sprint(len(all)-1)) {
				t.Errorf("%+v", d.Error)
			}
		}
		if d := l.call(200, "GET", "/v1/responses/"+id+"?stream=false", ""); d.Status != completed {
			t.Errorf("%+v", d)
		}
		l.call(200, "DELETE", "/v1/responses/"+id, "")
		l.call(404, "GET", resume(id, 3), "")
	})
}

// resume is the path of a response's events after a number, -1: all.
func resume(id string, n int) string {
	if n < 0 {
		return "/v1/responses/" + id + "?stream=true"
	}
	return fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, n)
}

// TestBackgroundCancel: one that is queued or in progress is cancelled, or deleted, with and without a stream; its events end.
func TestBackgroundCancel(t *testing.T) {
	steps := answer(&chat.Request{})
	for name, before := range map[string][]wiretest.Step{"queued": nil, "in progress": steps[:2]} {
		for _, body := range []string{inBackground, andStream} {
			for _, by := range []string{"POST", "DELETE"} {
				serveLocal(t, t.TempDir(), func(r *chat.Request) ([]wiretest.Step, error) {
					return gated(nil, before, nil)(r)
				}, func(l *local) {
					post := l.ask("POST", "/v1/responses", body)
					id := onlyID(l.t, l.dir)
					path := "/v1/responses/" + id
					if by == "DELETE" {
						l.call(200, "DELETE", path, "")
						l.call(404, "GET", path, "")
					} else {
						for range 2 {
							if d := l.call(200, "POST", path+"/cancel", "{}"); d.Status != cancelled || d.ID != id || d.Error != nil || len(d.Output) != min(len(before), 1) {
								t.Errorf("%s: %+v", name, d)
							}
						}
					}
					synctest.Wait()
					<-post.done
					if body == inBackground {
						return
					}
					told := post.told()
					last := told[len(told)-1]
					if !strings.HasPrefix(last, `{"type":"response.incomplete"`) || !strings.Contains(last, `"status":"cancelled"`) {
						t.Errorf("%s: %s", name, told)
					}
					kinds(t, told, 0)
					if by == "POST" {
						if a := l.ask("GET", resume(id, -1), ""); !slices.Equal(a.told(), told) {
							t.Errorf("%s: %q, want %q", name, a.told(), told)
						}
					}
				})
			}
		}
	}
}

// TestBackgroundBounds: there are only so many at once, of one key and of all; each that ends makes room.
func TestBackgroundBounds(t *testing.T) {
	a := newActive()
	fill := func(owner store.Owner, most int) (leaves []func()) {
		t.Helper()
		for range most {
			leave, err := a.enter(owner)
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		if _, err := a.enter(owner); err == nil || err.Kind != chat.RateLimited || err.RetryAfter == 0 || err.Bound != chat.BoundBackground || !strings.Contains(err.Msg, fmt.Sprint(most)) {
			t.Errorf("one more: %v", err)
		}
		return leaves
	}
	ada := fill(store.Owner{1}, maxOfKey)
	bob := fill(store.Owner{2}, maxBackground-maxOfKey)
	if _, err := a.enter(store.Owner{3}); err == nil || !strings.Contains(err.Msg, fmt.Sprint(maxBackground)) {
		t.Errorf("one of another's: %v", err)
	}
	ada[0]()
	if _, err := a.enter(store.Owner{3}); err != nil {
		t.Error(err)
	}
	for _, leave := range append(ada[1:], bob...) {
		leave()
	}
	if a.jobs != 1 || len(a.byKey) != 1 {
		t.Errorf("%d, %v", a.jobs, a.byKey)
	}
	a = newActive()
	fill(store.Owner{}, maxBackground) // where there are no keys
	gate := make(chan struct{})
	serveLocal(t, t.TempDir(), func(r *chat.Request) ([]wiretest.Step, error) { return gated(gate, nil, answer(r))(r) }, func(l *local) {
		gate = make(chan struct{})
		for range maxOfKey {
			l.call(200, "POST", "/v1/responses", inBackground)
		}
		if d := l.call(429, "POST", "/v1/responses", andStream); d.Error.Code != "rate_limit_exceeded" {
			t.Errorf("%+v", d.Error)
		}
		close(gate)
		synctest.Wait()
		l.call(200, "POST", "/v1/responses", inBackground)
	})
}

// TestBackgroundRefused: what is wrong with a request is answered as ever, and nothing is stored of it.
func TestBackgroundRefused(t *testing.T) {
	full := &chat.Error{Kind: chat.Overloaded, RetryAfter: 1, Msg: "full"}
	dir := t.TempDir()
	serveLocal(t, dir, func(*chat.Request) ([]wiretest.Step, error) { return nil, full }, func(l *local) {
		for _, more := range []string{"", `, "stream": true`} {
			if d := l.call(503, "POST", "/v1/responses", `{"input": "Hi", "background": true`+more+`}`); d.Error.Message != "full" || d.Error.Code != "server_overloaded" {
				t.Errorf("%+v", d.Error)
			}
			if a := l.ask("POST", "/v1/responses", inBackground); a.Header().Get("Retry-After") != "1" || a.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%v", a.Header())
			}
			l.call(404, "POST", "/v1/responses", `{"input": "Hi", "model": "another", "background": true`+more+`}`)
			if d := l.call(400, "POST", "/v1/responses", `{"input": "Hi", "store": false, "background": true`+more+`}`); d.Error.Param != "background" {
				t.Errorf("%+v", d.Error)
			}
			l.call(400, "POST", "/v1/responses", `{"input": "Hi", "background": 1`+more+`}`)
		}
		if all := ids(l.t, dir); len(all) != 0 {
			t.Errorf("%v", all)
		}
	})
	a := serveStored(t, store.New(store.Options{Mode: store.Off}), answer)
	if status, d := a.call("POST", "/v1/responses", "ada", inBackground); status != 400 || d.Error.Param != "background" || !strings.Contains(d.Error.Message, "nothing is stored here") {
		t.Errorf("%d %+v", status, d.Error)
	}
}

// TestBackgroundFails: what breaks off has failed, whether its client follows it or not; so has what panics or is cut.
func TestBackgroundFails(t *testing.T) {
	for name, last := range map[string]wiretest.Step{
		"error": {Err: &chat.Error{Kind: chat.Internal, Msg: "a step failed"}},
		"panic": {Before: func(context.Context) { panic("a bug") }},
		"cut":   {Err: chat.ErrCut},
	} {
		for _, first := range [][]wiretest.Step{nil, answer(&chat.Request{})[:2]} {
			for _, body := range []string{inBackground, andStream} {
				serveLocal(t, t.TempDir(), func(*chat.Request) ([]wiretest.Step, error) { return append(first[:len(first):len(first)], last), nil }, func(l *local) {
					post := l.ask("POST", "/v1/responses", body)
					id := onlyID(l.t, l.dir)
					d := l.call(200, "GET", "/v1/responses/"+id, "")
					if d.Status != failed || d.Error == nil || d.Error.Code != "server_error" {
						t.Errorf("%s: %+v", name, d)
					}
					if body == inBackground {
						return
					}
					again := l.ask("GET", resume(id, -1), "")
					told := again.told()
					if got := kinds(t, told, 0); !slices.Equal(post.told(), told) || !strings.HasSuffix(got, " failed") || strings.Count(got, "failed") != 1 {
						t.Errorf("%s: %s, then %s", name, kinds(t, post.told(), 0), got)
					}
				})
			}
		}
	}
}

// TestBackgroundInterrupted: what a server left unfinished has failed, and so its events end, with the number after those that
// are there, or after the one that the client has.
func TestBackgroundInterrupted(t *testing.T) {
	for _, before := range [][]wiretest.Step{nil, answer(&chat.Request{})[:2]} { // queued, and in progress
		interrupt(t, before)
	}
}

func interrupt(t *testing.T, before []wiretest.Step) {
	dir, id := t.TempDir(), ""
	serveLocal(t, dir, gated(nil, before, nil), func(l *local) {
		post := l.ask("POST", "/v1/responses", andStream)
		id = onlyID(l.t, dir)
		l.store.Close() // nothing that comes now is stored
		for _, run := range []string{"POST", "GET"} {
			path := map[string]string{"POST": "/v1/responses", "GET": resume(id, -1)}[run]
			if a := l.ask(run, path, andStream); a.Code != 500 {
				t.Errorf("%s: %d %s", run, a.Code, a.Body)
			}
		}
		post.leave()
		l.end()
	})
	serveLocal(t, dir, nil, func(l *local) {
		if d := l.call(200, "GET", "/v1/responses/"+id, ""); d.Status != failed || d.Error.Code != "server_error" {
			t.Errorf("%+v", d)
		}
		for after, want := range map[int]string{-1: "created queued failed", 0: "queued failed", 1: "failed", 37: "failed"} {
			if got := kinds(t, l.ask("GET", resume(id, after), "").told(), after+1); got != want {
				t.Errorf("after %d: %s, want %s", after, got, want)
			}
		}
		l.call(200, "POST", "/v1/responses/"+id+"/cancel", "{}")
	})
}

// change changes the database behind the store's back.
func (l *local) change(statement string) {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, "responses.db"))
	if err == nil {
		_, err = db.ExecContext(l.t.Context(), statement)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// TestNotFinished: a response whose end cannot be stored has failed, for its client and for who asks later, before a restart too.
func TestNotFinished(t *testing.T) {
	for _, body := range []string{`{"input": "Hi"}`, `{"input": "Hi", "stream": true}`, inBackground, andStream} {
		dir, id := t.TempDir(), ""
		var gate chan struct{}
		look := func(l *local) {
			l.t.Helper()
			if d := l.call(200, "GET", "/v1/responses/"+id, ""); d.Status != failed || d.Error.Code != "server_error" {
				l.t.Errorf("%s: %+v", body, d)
			}
			if body == andStream {
				if got := kinds(l.t, l.ask("GET", resume(id, 4), "").told(), 5); got != "failed" {
					l.t.Errorf("%s", got)
				}
			}
		}
		steps := answer(&chat.Request{})
		serveLocal(t, dir, func(r *chat.Request) ([]wiretest.Step, error) { return gated(gate, steps[:2], steps[2:])(r) }, func(l *local) {
			gate = make(chan struct{})
			post := l.ask("POST", "/v1/responses", body)
			l.change("ALTER TABLE items RENAME TO gone")
			close(gate)
			synctest.Wait()
			<-post.done
			if got := post.Body.String(); body != inBackground && (!strings.Contains(got, "cannot be stored") || strings.Contains(got, "response.completed")) {
				t.Errorf("%s", got)
			}
			if told := post.told(); body == andStream && !strings.HasSuffix(kinds(t, told, 0), " failed") {
				t.Errorf("%q", told)
			}
			id = onlyID(l.t, dir)
			look(l)
			if body == inBackground {
				l.call(200, "POST", "/v1/responses/"+id+"/cancel", "{}")
			}
			l.change("ALTER TABLE gone RENAME TO items")
			look(l)
		})
		serveLocal(t, dir, nil, look)
	}
}

// lengthy are the steps of a long reply.
func lengthy(words int) (steps []wiretest.Step) {
	for n := range words {
		steps = append(steps, wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: fmt.Sprint(n, " ")}})
	}
	return steps
}

// TestBackgroundLong: the events of a long response are stored while it is made, but for the last; all can be read, by
// who is behind too.
func TestBackgroundLong(t *testing.T) {
	steps := answer(&chat.Request{})
	var gate chan struct{}
	serveLocal(t, t.TempDir(), func(r *chat.Request) ([]wiretest.Step, error) {
		return gated(gate, slices.Concat(steps[:2], lengthy(2000)), slices.Concat(lengthy(100), steps[2:]))(r)
	}, func(l *local) {
		gate = make(chan struct{})
		post := l.ask("POST", "/v1/responses", andStream)
		id := onlyID(l.t, l.dir)
		early := post.told()
		if got := l.ask("GET", resume(id, -1), "").told(); !slices.Equal(got, early) {
			t.Errorf("%d events before the end, not %d", len(got), len(early))
		}
		runs := map[int]int{} // bytes of each
		for n := 0; n < len(early); n += 20 {
			if e, err := l.store.Events(l.t.Context(), owner("ada"), id, n); err != nil {
				t.Fatal(err)
			} else if runs[e.First] == 0 {
				list, _ := unpack(e)
				for _, b := range list {
					runs[e.First] += len(b)
				}
				if runs[e.First] > runBytes+1000 || len(e.Body)*5 > runs[e.First] && n > 0 {
					t.Errorf("%d events have %d bytes, of which %d are stored", len(list), runs[e.First], len(e.Body))
				}
			}
		}
		if len(runs) < 4 {
			t.Errorf("%v", runs)
		}
		close(gate)
		synctest.Wait()
		all := post.told()
		if got := kinds(t, all, 0); !strings.HasSuffix(got, " completed") || len(all) < 2100 {
			t.Errorf("%s", got)
		}
		for _, n := range []int{-1, 0, 1, 2, 777, 1500, len(all) - 2} {
			if got := l.ask("GET", resume(id, n), "").told(); !slices.Equal(got, all[n+1:]) {
				t.Errorf("after %d: %d events", n, len(got))
			}
		}
	})
}

func owner(name string) (o store.Owner) {
	copy(o[:], name)
	return o
}

// TestBackgroundNoRoom: where events cannot be stored while a response is made, it fails, and says why.
func TestBackgroundNoRoom(t *testing.T) {
	steps := answer(&chat.Request{})
	var gate chan struct{}
	serveLocal(t, t.TempDir(), func(r *chat.Request) ([]wiretest.Step, error) {
		return gated(gate, steps[:2], append(lengthy(2000), gatedForever()))(r)
	}, func(l *local) {
		gate = make(chan struct{})
		post := l.ask("POST", "/v1/responses", andStream)
		id := onlyID(l.t, l.dir)
		l.change(`CREATE TRIGGER full BEFORE INSERT ON events WHEN (SELECT status FROM responses WHERE id = NEW.response) = 'in_progress'
			BEGIN SELECT RAISE(ABORT, 'there is no room'); END`)
		close(gate)
		synctest.Wait()
		told := post.told()
		if got := kinds(t, told, 0); !strings.HasSuffix(got, " failed") || !strings.Contains(told[len(told)-1], "there is no room") {
			t.Errorf("%s: %s", got, told[len(told)-1])
		}
		if got := l.ask("GET", resume(id, -1), "").told(); !slices.Equal(got, told) {
			t.Errorf("%d events later, not %d", len(got), len(told))
		}
		if d := l.call(200, "GET", "/v1/responses/"+id, ""); d.Status != failed || !strings.Contains(d.Error.Message, "there is no room") {
			t.Errorf("%+v", d)
		}
	})
}

// gatedForever waits until the reply is ended.
func gatedForever() wiretest.Step {
	return wiretest.Step{Before: func(ctx context.Context) { <-ctx.Done() }}
}

// TestFollowKeepAlive: who follows a response that says nothing is kept alive.
func TestFollowKeepAlive(t *testing.T) {
	serveLocal(t, t.TempDir(), gated(nil, nil, nil), func(l *local) {
		l.call(200, "POST", "/v1/responses", `{"input": "Hi", "background": true}`)
		post := l.ask("POST", "/v1/responses", andStream)
		time.Sleep(12 * time.Second) // of the bubble's time
		synctest.Wait()
		if got := post.Body.String(); !strings.HasSuffix(got, "\n\n: keep-alive\n\n: keep-alive\n\n") || len(post.told()) != 2 {
			t.Errorf("%s", got)
		}
		l.end()
		synctest.Wait()
		if told := post.told(); kinds(t, told, 0) != "created queued failed" || !strings.Contains(told[2], "shutting_down") {
			t.Errorf("%q", told)
		}
	})
}

// queries are those of GET /v1/responses/{id}, with what is wrong with them.
var queries = []struct {
	query, param string
	after        int
	streams      bool
}{
	{"", "", -1, false}, {"stream=false", "", -1, false}, {"stream=true", "", -1, true}, {"stream=true&starting_after=0", "", 0, true},
	{"starting_after=41&stream=true&include[]=x&include_obfuscation=false", "", 41, true}, {"api-version=2025-04-01-preview", "", -1, false},
	{"stream=true&starting_after=2147483647", "", 1<<31 - 1, true},
	{"stream=1", "stream", 0, false}, {"stream=", "stream", 0, false}, {"stream=True", "stream", 0, false}, {"stream", "stream", 0, false},
	{"starting_after=1", "starting_after", 0, false}, {"stream=false&starting_after=1", "starting_after", 0, false},
	{"stream=true&starting_after=", "starting_after", 0, false}, {"stream=true&starting_after=-1", "starting_after", 0, false},
	{"stream=true&starting_after=1.5", "starting_after", 0, false}, {"stream=true&starting_after=%2B1", "starting_after", 0, false},
	{"stream=true&starting_after=2147483648", "starting_after", 0, false}, {"stream=true&starting_after=99999999999999999999", "starting_after", 0, false},
	{"stream=true&starting_after=one", "starting_after", 0, false}, {"stream=true;starting_after=1", "query", 0, false}, {"%zz", "query", 0, false},
}

func TestCursor(t *testing.T) {
	for _, tt := range queries {
		after, streams, err := cursor(tt.query)
		switch {
		case tt.param != "" && (err == nil || err.Kind != chat.Invalid || err.Param != tt.param):
			t.Errorf("%s: %v", tt.query, err)
		case tt.param == "" && (err != nil || after != tt.after || streams != tt.streams):
			t.Errorf("%s: %d, %t, %v", tt.query, after, streams, err)
		}
	}
}

// FuzzCursor: a query is refused, or says from which event on there is a stream.
func FuzzCursor(f *testing.F) {
	for _, tt := range queries {
		f.Add(tt.query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		after, streams, err := cursor(query)
		if err == nil && (after < -1 || after > -1 && !streams || after > math.MaxInt32) || err != nil && (err.Kind != chat.Invalid || len(err.Msg) > 1000) {
			t.Errorf("%q: %d, %t, %v", query, after, streams, err)
		}
	})
}

// TestEnding: a response whose end is stored has ended, also while what made it is not gone yet.
func TestEnding(t *testing.T) {
	h := handler{Protocol: Protocol{Store: newStore(t, t.TempDir())}, active: newActive()}
	run := &running{}
	run.begun.Store(true)
	h.active.add(activeKey{id: "resp_1"}, run)
	r := &store.Response{ID: "resp_1", Body: []byte(`{"status":"queued"}`)}
	if err := h.Store.Begin(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{inProgress, completed} {
		if want == completed {
			r.Status, r.Body = completed, []byte(`{"status":"completed"}`)
			if err := h.Store.Finish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := h.look(t.Context(), store.Owner{}, "resp_1")
		p := past{ctx: t.Context(), store: h.Store, active: h.active}
		if err != nil || !strings.Contains(string(got.Body), `"status":"`+want+`"`) || p.unfinished("resp_1") != (want == inProgress) {
			t.Errorf("%s: %s, %v", want, got.Body, err)
		}
	}
}

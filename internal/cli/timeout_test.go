package cli

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/server"
)

// slow is the native engine with steps, and parts of a model that is loaded, as slow as a test wants: by its clock.
type slow struct {
	*cpu.Backend
	step, part *atomic.Int64 // durations
}

// Begin implements backend.Backend.
func (s slow) Begin(st backend.Store, b *backend.Batch) backend.Scope {
	time.Sleep(time.Duration(s.step.Load()))
	return s.Backend.Begin(st, b)
}

// NewLoader implements backend.Backend.
func (s slow) NewLoader(o backend.Options) backend.Loader {
	return slowLoader{s.Backend.NewLoader(o), s.part}
}

type slowLoader struct {
	backend.Loader
	part *atomic.Int64
}

// Load implements backend.Loader.
func (l slowLoader) Load(s backend.WeightSpec) (backend.Weight, error) {
	time.Sleep(time.Duration(l.part.Load()))
	return l.Loader.Load(s)
}

// crawling is a server on a slow engine, with models on disk. It must be made within a bubble, and closed there.
type crawling struct {
	*server.Server
	models     *catalog.Catalog
	step, part atomic.Int64
}

func newCrawling(t *testing.T, cfg *config.Config) *crawling {
	t.Helper()
	cfg.PrefillStepSize, cfg.ContextLength, cfg.CacheMemoryMB, cfg.PromptCache = 64, 4096, 256, false
	src, err := catalog.Find("demo", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	c := &crawling{models: catalog.New(src, cfg)}
	c.models.AddDisk(onDisk{roots(cfg)}, cfg.IdleUnload)
	c.Server = newServer(cfg, c.models, slog.New(slog.DiscardHandler))
	return c
}

func (c *crawling) load() error {
	return c.models.Load(catalog.Backends{Auto: []string{"cpu"},
		Open: map[string]catalog.Opener{"cpu": func(*config.Config) (backend.Backend, error) {
			return slow{cpu.New(), &c.step, &c.part}, nil
		}}})
}

// ask asks, and says how long that took by the clock of the bubble.
func (c *crawling) ask(path, body string) (status int, reply string, took time.Duration) {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	began := time.Now()
	c.ServeHTTP(w, r)
	return w.Code, w.Body.String(), time.Since(began)
}

// TestTimeoutSlowEngine: on an engine whose steps take most of what --timeout lets a request stand still, a prompt of many chunks
// is answered, whole and as a stream, on every API, and so is the request for a model whose parts take as long to load. What
// stands still is cut when that time is over, by the error of its API, while keep-alives go on.
func TestTimeoutSlowEngine(t *testing.T) {
	const limit = 100 * time.Second
	const slowly, hanging = limit * 8 / 10, limit * 115 / 100 // a step that takes longer would be taken for a fault of the engine
	const says = "nothing was done for the request for 1m40s, as long as the server's flag --timeout lets; try again later"
	long := strings.Repeat("Count the sheep on the green hill. ", 100) // some 14 chunks
	cfg := configured(t, "", nil, append(cacheWith(t, "org/tiny"), "--timeout", "100")...)
	synctest.Test(t, func(t *testing.T) {
		c := newCrawling(t, cfg)
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		for _, a := range []struct{ path, body, whole, last, alive string }{
			{"/v1/messages", `{"model":%q,"max_tokens":3,"temperature":0,"stream":%t,"messages":[{"role":"user","content":%q}]}`,
				`{"type":"error","error":{"type":"timeout_error","message":"` + says + `"}`,
				"event: error\ndata: " + `{"type":"error","error":{"type":"timeout_error","message":"` + says + `"}`, "event: ping\n"},
			{"/v1/chat/completions", `{"model":%q,"max_tokens":3,"temperature":0,"stream":%t,"messages":[{"role":"user","content":%q}]}`,
				`{"error":{"message":"` + says + `","type":"server_error","param":null,"code":"timeout"}}`,
				`data: {"error":{"message":"` + says + `","type":"server_error","param":null,"code":"timeout"}}`, ": keep-alive\n"},
			{"/v1/responses", `{"model":%q,"max_output_tokens":16,"temperature":0,"store":false,"stream":%t,"input":%q}`,
				`{"error":{"message":"` + says + `","type":"server_error","param":null,"code":"timeout"}}`,
				`"status":"failed"`, ": keep-alive\n"},
		} {
			for _, stream := range []bool{false, true} {
				what := fmt.Sprintf("%s, stream %t", a.path, stream)
				c.step.Store(int64(slowly))
				status, reply, took := c.ask(a.path, fmt.Sprintf(a.body, "demo", stream, long))
				if status != 200 || strings.Contains(reply, "--timeout") || took < 12*slowly {
					t.Errorf("%s: it gets on, in %v: %d %s", what, took, status, reply)
				}
				c.step.Store(int64(hanging))
				status, reply, took = c.ask(a.path, fmt.Sprintf(a.body, "demo", stream, long))
				want, code := a.whole, 504
				if stream {
					want, code = a.last, 200
				}
				if status != code || !strings.Contains(reply, want) || !strings.Contains(reply, says) || took < limit || took > limit+2*time.Second {
					t.Errorf("%s: it stands still, for %v: %d %s\nwant %s", what, took, status, reply, want)
				}
				if n := strings.Count(reply, a.alive); stream && n < 15 {
					t.Errorf("%s: %d keep-alives in %v: %s", what, n, took, reply)
				}
				c.step.Store(0)
				c.part.Store(int64(slowly))
				status, reply, took = c.ask(a.path, fmt.Sprintf(strings.Replace(a.body, "{", `{"keep_alive":0,`, 1), "org/tiny", stream, "Hi"))
				if status != 200 || strings.Contains(reply, "--timeout") || took < 12*slowly {
					t.Errorf("%s: its model is loaded, in %v: %d %s", what, took, status, reply)
				}
				synctest.Wait() // until it is gone again
				c.part.Store(int64(hanging))
				status, reply, took = c.ask(a.path, fmt.Sprintf(a.body, "org/tiny", stream, "Hi"))
				if status != code || !strings.Contains(reply, says) || took < limit || took > limit+2*time.Second {
					t.Errorf("%s: a part of its model takes too long, %v: %d %s", what, took, status, reply)
				}
				c.part.Store(0)
				synctest.Wait()
			}
		}
		if err := c.models.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestProgress: what the server is told of requests that run, wait and have ended, and of models that are loaded.
func TestProgress(t *testing.T) {
	cfg := configured(t, "", nil, "--max-sequences", "1")
	synctest.Test(t, func(t *testing.T) {
		c := newCrawling(t, cfg)
		m := monitor{cfg, c.models}
		if p := m.Progress(); len(p.Requests) != 0 || p.Loading != 0 {
			t.Errorf("before all: %+v", p)
		}
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		loaded := m.Progress().Loading
		if loaded < 10 {
			t.Errorf("%d parts are loaded", loaded)
		}
		c.step.Store(int64(time.Second))
		body := `{"max_tokens":3,"temperature":0,"messages":[{"role":"user","content":"` + strings.Repeat("Count the sheep on the green hill. ", 100) + `"}]}`
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if status, reply, _ := c.ask("/v1/messages", body); status != 200 {
					t.Errorf("%d %s", status, reply)
				}
			})
			synctest.Wait()
		}
		seen, queued := map[string]int64{}, 0
		for range 8 {
			time.Sleep(1100 * time.Millisecond) // a step, at least
			p := m.Progress()
			if len(p.Requests) != 2 || p.Loading != loaded {
				t.Fatalf("%+v", p)
			}
			for id, r := range p.Requests {
				if last, again := seen[id]; again && !r.Queued && r.Steps <= last {
					t.Errorf("a step is no progress: %+v after %d", r, last)
				}
				if r.Queued {
					queued++
				}
				seen[id] = r.Steps
			}
		}
		if queued != 8 {
			t.Errorf("a request that waited for the other was waiting %d times of 8", queued)
		}
		all.Wait()
		synctest.Wait()
		if p := m.Progress(); len(p.Requests) != 0 {
			t.Errorf("after all: %+v", p)
		}
		if err := c.models.Close(); err != nil {
			t.Error(err)
		}
	})
}

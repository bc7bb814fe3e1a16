package catalog

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/hub"
	"hearth/internal/sysmem"
)

// shelf is a Disk of a test.
type shelf []Found

func (s shelf) Find(name string) (*Found, error) {
	for i := range s {
		if s[i].ID == name {
			return &s[i], nil
		}
	}
	return nil, &hub.NotFoundError{ID: name}
}

func (s shelf) Named(string) bool { return false }

func (s shelf) List(context.Context) []Found { return s }

// copied are folders with the demo, under such names.
func copied(t *testing.T, names ...string) (s shelf) {
	t.Helper()
	for _, name := range names {
		dir := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.CopyFS(dir, demo.FS()); err != nil {
			t.Fatal(err)
		}
		s = append(s, Found{Source: &Source{ID: name, Path: dir, Where: name, FS: os.DirFS(dir)}})
	}
	return s
}

// demands is a catalog of the demo with models on disk, of which so many fit beside it. Its time is the test's.
func demands(t *testing.T, disk Disk, fit int, idle time.Duration) (c *Catalog, forward func(time.Duration)) {
	t.Helper()
	return demandsOn(t, backends(), disk, fit, idle)
}

func demandsOn(t *testing.T, bs Backends, disk Disk, fit int, idle time.Duration) (c *Catalog, forward func(time.Duration)) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	cfg := config.Default()
	cfg.CacheMemoryMB, cfg.Threads = 64, 1
	src, err := Find("", hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	c = New(src, cfg)
	// what one takes is measured, to make room for just so many
	plain := backends()
	plain.Memory = budget.New(budget.Readers{}, 0)
	w, err := OpenWeights(src, cfg, plain)
	if err != nil {
		t.Fatal(err)
	}
	stays, total := w.holding.Use().Sum(), int64(0)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	most := WeightBytes(demo.FS()) + firstState + firstStep
	total = stays + most*int64(fit) + most/2
	bs.Memory = budget.New(budget.Readers{Total: func() int64 { return total }}, 0)
	c.AddDisk(disk, idle)
	var mu sync.Mutex
	now := time.Now()
	c.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	if err := c.Load(bs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, func(d time.Duration) {
		mu.Lock()
		now = now.Add(d)
		mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.step()
	}
}

// until polls a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// row is how a model stands.
func row(t *testing.T, c *Catalog, id string) Row {
	t.Helper()
	for _, r := range c.Rows(t.Context()) {
		if r.Model.ID == id {
			return r
		}
	}
	t.Fatalf("no row of %s", id)
	return Row{}
}

// say has a model say a few words, and gives who answered.
func say(t *testing.T, c *Catalog, name string, keep *time.Duration) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(chat.WithKeepAlive(t.Context(), keep))
	defer cancel()
	g, err := c.Open(ctx, name)
	if err != nil {
		return "", err
	}
	return g.Model().ID, hello(ctx, g)
}

// hello has a model say a few words.
func hello(ctx context.Context, g chat.Generator) error {
	events, err := g.Generate(ctx, &chat.Request{MaxTokens: 2, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "Hello"}}}}})
	if err != nil {
		return err
	}
	for _, err := range events {
		if err != nil {
			return err
		}
	}
	return nil
}

// A name that somebody has given means that model, whatever clients have built in, and an error where there is none.
func TestGivenNames(t *testing.T) {
	disk := copied(t, "claude-given", "gpt-given", "claude-haiku-given")
	reader := encoderSource(t, "text-embedding-given", false)
	disk = append(disk, Found{Source: reader, Kind: chat.Embeds})
	named := unlisted{shelf: disk}
	c, _ := demands(t, named, 4, 0)
	for name, want := range map[string]string{"claude-given": "claude-given", "gpt-given": "gpt-given", "claude-haiku-given": "claude-haiku-given", "claude-other": "demo", "gpt-4o": "demo"} {
		if got, err := say(t, c, name, nil); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %s", name, got, err, want)
		}
	}
	if e, err := c.OpenEmbedder(t.Context(), "text-embedding-given"); err != nil || e.Model().ID != "text-embedding-given" {
		t.Errorf("%v", err)
	}
}

// One whose model is not there says that, and means no other.
func TestGivenNamesGone(t *testing.T) {
	c, _ := demands(t, unlisted{gone: true}, 4, 0)
	_, text := c.Open(t.Context(), "claude-given")
	_, vectors := c.OpenEmbedder(t.Context(), "text-embedding-given")
	_, scores := c.OpenRanker(t.Context(), "text-embedding-given")
	for what, err := range map[string]error{"text": text, "vectors": vectors, "scores": scores} {
		if e := chat.AsError(err); e == nil || e.Kind != chat.NotFound || !strings.Contains(e.Msg, "is not served here; on this disk: org/given; ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// unlisted are models that names alone lead to, as aliases do.
type unlisted struct {
	shelf
	gone bool
}

func (unlisted) List(context.Context) []Found { return nil }

// Named reports whether it is a name that tests give.
func (unlisted) Named(name string) bool { return strings.HasSuffix(name, "given") }

func (u unlisted) Find(name string) (*Found, error) {
	if u.gone {
		return nil, &hub.NotFoundError{ID: name, Have: []string{"org/given"}}
	}
	return u.shelf.Find(name)
}

// A request's model is loaded when it is named, by any of its names; what means the main model goes on meaning it.
func TestOnDemand(t *testing.T) {
	disk := copied(t, "org/one", "org/two", "org/claude-like")
	reader := encoderSource(t, "reader", false)
	disk = append(disk, Found{Source: reader, Kind: chat.Embeds})
	c, _ := demands(t, disk, 4, 0)
	for name, want := range map[string]string{
		"": "demo", "demo": "demo", "default": "demo", "local": "demo", "claude-opus-4-8": "demo", "gpt-4o": "demo",
		"org/one": "org/one", "one": "org/one", "two": "org/two", "claude-org-two": "org/two", "claude-like": "org/claude-like",
	} {
		if got, err := say(t, c, name, nil); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %s", name, got, err, want)
		}
	}
	if _, err := say(t, c, "three", nil); chat.AsError(err).Kind != chat.NotFound {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := say(t, c, "reader", nil); chat.AsError(err).Code != "model_not_supported" {
		t.Errorf("text of an encoder: %v", err)
	}
	if _, err := c.OpenEmbedder(t.Context(), "org/one"); chat.AsError(err).Code != "model_not_supported" {
		t.Errorf("vectors of a model that generates: %v", err)
	}
	if r := row(t, c, "reader"); r.State != "on_disk" || r.Loads != 0 {
		t.Errorf("a model that nobody could use was loaded: %+v", r)
	}
	e, err := c.OpenEmbedder(t.Context(), "reader")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := e.Embed(t.Context(), &chat.EmbedRequest{Inputs: []chat.Input{{Text: "hello"}}}); err != nil || len(v.Vectors) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	list := c.List(context.Background())
	if len(list) != 5 || list[0].ID != "demo" || list[1].State != chat.Loaded || list[1].Context == 0 || list[4].Kind != chat.Embeds {
		t.Errorf("%+v", list)
	}
	if n := c.Stats().GeneratedTokens; n < 2*11 {
		t.Errorf("%d tokens", n)
	}
	if err := c.UnloadModel(t.Context(), "demo"); chat.AsError(err).Code != "model_pinned" {
		t.Errorf("unload the model of the command line: %v", err)
	}
	if err := c.UnloadModel(t.Context(), "two"); err != nil {
		t.Error(err)
	}
	until(t, "two goes", func() bool { return row(t, c, "org/two").State == "on_disk" })
	if n := c.Stats().GeneratedTokens; n < 2*11 {
		t.Errorf("%d tokens when one has gone", n)
	}
	if m := row(t, c, "org/two").Model; m.Context == 0 || !m.Tools {
		t.Errorf("what was known is forgotten: %+v", m)
	}
}

// inTurn asks models one after the other, a second apart, and comes back when nobody uses any.
func inTurn(t *testing.T, c *Catalog, forward func(time.Duration), names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := say(t, c, name, nil); err != nil {
			t.Fatal(err)
		}
		until(t, "its request has ended", func() bool { return row(t, c, name).Users == 0 })
		forward(time.Second)
	}
}

// The least recently used model goes for another one, never one in use, and never that of the command line.
func TestRoom(t *testing.T) {
	c, forward := demands(t, copied(t, "a", "b", "c"), 2, 0)
	inTurn(t, c, forward, "a", "b", "a")
	if _, err := say(t, c, "c", nil); err != nil {
		t.Fatal(err)
	}
	if a, b := row(t, c, "a"), row(t, c, "b"); a.State != "loaded" || b.State != "on_disk" {
		t.Errorf("a is %s, b is %s", a.State, b.State)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, name := range []string{"a", "c"} { // in use
		if _, err := c.Open(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan error, 1)
	go func() {
		_, err := say(t, c, "b", nil)
		got <- err
	}()
	until(t, "somebody waits for b", func() bool { return row(t, c, "b").Waiting == 1 })
	until(t, "one request uses each", func() bool { return row(t, c, "a").Users == 1 && row(t, c, "c").Users == 1 })
	forward(residence + time.Second)
	if a, d := row(t, c, "a"), row(t, c, "c"); a.State != "loaded" || d.State != "loaded" || a.Users != 1 || d.Users != 1 {
		t.Errorf("%+v, %+v", a, d)
	}
	cancel()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if r := row(t, c, "demo"); r.State != "loaded" || !r.Pinned {
		t.Errorf("%+v", r)
	}
}

func TestDoesNotFit(t *testing.T) {
	c, _ := demands(t, copied(t, "a"), 0, 0)
	_, err := say(t, c, "a", nil)
	if e := chat.AsError(err); e.Kind != chat.Overloaded || e.Code != "model_does_not_fit" || !strings.Contains(e.Msg, "demo has ") || !strings.Contains(e.Msg, "and stays") {
		t.Errorf("%#v", e)
	}
	if _, err := say(t, c, "demo", nil); err != nil {
		t.Error(err)
	}
}

// A load that fails is told with its reason, takes nothing else with it, and is tried again later.
func TestLoadFails(t *testing.T) {
	disk := copied(t, "good", "bad")
	file := filepath.Join(disk[1].Path, "model.safetensors")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	c, forward := demands(t, disk, 2, 0)
	if _, err := say(t, c, "good", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := say(t, c, "bad", nil)
		if e := chat.AsError(err); e.Code != "model_load_failed" || !strings.Contains(e.Msg, "model.safetensors") || e.RetryAfter == 0 {
			t.Errorf("%#v", e)
		}
	}
	if r := row(t, c, "bad"); r.Problem == "" || row(t, c, "good").State != "loaded" {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, c, "bad", nil); err == nil {
		t.Error("it was tried again at once")
	}
	forward(retryAfter)
	if _, err := say(t, c, "bad", nil); err != nil {
		t.Error(err)
	}
}

// A load ends when all who waited for it have left.
func TestLoadCancelled(t *testing.T) {
	c, _ := demands(t, copied(t, "a", "b"), 2, 0)
	e, err := c.find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.open(ctx, backends(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	block, reached := make(chan struct{}), make(chan struct{})
	open := c.bs.Open["cpu"]
	c.bs.Open = map[string]Opener{"cpu": func(cfg *config.Config) (_ backend.Backend, _ error) {
		close(reached)
		<-block
		return open(cfg)
	}}
	ctx, cancel = context.WithCancel(t.Context())
	got := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := c.Open(ctx, "a")
			got <- err
		}()
	}
	until(t, "both wait", func() bool { return row(t, c, "a").Waiting == 2 })
	<-reached
	cancel()
	for range 2 {
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	c.bs.Open = map[string]Opener{"cpu": open}
	close(block)
	until(t, "the load ends", func() bool { return row(t, c, "a").State == "on_disk" })
	if r := row(t, c, "a"); r.Loads != 0 || r.Problem != "" {
		t.Errorf("%+v", r)
	}
	if _, err := say(t, c, "a", nil); err != nil {
		t.Error(err)
	}
}

// A model that nobody has used for a while goes, and what a request says of that wins.
func TestKeepAlive(t *testing.T) {
	c, forward := demands(t, copied(t, "a"), 1, time.Minute)
	minus, zero, hour := -time.Second, time.Duration(0), time.Hour
	gone := func() bool { return row(t, c, "a").State == "on_disk" }
	for name, tt := range map[string]struct {
		keep  []*time.Duration // of requests, one after the other
		stays time.Duration    // below 0: for good
	}{
		"as the server has it":     {[]*time.Duration{nil}, time.Minute},
		"longer":                   {[]*time.Duration{&hour}, time.Hour},
		"for good":                 {[]*time.Duration{&minus}, -1},
		"not at all":               {[]*time.Duration{&zero}, 0},
		"longer, and then nothing": {[]*time.Duration{&hour, nil}, time.Hour},
		"the last one counts":      {[]*time.Duration{&minus, &hour, &zero}, 0},
	} {
		for _, keep := range tt.keep {
			if _, err := say(t, c, "a", keep); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			until(t, "nobody uses a", func() bool { return row(t, c, "a").Users == 0 })
		}
		switch {
		case tt.stays < 0:
			forward(1000 * time.Hour)
			if gone() {
				t.Errorf("%s: it goes", name)
			}
			if err := c.UnloadModel(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		case tt.stays > 0:
			forward(tt.stays - time.Second)
			if gone() {
				t.Errorf("%s: it goes too early", name)
			}
			forward(time.Second)
		}
		until(t, name+": it goes", gone)
	}
}

var crowdFor = flag.Duration("crowd", 0, "how long TestCrowd goes on, by the clock; 0: four seconds of a clock that is forty times as fast")

// TestCrowd: fifty clients that ask real engines for three models where two fit are all served; there are at most three loads and
// one each half minute, and none waits for more than three switches.
func TestCrowd(t *testing.T) {
	lasts, pace := 4*time.Second, time.Duration(40)
	if *crowdFor > 0 {
		lasts, pace = *crowdFor, 1
	}
	c, _ := demands(t, copied(t, "a", "b", "c"), 4, 0)
	c.List(t.Context())
	one := c.Main().Weights().holding.Use() // they are all the same
	for _, e := range c.found {
		e.state, e.step, e.need = one.State, one.Scratch, one.Sum()
	}
	rest := c.bs.Memory.Free("") - 2*one.Sum() - one.Sum()/16
	if _, err := c.bs.Memory.Ask(t.Context(), budget.Claim{Name: "rest", Pinned: true, Use: budget.Use{Weights: rest}}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) * pace }
	c.now = func() time.Time { return start.Add(clock()) }
	var seen []time.Time         // switches
	switches := func() (n int) { // so far
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(seen); !c.switched.IsZero() && (n == 0 || !seen[n-1].Equal(c.switched)) {
			seen = append(seen, c.switched)
		}
		return len(seen)
	}
	var ticking sync.WaitGroup
	stop := make(chan struct{})
	ticking.Go(func() { // in place of the catalog's timer, which has its own clock
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				switches()
				c.mu.Lock()
				c.step()
				c.mu.Unlock()
			}
		}
	})
	var most, served [50]int
	var clients sync.WaitGroup
	for i := range served {
		r := rand.New(rand.NewPCG(uint64(i), 1))
		clients.Go(func() {
			for clock() < lasts*pace {
				name := string(rune('a' + i%3))
				if i%2 == 1 { // half of them keep to their model
					name = string(rune('a' + r.IntN(3)))
				}
				before := switches()
				ctx, cancel := context.WithCancel(t.Context())
				g, err := c.Open(ctx, name)
				most[i] = max(most[i], switches()-before)
				if err == nil {
					err = hello(ctx, g)
				}
				cancel()
				if err != nil || g.Model().ID != name {
					t.Errorf("%s: %v", name, err)
					return
				}
				served[i]++
			}
		})
	}
	clients.Wait()
	close(stop)
	ticking.Wait()
	took, loads, all := clock(), 0, 0
	for _, r := range c.Rows(t.Context()) {
		loads += r.Loads
	}
	for i, n := range served {
		if all += n; n == 0 {
			t.Errorf("client %d was never served", i)
		}
	}
	t.Logf("%d requests in %v: %d loads, %d switches; nobody waited for more than %d of them", all, took.Round(time.Second), loads, switches(), slices.Max(most[:]))
	if limit := 3 + int(took/residence); loads > limit || switches() == 0 {
		t.Errorf("%d loads, %d switches in %v; at most %d loads", loads, switches(), took, limit)
	}
	if n := slices.Max(most[:]); n > 3 {
		t.Errorf("somebody waited for %d switches", n)
	}
}

// Loading and unloading models of all kinds over and over leaves memory as it is.
func TestCyclesLeaveNothing(t *testing.T) {
	cycles := 200
	if testing.Short() {
		cycles = 20
	}
	disk := copied(t, "talks")
	disk = append(disk, Found{Source: encoderSource(t, "reads", false), Kind: chat.Embeds}, Found{Source: encoderSource(t, "judges", true), Kind: chat.Ranks})
	c, _ := demands(t, disk, 3, 0)
	zero := time.Duration(0)
	cycle := func(i int) {
		name := disk[i%len(disk)].ID
		ctx, cancel := context.WithCancel(chat.WithKeepAlive(t.Context(), &zero))
		var err error
		switch disk[i%len(disk)].Kind {
		case chat.Embeds:
			var e chat.Embedder
			if e, err = c.OpenEmbedder(ctx, name); err == nil {
				_, err = e.Embed(ctx, &chat.EmbedRequest{Inputs: []chat.Input{{Text: "hello"}}})
			}
		case chat.Ranks:
			var e chat.Ranker
			if e, err = c.OpenRanker(ctx, name); err == nil {
				_, err = e.Rank(ctx, &chat.RankRequest{Query: "a", Documents: []chat.Input{{Text: "hello"}}})
			}
		default:
			_, err = say(t, c, name, &zero)
		}
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		until(t, name+" goes", func() bool { return row(t, c, name).State == "on_disk" })
	}
	for i := range 30 {
		cycle(i)
	}
	goroutines, before := runtime.NumGoroutine(), privateBytes(t)
	for i := range cycles {
		cycle(i)
	}
	after := privateBytes(t)
	t.Logf("%d MiB before %d cycles, %d MiB after", before>>20, cycles, after>>20)
	if after > before+before/20+1<<20 {
		t.Errorf("%d bytes before %d cycles, %d after", before, cycles, after)
	}
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}

// privateBytes is the program's own memory, when all that can go has gone.
func privateBytes(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	n := sysmem.Private()
	if n == 0 {
		t.Skip("the system does not tell")
	}
	return n
}

// What the prompt cache of a model held is on disk when the model has gone, and is there for it when it is loaded again, be it
// here or in a process of its own; the ids of its answers too.
func TestOnDemandKeeps(t *testing.T) {
	for name, bs := range map[string]Backends{"here": backends(), "apart": aparts("cpu")} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, _ := demandsOn(t, bs, copied(t, "a"), 1, 0)
			c.cfg = keeping(t, dir)
			c.DiskCache = &DiskCache{Build: "test", Warn: func(line string) { t.Error(line) }}
			r := conversation()
			for i := range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				g, err := c.Open(ctx, "a")
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if _, u := turn(t, g, r); i == 1 && u.Disk == 0 && u.Cached == 0 {
						t.Errorf("usage %+v", u)
					}
				}
				cancel()
				if err := c.UnloadModel(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				until(t, "it has gone", func() bool { return len(c.bs.Memory.Shares()) == 1 })
			}
			if found, err := filepath.Glob(filepath.Join(dir, "a-*", "history.aside")); err != nil || len(found) != 1 {
				t.Errorf("the ids of earlier answers are in %v, error %v", found, err)
			}
			if n := c.Stats().Cache.Disk.Hits; n == 0 {
				t.Error("nothing came from disk")
			}
		})
	}
}

// A model that was told to go, has gone for another reason and is back stays: the late word was not for what is there now.
func TestLateEviction(t *testing.T) {
	c, _ := demands(t, copied(t, "a"), 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	g, err := c.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	c.evict(c.found[0])
	if state := row(t, c, "a").State; state != "loaded" {
		t.Errorf("it is %s", state)
	}
	if err := hello(ctx, g); err != nil {
		t.Error(err)
	}
	cancel()
}

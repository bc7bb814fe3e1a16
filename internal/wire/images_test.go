package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"hearth/internal/chat"
)

// web is a Fetcher of files by their URLs.
type web struct {
	files map[string]string
	asked atomic.Int64
}

func (w *web) Fetch(ctx context.Context, url string, hold func(int64) bool) ([]byte, error) {
	w.asked.Add(1)
	file, ok := w.files[url]
	if !ok {
		return nil, errors.New("cannot be fetched from " + url + ": send it as base64")
	}
	if !hold(int64(len(file))) {
		return nil, ErrNoRoom
	}
	return []byte(file), ctx.Err()
}

// viewer is a model that notes what it is given of images.
type viewer struct {
	sees bool
	got  []string
}

func (v *viewer) Model() chat.Model                 { return chat.Model{ID: "viewer", Sees: v.sees} }
func (v *viewer) List(context.Context) []chat.Model { return nil }
func (v *viewer) Open(context.Context, string) (chat.Generator, error) {
	return v, nil
}

func (v *viewer) Count(_ context.Context, r *chat.Request) (int, error) {
	v.got = nil
	for _, img := range imagesOf(r.Messages) {
		v.got = append(v.got, string(img.Base64)+"|"+string(img.File)+"|"+img.By)
	}
	return len(v.got), nil
}

func (v *viewer) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	_, err := v.Count(ctx, r)
	return func(yield func(chat.Event, error) bool) {
		_ = yield(chat.Event{Kind: chat.EventStart}, nil) && yield(chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop}, nil)
	}, err
}

// counted is Count without a reply.
func (o Options) counted(req *chat.Request) (err *chat.Error) {
	fail := func(_ http.ResponseWriter, _ *http.Request, e *chat.Error) { err = e }
	o.Count(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil), req, fail, func(n int) any { return n })
	return err
}

// listener is an Encoder that hears nothing.
type listener struct{}

func (listener) Begin(chat.Model)  {}
func (listener) Event(*chat.Event) {}

func urlImage(url string) chat.Part {
	m := &chat.Media{Kind: chat.Image, Path: "at." + url, Refusal: "no URLs here"}
	Link(m, url)
	return chat.Part{Kind: chat.PartMedia, Media: m}
}

func ofTool(parts ...chat.Part) chat.Part {
	return chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{Parts: parts}}
}

// TestFiles: what a model that sees is given for the images of a request, and what its client is told.
func TestFiles(t *testing.T) {
	const a, b, none = "https://a.example/a", "https://a.example/b", "https://a.example/none"
	sent := func() chat.Part {
		return chat.Part{Kind: chat.PartMedia, Media: &chat.Media{Kind: chat.Image, Base64: []byte("AAAA")}}
	}
	stored := func() chat.Part {
		m := &chat.Media{Kind: chat.Image, Path: "at.id", Refusal: "no files here"}
		Stored(m, "file-1")
		return chat.Part{Kind: chat.PartMedia, Media: m}
	}
	for name, c := range map[string]struct {
		parts        []chat.Part
		blind, fetch bool
		got, err     string
		asked        int64
	}{
		"sent":                   {parts: []chat.Part{sent()}, got: "AAAA||"},
		"blind":                  {parts: []chat.Part{urlImage(a), stored()}, blind: true, fetch: true, got: "||URL ||file id"},
		"off":                    {parts: []chat.Part{sent(), urlImage(a)}, err: "at." + a + ": no URLs here; a server that is started with --image-urls fetches it"},
		"off, in a result":       {parts: []chat.Part{ofTool(urlImage(a), stored()), sent()}, got: "||URL ||file id AAAA||"},
		"by id":                  {parts: []chat.Part{stored()}, fetch: true, err: "at.id: no files here"},
		"fetched, the same once": {parts: []chat.Part{urlImage(a), ofTool(urlImage(b), urlImage(a))}, fetch: true, got: "|A| |B| |A|", asked: 2},
		"not there":              {parts: []chat.Part{urlImage(none)}, fetch: true, err: "at." + none + ": the image cannot be fetched from " + none, asked: 1},
		"not there, in a result": {parts: []chat.Part{ofTool(urlImage(none)), urlImage(b)}, fetch: true, got: "||URL |B|", asked: 2},
		"larger than a body":     {parts: []chat.Part{urlImage("huge")}, fetch: true, err: "the image is one of several that are larger together", asked: 1},
	} {
		for _, count := range []bool{false, true} {
			w := &web{files: map[string]string{a: "A", b: "B", "huge": strings.Repeat("x", 101)}}
			v := &viewer{sees: !c.blind}
			o := Options{Models: v, MaxBody: 100}.WithDefaults()
			if c.fetch {
				o.Fetch = w
			}
			req := &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: clone(c.parts)}}}
			if name == "larger than a body" {
				req.Messages[0].Parts[0].Media.URL, req.Messages[0].Parts[0].Media.By = "huge", chat.ByURL
			}
			var err *chat.Error
			held := int64(-1)
			if count {
				err = o.counted(req)
			} else {
				o.Queued = func() { held = o.Bodies.Held() }
				err = o.feed(WithInfo(t.Context(), &Info{}), req, listener{}, func(*chat.Event) bool { return true })
			}
			if got := strings.Join(v.got, " "); c.err == "" && (err != nil || got != c.got) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || v.got != nil) {
				t.Errorf("%s: got %s, error %v; want %s, %s", name, got, err, c.got, c.err)
			}
			if w.asked.Load() != c.asked || o.Bodies.Held() != 0 || held > 0 {
				t.Errorf("%s: %d were fetched, %d bytes are held, %d when the prompt was made", name, w.asked.Load(), o.Bodies.Held(), held)
			}
			for _, img := range imagesOf(req.Messages) {
				if img.Base64 != nil || img.File != nil {
					t.Errorf("%s: the bytes of an image are kept", name)
				}
			}
		}
	}
}

// clone copies parts with their media, which requests change.
func clone(parts []chat.Part) []chat.Part {
	var all []chat.Part
	for _, p := range parts {
		if p.Media != nil {
			m := *p.Media
			p.Media = &m
		}
		if p.Result != nil {
			p = ofTool(clone(p.Result.Parts)...)
		}
		all = append(all, p)
	}
	return all
}

// TestFilesFull: what is fetched has a place among bodies, and where there is none the client is asked to come back.
func TestFilesFull(t *testing.T) {
	o := Options{Models: &viewer{sees: true}, Bodies: NewBodies(400 << 10), Fetch: &web{files: map[string]string{"https://a.example/a": strings.Repeat("x", 200<<10)}}}.WithDefaults()
	other := &Body{of: o.Bodies}
	if other.bytes = 200 << 10; !o.Bodies.grow(0, other.bytes) {
		t.Fatal("no room for one body")
	}
	ask := func() *chat.Error {
		return o.counted(&chat.Request{Messages: []chat.Message{{Parts: []chat.Part{urlImage("https://a.example/a")}}}})
	}
	if err := ask(); err == nil || err.Kind != chat.Overloaded || err.Bound != chat.BoundBodies {
		t.Errorf("with another body: %v", err)
	}
	other.Close()
	if err := ask(); err != nil || o.Bodies.Held() != 0 {
		t.Errorf("alone: %v, %d held", err, o.Bodies.Held())
	}
}

// TestFilesMany: a request may not have any number of URLs followed.
func TestFilesMany(t *testing.T) {
	for n, want := range map[int]bool{mostFetched: true, mostFetched + 1: false} {
		w := &web{files: map[string]string{}}
		var parts []chat.Part
		for i := range n {
			url := "https://a.example/" + strings.Repeat("x", i)
			w.files[url] = "A"
			parts = append(parts, urlImage(url))
		}
		o := Options{Models: &viewer{sees: true}, Fetch: w}.WithDefaults()
		err := o.counted(&chat.Request{Messages: []chat.Message{{Parts: parts}}})
		if (err == nil) != want || err != nil && (err.Bound != chat.BoundImages || w.asked.Load() != 0) {
			t.Errorf("%d: %v, %d fetched", n, err, w.asked.Load())
		}
	}
}

// TestFilesAgain: a reply for which more than one prompt is made keeps its images, and its body, until the last.
func TestFilesAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		v := &viewer{sees: true}
		closed := false
		o := Options{Models: v, Again: again, Queued: func() { closed = true }}.WithDefaults()
		part := chat.Part{Kind: chat.PartMedia, Media: &chat.Media{Kind: chat.Image, Base64: []byte("AAAA")}}
		req := &chat.Request{Messages: []chat.Message{{Parts: []chat.Part{part}}}}
		err := o.feed(WithInfo(t.Context(), &Info{}), req, listener{}, func(*chat.Event) bool {
			if kept := part.Media.Base64 != nil; kept != again || closed == again {
				t.Errorf("again %t: kept %t, let go of the body %t", again, kept, closed)
			}
			return true
		})
		if err != nil || part.Media.Base64 != nil {
			t.Errorf("again %t: %v, %s", again, err, part.Media.Base64)
		}
	}
}

// TestBase64Kept: an image keeps its bytes where they are, so that they take no memory; what is no image keeps none.
func TestBase64Kept(t *testing.T) {
	body := []byte(`{"a": "` + base64.StdEncoding.EncodeToString(gifFile(t)) + `", "b": "data:image\/gif;base64,R0lGODlhIAAQAAAAAA=="}`)
	v, bad := Parse(body)
	if bad != nil {
		t.Fatal(bad)
	}
	d := &Decoder{}
	image, file, escaped := &chat.Media{Kind: chat.Image}, &chat.Media{Kind: chat.Document}, &chat.Media{Kind: chat.Image}
	d.Base64(image, v.Get("a"))
	d.Base64(file, v.Get("a"))
	d.DataURL(escaped, v.Get("b"))
	body[len(`{"a": "`)] = '!'
	if d.Err() != nil || image.Base64[0] != '!' || file.Base64 != nil || string(escaped.Base64) != "R0lGODlhIAAQAAAAAA==" {
		t.Errorf("%v: %.20s, %s, %s", d.Err(), image.Base64, file.Base64, escaped.Base64)
	}
}

// TestLinkOrData: in the result of a tool nothing about an image is an error.
func TestLinkOrData(t *testing.T) {
	for source, want := range map[string]string{
		`"data:image/png;base64,AAAA"`: "AAAA||", `"https://a.example/b.png"`: "|https://a.example/b.png|URL", `"data:image/png;base64,!"`: "||URL", `"file:///etc/passwd"`: "||URL",
		`null`: "||URL", `7`: "||URL", `""`: "||URL", `"data:"`: "||URL", `"http://"`: "|http://|URL",
	} {
		v, _ := Parse([]byte(source))
		m := &chat.Media{Kind: chat.Image}
		if LinkOrData(m, v); string(m.Base64)+"|"+m.URL+"|"+m.By != want {
			t.Errorf("%s: %+v, want %s", source, m, want)
		}
	}
}

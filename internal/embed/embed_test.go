package embed

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/chat"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/tokenizer"
	"hearth/internal/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// letters is the tokenizer of golden.Letters.
func letters(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Load(fstest.MapFS{"tokenizer.json": {Data: []byte(golden.Letters())}})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const bertConfig = `{"model_type":"bert","hidden_size":32,"num_hidden_layers":2,"intermediate_size":48,"num_attention_heads":2,
"vocab_size":60,"max_position_embeddings":40,"type_vocab_size":2}`

// service is a tiny bert; set changes how it runs.
func service(t testing.TB, p model.Pooling, set func(*Config)) *Service {
	t.Helper()
	be := cpu.New()
	m, err := model.Synthetic{Config: []byte(bertConfig), Seed: 5, Type: quant.F32}.LoadEncoder(be, backend.Options{Precision: backend.Float32, Threads: 1}, p)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Info: chat.Model{ID: "tiny"}, Model: m, Backend: be, Tokenizer: letters(t), StepRows: 64, MaxWaiting: 100}
	if set != nil {
		set(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

var embeds = model.Pooling{Kind: model.Embeds, Normalize: true}

func inputs(texts ...string) *chat.EmbedRequest {
	r := &chat.EmbedRequest{}
	for i, x := range texts {
		r.Inputs = append(r.Inputs, chat.Input{Text: x, Path: "input[" + strconv.Itoa(i) + "]"})
	}
	return r
}

func vectors(t testing.TB, s *Service, r *chat.EmbedRequest) [][]float32 {
	t.Helper()
	out, err := s.Embed(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return out.Vectors
}

func length(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func TestEmbed(t *testing.T) {
	s := service(t, embeds, nil)
	if m := s.Model(); m.Kind != chat.Embeds || m.Context != 40 || s.cfg.Model.Width != 32 {
		t.Errorf("model %+v of width %d", m, s.cfg.Model.Width)
	}
	out, err := s.Embed(t.Context(), inputs("Hello", "hello", "a b"))
	if err != nil {
		t.Fatal(err)
	}
	if out.Tokens != 7+7+4 || len(out.Vectors) != 3 {
		t.Fatalf("%d tokens, %d vectors", out.Tokens, len(out.Vectors))
	}
	if out.Tokenized <= 0 || out.Queued < 0 || out.Ran <= 0 {
		t.Errorf("it took %+v", out.EncodeTimes)
	}
	if !slices.Equal(out.Vectors[0], out.Vectors[1]) || slices.Equal(out.Vectors[0], out.Vectors[2]) {
		t.Error("the same texts differ, or different ones do not")
	}
	for _, v := range out.Vectors {
		if l := length(v); math.Abs(l-1) > 1e-6 {
			t.Errorf("length %g", l)
		}
	}
	// Ids are taken as they are: with the tokenizer's own they are the text.
	ids := &chat.EmbedRequest{Inputs: []chat.Input{{Tokens: []int32{2, 4, 6, 3}}}}
	if v := vectors(t, s, ids)[0]; !slices.Equal(v, out.Vectors[2]) {
		t.Error("ids give another vector than their text")
	}
	short := inputs("hello")
	short.Dimensions = 8
	v := vectors(t, s, short)[0]
	if len(v) != 8 || math.Abs(length(v)-1) > 1e-6 || math.Abs(float64(v[0]/v[1]-out.Vectors[0][0]/out.Vectors[0][1])) > 1e-5 {
		t.Errorf("8 dimensions of %v are %v", out.Vectors[0], v)
	}
}

func TestEmbedErrors(t *testing.T) {
	s := service(t, embeds, nil)
	long := strings.Repeat("x", 39)
	for name, c := range map[string]struct {
		r     *chat.EmbedRequest
		param string
		want  string
	}{
		"dimensions":  {&chat.EmbedRequest{Inputs: inputs("a").Inputs, Dimensions: 33}, "dimensions", "have 32 numbers"},
		"too long":    {inputs("a", long), "input[1]", "has 41 tokens and the model reads 40"},
		"ids":         {&chat.EmbedRequest{Inputs: []chat.Input{{Tokens: []int32{1, 60}, Path: "input"}}}, "input[1]", "60 is no token"},
		"negative id": {&chat.EmbedRequest{Inputs: []chat.Input{{Tokens: []int32{-1}, Path: "input[2]"}}}, "input[2][0]", "-1 is no token"},
		"no ids":      {&chat.EmbedRequest{Inputs: []chat.Input{{Tokens: []int32{}, Path: "input[0]"}}}, "input[0]", "must not be empty"},
		"many ids":    {&chat.EmbedRequest{Inputs: []chat.Input{{Tokens: make([]int32, 41), Path: "input"}}}, "input", "has 41 tokens"},
		"limit":       {&chat.EmbedRequest{Inputs: inputs("a").Inputs, Overflow: chat.Overflow{Limit: 41}}, "truncate_prompt_tokens", "between 3 and 40"},
		"small limit": {&chat.EmbedRequest{Inputs: inputs("a").Inputs, Overflow: chat.Overflow{Limit: 2}}, "truncate_prompt_tokens", "between 3 and 40"},
	} {
		_, err := s.Embed(t.Context(), c.r)
		var e *chat.Error
		if !errors.As(err, &e) || e.Kind != chat.Invalid || e.Param != c.param || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Cut texts keep the tokenizer's own ids around them.
func TestTruncate(t *testing.T) {
	s := service(t, embeds, nil)
	long := inputs(strings.Repeat("x", 100))
	long.Overflow.Mode = chat.On
	if !slices.Equal(vectors(t, s, long)[0], vectors(t, s, inputs(strings.Repeat("x", 38)))[0]) {
		t.Error("a cut text is not its beginning")
	}
	long.Overflow.Limit = 10
	if !slices.Equal(vectors(t, s, long)[0], vectors(t, s, inputs(strings.Repeat("x", 8)))[0]) {
		t.Error("a text cut to 10 tokens is not its beginning")
	}
	if n := s.Stats().Truncated; n != 2 {
		t.Errorf("%d texts were cut", n)
	}
	s = service(t, embeds, func(c *Config) { c.Truncate, c.MaxTokens = true, 12 })
	out, err := s.Embed(t.Context(), inputs(strings.Repeat("x", 100)))
	if err != nil || out.Tokens != 12 {
		t.Errorf("%v, %v", out, err)
	}
	long.Overflow = chat.Overflow{Mode: chat.Off}
	if _, err := s.Embed(t.Context(), long); err == nil {
		t.Error("a request that wants no cuts was cut")
	}
}

// Requests share steps, and what a text becomes does not depend on it.
func TestShared(t *testing.T) {
	s := service(t, embeds, func(c *Config) { c.StepRows = 32 })
	r := rand.New(rand.NewPCG(1, 2))
	var reqs []*chat.EmbedRequest
	for range 12 {
		var texts []string
		for range 1 + r.IntN(9) {
			texts = append(texts, strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(36)))
		}
		reqs = append(reqs, inputs(texts...))
	}
	got := make([][][]float32, len(reqs))
	var wg sync.WaitGroup
	for i, q := range reqs {
		wg.Go(func() { got[i] = vectors(t, s, q) })
	}
	wg.Wait()
	texts := 0
	for i, q := range reqs {
		texts += len(q.Inputs)
		for k, in := range q.Inputs {
			if !slices.Equal(vectors(t, s, inputs(in.Text))[0], got[i][k]) {
				t.Fatalf("request %d, text %d: alone it is another vector", i, k)
			}
		}
	}
	st := s.Stats()
	if st.Texts != int64(2*texts) || st.Requests != int64(len(reqs)+texts) || st.Steps >= st.Texts || st.Waiting != 0 {
		t.Errorf("%+v for %d texts", st, texts)
	}
}

// collect takes one text of every request in turn; what did not fit comes first in the next step.
func TestCollect(t *testing.T) {
	s := &Service{cfg: Config{StepRows: 10}}
	u := &s.queue
	u.s = s
	put := func(lens ...int) *request {
		q := &request{left: len(lens), done: make(chan struct{})}
		for _, n := range lens {
			_ = q.add(make([]int32, n), nil, "")
		}
		u.list = append(u.list, q)
		return q
	}
	a, b, c := put(3, 3, 3), put(2, 9), put(30)
	names := map[*request]string{a: "a", b: "b", c: "c"}
	var steps []string
	for {
		u.fill()
		if len(u.owner) == 0 {
			break
		}
		step := ""
		for _, p := range u.owner {
			step += names[p.q]
		}
		steps = append(steps, step)
		u.finishStep(nil)
	}
	if want := []string{"abab", "c", "a"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	for q, name := range names {
		select {
		case <-q.done:
		default:
			t.Errorf("%s is not done", name)
		}
	}
}

func TestCancelled(t *testing.T) {
	s := service(t, embeds, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Embed(ctx, inputs("a", "b")); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if n := len(vectors(t, s, inputs("a"))); n != 1 {
		t.Errorf("%d vectors after a cancelled request", n)
	}
}

func TestClosedAndFull(t *testing.T) {
	s := service(t, embeds, nil)
	q := &request{ctx: t.Context(), left: 1, done: make(chan struct{}), texts: []text{{ids: []int32{2}}}}
	u := &queue{s: s, wake: make(chan struct{}, 1)}
	if err := u.put(q, 1); err != nil {
		t.Fatal(err)
	}
	if err := u.put(q, 1); chat.AsError(err).Kind != chat.Overloaded || chat.AsError(err).RetryAfter == 0 {
		t.Errorf("a full queue says %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Embed(t.Context(), inputs("a")); chat.AsError(err).Kind != chat.Overloaded {
		t.Errorf("a closed service says %v", err)
	}
}

// A step that fails is an error of its requests, not of the process, nor of those that follow.
func TestStepFails(t *testing.T) {
	s := service(t, embeds, nil)
	m := *s.cfg.Model
	good := s.cfg.Model
	m.Width = 1000
	s.cfg.Model = &m
	if _, err := s.run2(t, []int32{2, 3}); chat.AsError(err).Kind != chat.Internal {
		t.Errorf("error %v", err)
	}
	s.cfg.Model = good
	if _, err := s.run2(t, []int32{2, 3}); err != nil {
		t.Error(err)
	}
}

func (s *Service) run2(t *testing.T, ids []int32) ([]float32, error) {
	q := &request{ctx: t.Context(), width: 32}
	_ = q.add(ids, nil, "")
	return q.out, s.run(q)
}

func TestRank(t *testing.T) {
	s := service(t, model.Pooling{Kind: model.Ranks, Labels: 1}, nil)
	if m := s.Model(); m.Kind != chat.Ranks {
		t.Errorf("model %+v", m)
	}
	r := &chat.RankRequest{Query: "ab", Documents: []chat.Input{{Text: "c", Path: "documents[0]"}, {Text: "de f", Path: "documents[1]"}}}
	out, err := s.Rank(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Scores) != 2 || out.Tokens != 6+8 || out.Scores[0] == out.Scores[1] || out.Scores[0] <= 0 || out.Scores[0] >= 1 {
		t.Errorf("%+v", out)
	}
	read, err := s.query(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	ids, types := read.(*crossEncoder).join([]int32{8})
	if !slices.Equal(ids, []int32{2, 4, 7, 3, 8, 3}) || !slices.Equal(types, []int32{0, 0, 0, 0, 1, 1}) {
		t.Errorf("the model reads %v of types %v", ids, types)
	}
	r.Documents[1].Text = strings.Repeat("x", 60)
	if _, err := s.Rank(t.Context(), r); chat.AsError(err).Param != "documents[1]" {
		t.Errorf("error %v", err)
	}
	r.Overflow.Mode = chat.On
	if out, err := s.Rank(t.Context(), r); err != nil || out.Tokens != 6+40 {
		t.Errorf("%+v, %v", out, err)
	}
	r.Query = strings.Repeat("x", 60)
	if _, err := s.Rank(t.Context(), r); chat.AsError(err).Param != "query" {
		t.Errorf("error %v", err)
	}
}

// What a generative reranker is asked is what its authors' code asks.
func TestJudge(t *testing.T) {
	tok := letters(t)
	j := newGenerativeReranker(&model.Encoder{Type: "qwen3"}, tok)
	q, err := j.ask(t.Context(), &chat.RankRequest{Query: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	ids, types, n, err := q.read(t.Context(), "def", 1000)
	if err != nil {
		t.Fatal(err)
	}
	plain := tokenizer.EncodeOptions{}
	want := slices.Concat(tok.Encode(rerankSystem, plain),
		tok.Encode("<Instruct>: "+rerankInstruction+"\n<Query>: abc\n<Document>: def", plain), tok.Encode(rerankAfter, plain))
	if !slices.Equal(ids, want) || types != nil || n != len(want) {
		t.Errorf("%d tokens, want %d", len(ids), len(want))
	}
	ids, _, n, _ = q.read(t.Context(), "def", n-2)
	if n != len(want) || len(ids) != n-2 || !slices.Equal(ids[len(ids)-5:], want[len(want)-5:]) {
		t.Errorf("%d of %d tokens", len(ids), n)
	}
	if newGenerativeReranker(&model.Encoder{Type: "bert"}, tok) != nil {
		t.Error("bert is no reranker")
	}
}

func TestNewErrors(t *testing.T) {
	m := &model.Encoder{Vocab: 60, Context: 40, Pooling: embeds}
	for name, c := range map[string]Config{
		"longer than the model": {Model: m, MaxTokens: 41},
		"no room":               {Model: m, MaxTokens: 2},
		"vocabulary":            {Model: &model.Encoder{Vocab: 5, Context: 40}},
	} {
		c.Tokenizer = letters(t)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestTokensTogether: a request whose texts are few bytes and many tokens, since a query stands before each, has a bound for all.
func TestTokensTogether(t *testing.T) {
	ids, q := make([]int32, mostTokens/4), &request{}
	for i := range 4 {
		if err := q.add(ids, nil, ""); err != nil {
			t.Fatalf("text %d: %v", i, err)
		}
	}
	var e *chat.Error
	if err := q.add(ids[:1], nil, "documents[4]"); !errors.As(err, &e) || e.Kind != chat.Invalid || e.Bound != chat.BoundTokens || e.Param != "documents[4]" {
		t.Errorf("%v", err)
	}
}

// TestStuck: a step here that does not end is told of.
func TestStuck(t *testing.T) {
	told := make(chan time.Duration, 1)
	s := service(t, model.Pooling{Kind: model.Embeds}, func(c *Config) { c.Stuck = func(d time.Duration) { told <- d } })
	s.queue.watchdog.Begin(watchdog.Prompt)
	s.queue.watchdog.Advance(130)
	if d := <-told; d < 2*time.Minute {
		t.Errorf("stuck for %v", d)
	}
	s.queue.watchdog.End()
}

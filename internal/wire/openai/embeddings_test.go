package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire/wiretest"
)

// encoder is a chat.Encoders that knows only itself: a vector is [tokens, number of the input, 0.5], a score the number of
// letters that the query and the document share. The word long is too long.
type encoder struct {
	embed *chat.EmbedRequest // the last one
	rank  *chat.RankRequest
}

func (e *encoder) Model() chat.Model { return chat.Model{ID: "enc", Kind: chat.Embeds} }

func (e *encoder) open(name string) (*encoder, error) {
	if name == "other" {
		return nil, &chat.Error{Kind: chat.NotFound, Param: "model", Code: "model_not_found", Msg: "no other"}
	}
	return e, nil
}

func (e *encoder) OpenEmbedder(_ context.Context, name string) (chat.Embedder, error) {
	return e.open(name)
}

func (e *encoder) OpenRanker(_ context.Context, name string) (chat.Ranker, error) {
	return e.open(name)
}

func (e *encoder) Embed(_ context.Context, r *chat.EmbedRequest) (*chat.Embeddings, error) {
	e.embed = r
	out := &chat.Embeddings{}
	for i, in := range r.Inputs {
		if in.Text == "long" {
			return nil, chat.Invalidf(in.Path, "too long")
		}
		n := max(len(in.Tokens), len(strings.Fields(in.Text)))
		out.Tokens += n
		out.Vectors = append(out.Vectors, []float32{float32(n), float32(i), 0.5})
	}
	return out, nil
}

func (e *encoder) Rank(_ context.Context, r *chat.RankRequest) (*chat.Ranking, error) {
	e.rank = r
	out := &chat.Ranking{Tokens: 7}
	for _, d := range r.Documents {
		n := 0
		for _, c := range r.Query {
			n += strings.Count(d.Text, string(c))
		}
		out.Scores = append(out.Scores, float64(n))
	}
	return out, nil
}

// ask posts a body to a protocol with an encoder.
func ask(t testing.TB, e chat.Encoders, path, body string) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	o := wiretest.Options(wiretest.New())
	o.Encoders = e
	Protocol{}.Mount(mux, o)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const floatReply = `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[2,0,0.5]},` +
	`{"object":"embedding","index":1,"embedding":[1,1,0.5]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}` + "\n"

func TestEmbeddings(t *testing.T) {
	for _, path := range []string{"/v1/embeddings", "/embeddings", "/openai/v1/embeddings", "/openai/embeddings", "/openai/deployments/m/embeddings?api-version=x"} {
		for name, body := range map[string]string{
			"texts": `{"model": "m", "input": ["a b", "c"]}`, "lists of ids": `{"model": "m", "input": [[1, 2], [3]], "encoding_format": "float"}`,
			"with all": `{"model": "m", "input": ["a b", "c"], "encoding_format": null, "dimensions": null, "user": "u", "truncate": false, "unknown": 1}`,
		} {
			if status, reply := ask(t, &encoder{}, path, body); status != http.StatusOK || reply != floatReply {
				t.Errorf("%s at %s: %d %s", name, path, status, reply)
			}
		}
	}
	e := &encoder{}
	for body, want := range map[string]chat.EmbedRequest{
		`{"input": "a b"}`:                                               {Inputs: []chat.Input{{Text: "a b", Path: "input"}}},
		`{"input": [5, 6, 7]}`:                                           {Inputs: []chat.Input{{Tokens: []int32{5, 6, 7}, Path: "input"}}},
		`{"input": ["a"]}`:                                               {Inputs: []chat.Input{{Text: "a", Path: "input[0]"}}},
		`{"input": [[5], [6, 7]]}`:                                       {Inputs: []chat.Input{{Tokens: []int32{5}, Path: "input[0]"}, {Tokens: []int32{6, 7}, Path: "input[1]"}}},
		`{"input": "a", "model":"x"}`:                                    {Model: "x", Inputs: []chat.Input{{Text: "a", Path: "input"}}},
		`{"input": "a", "dimensions": 2, "truncate": true}`:              {Dimensions: 2, Inputs: []chat.Input{{Text: "a", Path: "input"}}, Overflow: chat.Overflow{Mode: chat.On}},
		`{"input": "a", "truncate": "END"}`:                              {Inputs: []chat.Input{{Text: "a", Path: "input"}}, Overflow: chat.Overflow{Mode: chat.On}},
		`{"input": "a", "truncate": "NONE"}`:                             {Inputs: []chat.Input{{Text: "a", Path: "input"}}, Overflow: chat.Overflow{Mode: chat.Off}},
		`{"input": "a", "truncate_prompt_tokens": -1}`:                   {Inputs: []chat.Input{{Text: "a", Path: "input"}}, Overflow: chat.Overflow{Mode: chat.On}},
		`{"input": "a", "truncate": false, "truncate_prompt_tokens": 9}`: {Inputs: []chat.Input{{Text: "a", Path: "input"}}, Overflow: chat.Overflow{Mode: chat.On, Limit: 9}},
	} {
		status, reply := ask(t, e, "/v1/embeddings", body)
		if got, want := fmt.Sprintf("%+v", *e.embed), fmt.Sprintf("%+v", want); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s\n got %s\nwant %s", body, status, reply, got, want)
		}
	}
	if _, reply := ask(t, e, "/v1/embeddings", `{"input": "a"}`); !strings.Contains(reply, `"model":"enc"`) {
		t.Errorf("without a model's name: %s", reply)
	}
}

// Official clients ask for base64 and decode it themselves.
func TestEmbeddingsBase64(t *testing.T) {
	_, reply := ask(t, &encoder{}, "/v1/embeddings", `{"input": ["a b"], "encoding_format": "base64"}`)
	var body struct {
		Data []struct {
			Embedding string `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(reply), &body); err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	raw, err := base64.StdEncoding.DecodeString(body.Data[0].Embedding)
	if err != nil || len(raw) != 12 {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	for i, want := range []float32{2, 0, 0.5} {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])); got != want {
			t.Errorf("number %d is %g, want %g", i, got, want)
		}
	}
}

func TestRerank(t *testing.T) {
	e := &encoder{}
	for _, path := range []string{"/v1/rerank", "/rerank", "/v2/rerank"} {
		status, reply := ask(t, e, path, `{"model": "m", "query": "ab", "documents": ["x", {"text": "aab"}, "b"], "instruction": "i", "max_chunks_per_doc": 3}`)
		const want = `"object":"list","model":"m","results":[{"index":1,"relevance_score":3,"document":{"text":"aab"}},` +
			`{"index":2,"relevance_score":1,"document":{"text":"b"}},{"index":0,"relevance_score":0,"document":{"text":"x"}}],` +
			`"usage":{"prompt_tokens":7,"total_tokens":7},"meta":{"tokens":{"input_tokens":7}}}`
		if status != http.StatusOK || !strings.HasSuffix(reply, want+"\n") {
			t.Errorf("%s: %d %s", path, status, reply)
		}
		if e.rank.Query != "ab" || e.rank.Instruction != "i" || e.rank.Documents[1].Path != "documents[1].text" {
			t.Errorf("%+v", e.rank)
		}
	}
	_, reply := ask(t, e, "/v1/rerank", `{"query": "b", "documents": ["x", "b", "bb"], "top_n": 1, "return_documents": false}`)
	if !strings.Contains(reply, `"model":"enc","results":[{"index":2,"relevance_score":2}]`) {
		t.Error(reply)
	}
}

const (
	wholeEmbedding = `{"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2, "user": "u", "truncate": true, "truncate_prompt_tokens": 5}`
	wholeRank      = `{"model": "m", "query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": true, "instruction": "i", "truncate": "END", "truncate_prompt_tokens": 5}`
)

func many(n int) string { return strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") }

// TestBadEncodings: as TestBadRequests, for embeddings and rankings.
func TestBadEncodings(t *testing.T) {
	var table strings.Builder
	for _, api := range []struct {
		path   string
		whole  string
		bodies map[string]string
	}{
		{"/embeddings", wholeEmbedding, map[string]string{
			"input none": `{"model": "m"}`, "input null": `{"input": null}`, "input empty": `{"input": ""}`, "input of nothing": `{"input": []}`, "input a boolean": `{"input": true}`,
			"input an object": `{"input": {"text": "a"}}`, "an empty text": `{"input": ["a", ""]}`, "empty ids": `{"input": [[1], []]}`, "texts and ids": `{"input": ["a", 1]}`,
			"ids and lists": `{"input": [1, [2]]}`, "a negative id": `{"input": [-1]}`, "a fraction": `{"input": [[1.5]]}`, "a huge id": `{"input": [4294967296]}`, "nested": `{"input": [[[1]]]}`,
			"format": `{"input": "a", "encoding_format": "ubinary"}`, "dimensions 0": `{"input": "a", "dimensions": 0}`, "dimensions negative": `{"input": "a", "dimensions": -4}`,
			"truncate a word": `{"input": "a", "truncate": "START"}`, "truncate to 0": `{"input": "a", "truncate_prompt_tokens": 0}`, "truncate to -2": `{"input": "a", "truncate_prompt_tokens": -2}`,
			"too many": `{"input": [` + many(maxInputs+1) + `]}`, "too long": `{"input": ["a", "long"]}`, "unknown model": `{"model": "other", "input": "a"}`,
			"body array": `[]`, "body cut": `{"input": "a`, "body empty": ``,
		}},
		{"/rerank", wholeRank, map[string]string{
			"query none": `{"documents": ["a"]}`, "query empty": `{"query": "", "documents": ["a"]}`, "query a list": `{"query": ["a"], "documents": ["a"]}`,
			"documents none": `{"query": "q"}`, "documents empty": `{"query": "q", "documents": []}`, "documents a text": `{"query": "q", "documents": "a"}`,
			"a document of nothing": `{"query": "q", "documents": ["a", ""]}`, "a document without text": `{"query": "q", "documents": [{"title": "a"}]}`, "a number": `{"query": "q", "documents": [1]}`,
			"top_n 0": `{"query": "q", "documents": ["a"], "top_n": 0}`, "too many": `{"query": "q", "documents": [` + many(maxInputs+1) + `]}`,
			"unknown model": `{"model": "other", "query": "q", "documents": ["a"]}`, "body array": `[]`,
		}},
	} {
		bodies := breaking.All(t, api.whole)
		maps.Copy(bodies, api.bodies)
		fmt.Fprintf(&table, "\n# %s\n", api.path)
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			status, reply := ask(t, &encoder{}, "/v1"+api.path, bodies[name])
			if status == http.StatusOK {
				continue
			}
			var e errorBody
			if err := json.Unmarshal([]byte(reply), &e); err != nil || status >= 500 || e.Error.Type != "invalid_request_error" {
				t.Errorf("%s: %d %s", name, status, reply)
			}
			if e.Error.Param == nil && !strings.HasPrefix(name, "body") {
				t.Errorf("%s: no param: %s", name, reply)
			}
			fmt.Fprintf(&table, "%s\n\t%d %s\n", name, status, e.Error.Message)
		}
	}
	wiretest.Golden(t, "testdata/bad_encodings.txt", "# Broken requests and their answers. Written by go test -run TestBadEncodings -update.\n"+table.String())
}

// A server without encoders says what is missing.
func TestNoEncoder(t *testing.T) {
	for path, want := range map[string]string{"/v1/embeddings": "--embedding-model", "/v1/rerank": "--rerank-model"} {
		status, reply := ask(t, nil, path, `{"model": "m", "input": "x", "query": "q", "documents": ["d"]}`)
		if status != http.StatusBadRequest || !strings.Contains(reply, want) || !strings.Contains(reply, `"param":"model"`) {
			t.Errorf("%s: %d %s", path, status, reply)
		}
	}
}

func FuzzEmbeddings(f *testing.F) { fuzzEncoding(f, wholeEmbedding, "/v1/embeddings") }
func FuzzRerank(f *testing.F)     { fuzzEncoding(f, wholeRank, "/v1/rerank") }

// fuzzEncoding: whatever comes, the answer is JSON and no server's fault.
func fuzzEncoding(f *testing.F, whole, path string) {
	for _, seed := range []string{whole, `{"input": [[1, 2], [3]]}`, `{"input": "\ud800"}`, `{"query": "q", "documents": [{"text": "d"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		status, reply := ask(t, &encoder{}, path, string(body))
		if status >= 500 || !json.Valid([]byte(reply)) {
			t.Errorf("%d %s", status, reply)
		}
	})
}

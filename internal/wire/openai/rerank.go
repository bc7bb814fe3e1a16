package openai

import (
	"cmp"
	"net/http"
	"slices"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// rankRequest is a decoded call of /v1/rerank.
type rankRequest struct {
	chat.RankRequest
	top  int  // results; 0: all
	echo bool // results have their documents' texts
}

type rankResult struct {
	Index    int           `json:"index"`
	Score    float64       `json:"relevance_score"`
	Document *rankDocument `json:"document,omitempty"`
}

type rankDocument struct {
	Text string `json:"text"`
}

type rankBody struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Model   string       `json:"model"`
	Results []rankResult `json:"results"`
	Usage   rankUsage    `json:"usage"`
	Meta    rankMeta     `json:"meta"`
}

type rankUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// rankMeta is where Cohere's clients look.
type rankMeta struct {
	Tokens struct {
		Input int `json:"input_tokens"`
	} `json:"tokens"`
}

// rerank answers in a shape that clients of Jina's and of Cohere's API both read.
func (h handler) rerank(w http.ResponseWriter, r *http.Request) {
	var req *rankRequest
	body := h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		req, err = decodeRank(v)
		return err
	})
	if body == nil {
		return
	}
	defer body.Close()
	wire.Direct(w, r, h.WriteError, func() ([]byte, string, *chat.Usage, error) {
		if h.Encoders == nil {
			return nil, req.Model, nil, noEncoder("rankings", "a ranking model (--rerank-model)", req.Model)
		}
		e, err := openEncoder(h, r, h.Encoders.OpenRanker, req.Model, req.KeepAlive)
		if err != nil {
			return nil, req.Model, nil, err
		}
		out, err := e.Rank(r.Context(), &req.RankRequest)
		if err != nil {
			return nil, req.Model, nil, err
		}
		name := req.Model
		if name == "" {
			name = e.Model().ID
		}
		return append(wire.Marshal(req.body(h.NewID("rerank-"), name, out)), '\n'), name, usageOf(out.Tokens, &out.EncodeTimes), nil
	})
}

// decodeRank reads the body of /v1/rerank.
func decodeRank(body wire.Value) (*rankRequest, *chat.Error) {
	d := &Decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	q := &rankRequest{echo: true}
	q.Model = d.OptString(body.Get("model"))
	q.KeepAlive = d.KeepAlive(body.Get("keep_alive"))
	if v := body.Get("query"); d.Want(v, wire.String) {
		if q.Query = d.String(v); q.Query == "" {
			d.Fail(v, "must not be empty")
		}
	}
	d.documents(q, body.Get("documents"))
	if n := d.Int(body.Get("top_n"), 1, 1<<30); n != nil {
		q.top = *n
	}
	if v := body.Get("return_documents"); !v.Absent() {
		q.echo = d.Bool(v)
	}
	q.Instruction = d.OptString(body.Get("instruction"))
	d.overflow(&q.Overflow, body)
	return q, d.Err()
}

// documents reads texts, given as such or as objects with a text.
func (d *Decoder) documents(q *rankRequest, v wire.Value) {
	if !d.Want(v, wire.Array) {
		return
	}
	for _, e := range d.ItemsWithin(v, chat.BoundInputs, maxInputs, "documents") {
		if e.Kind() == wire.Object {
			e = e.Get("text")
		}
		if text := d.String(e); text != "" {
			q.Documents = append(q.Documents, chat.Input{Text: text, Path: e.Path()})
		} else {
			d.Fail(e, "must not be empty")
		}
	}
	if len(q.Documents) == 0 {
		d.Fail(v, "must not be empty")
	}
}

// body sorts the results, best first; of equal ones the first stays first.
func (q *rankRequest) body(id, model string, out *chat.Ranking) *rankBody {
	b := &rankBody{ID: id, Object: "list", Model: model, Usage: rankUsage{out.Tokens, out.Tokens}}
	b.Meta.Tokens.Input = out.Tokens
	for i, s := range out.Scores {
		res := rankResult{Index: i, Score: s}
		if q.echo {
			res.Document = &rankDocument{q.Documents[i].Text}
		}
		b.Results = append(b.Results, res)
	}
	slices.SortStableFunc(b.Results, func(x, y rankResult) int { return cmp.Compare(y.Score, x.Score) })
	if q.top > 0 {
		b.Results = b.Results[:min(q.top, len(b.Results))]
	}
	return b
}

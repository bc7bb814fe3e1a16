package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strconv"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// maxInputs bounds the texts of one request, as OpenAI does.
const maxInputs = 2048

// embeddingRequest is a decoded call of /v1/embeddings.
type embeddingRequest struct {
	chat.EmbedRequest
	base64 bool
}

func (h handler) embeddings(w http.ResponseWriter, r *http.Request) {
	var req *embeddingRequest
	body := h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		req, err = decodeEmbedding(v)
		return err
	})
	if body == nil {
		return
	}
	defer body.Close()
	req.Model = Deployed(r, req.Model)
	wire.Direct(w, r, h.WriteError, func() ([]byte, string, *chat.Usage, error) {
		if h.Encoders == nil {
			return nil, req.Model, nil, noEncoder("embeddings", "an embedding model (--embedding-model)", req.Model)
		}
		e, err := openEncoder(h, r, h.Encoders.OpenEmbedder, req.Model, req.KeepAlive)
		if err != nil {
			return nil, req.Model, nil, err
		}
		out, err := e.Embed(r.Context(), &req.EmbedRequest)
		if err != nil {
			return nil, req.Model, nil, err
		}
		name := req.Model
		if name == "" {
			name = e.Model().ID
		}
		return embeddingBody(out, name, req.base64), name, usageOf(out.Tokens, &out.EncodeTimes), nil
	})
}

// openEncoder opens a model that embeds or ranks, and tells the log of it.
func openEncoder[E interface{ Model() chat.Model }](h handler, r *http.Request, open func(ctx context.Context, name string) (E, error), name string, keep *time.Duration) (E, error) {
	info := wire.InfoFrom(r.Context())
	info.Advance()
	if h.Encodes != nil {
		h.Encodes(r, name)
	}
	loaded := info.Loading()
	e, err := open(chat.WithKeepAlive(r.Context(), keep), name)
	if loaded(); err == nil {
		info.Served = e.Model().ID
		info.Advance()
	}
	return e, err
}

// usageOf is what a reply took, for the log.
func usageOf(tokens int, t *chat.EncodeTimes) *chat.Usage {
	return &chat.Usage{Prompt: tokens, Tokenized: t.Tokenized, Queued: t.Queued, Prefill: t.Ran}
}

// noEncoder is the answer of a server that only generates.
func noEncoder(what, needs, model string) *chat.Error {
	return &chat.Error{Kind: chat.Invalid, Param: "model", Code: "model_not_supported",
		Msg: what + " need " + needs + ", and this server has none; " + wire.Quote(model) + " generates text"}
}

// decodeEmbedding reads the body of /v1/embeddings.
func decodeEmbedding(body wire.Value) (*embeddingRequest, *chat.Error) {
	d := &Decoder{}
	if !d.Want(body, wire.Object) {
		return nil, d.Err()
	}
	q := &embeddingRequest{}
	q.Model = d.OptString(body.Get("model"))
	q.KeepAlive = d.KeepAlive(body.Get("keep_alive"))
	q.Inputs = d.inputs(body.Get("input"))
	if n := d.Int(body.Get("dimensions"), 1, math.MaxInt32); n != nil {
		q.Dimensions = *n
	}
	switch v := body.Get("encoding_format"); d.OptString(v) {
	case "", "float":
	case "base64":
		q.base64 = true
	default:
		d.Fail(v, "expected float or base64, got %s", wire.Quote(d.OptString(v)))
	}
	d.OptString(body.Get("user"))
	d.overflow(&q.Overflow, body)
	return q, d.Err()
}

// inputs reads a text, a list of texts, a list of token ids, or a list of such lists.
func (d *Decoder) inputs(v wire.Value) []chat.Input {
	c := &completionRequest{}
	d.prompts(c, v, maxInputs, "inputs")
	inputs := make([]chat.Input, len(c.prompts))
	for i, p := range c.prompts {
		if inputs[i] = (chat.Input{Text: p.Text, Tokens: p.Tokens, Path: p.Path}); p.Text == "" && len(p.Tokens) == 0 {
			d.FailAt(p.Path, "must not be empty")
		}
	}
	return inputs
}

// overflow reads what is to happen to texts that are too long: truncate as a boolean or in Cohere's words, or vLLM's
// truncate_prompt_tokens, -1 for the model's own limit.
func (d *Decoder) overflow(o *chat.Overflow, f wire.Value) {
	switch v := f.Get("truncate"); v.Kind() {
	case wire.Missing, wire.Null:
	case wire.String:
		switch s := d.String(v); s {
		case "NONE", "none":
			o.Mode = chat.Off
		case "END", "end":
			o.Mode = chat.On
		default:
			d.Fail(v, "expected true, false, END or NONE, got %s", wire.Quote(s))
		}
	default:
		o.Mode = toggle(d.Bool(v))
	}
	v := f.Get("truncate_prompt_tokens")
	if n := d.Int(v, -1, math.MaxInt32); n != nil {
		switch {
		case *n == 0:
			d.Fail(v, "0 is out of range: must be -1 or at least 1")
		case *n > 0:
			o.Limit = *n
		}
		o.Mode = chat.On
	}
}

// embeddingBody is the reply. Vectors are most of it, so it is written in one pass.
func embeddingBody(out *chat.Embeddings, model string, asBase64 bool) []byte {
	n := 0
	if len(out.Vectors) > 0 {
		n = len(out.Vectors) * (len(out.Vectors[0])*12 + 64)
	}
	b := make([]byte, 0, n+256)
	b = append(b, `{"object":"list","data":[`...)
	for i, v := range out.Vectors {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"object":"embedding","index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"embedding":`...)
		b = appendVector(b, v, asBase64)
		b = append(b, '}')
	}
	b = append(b, `],"model":`...)
	b = append(b, wire.Marshal(model)...)
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(out.Tokens), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(out.Tokens), 10)
	return append(b, "}}\n"...)
}

// appendVector writes a vector, whose numbers are finite, as such or as base64 of little-endian float32.
func appendVector(b []byte, v []float32, asBase64 bool) []byte {
	if asBase64 {
		raw := make([]byte, 0, 4*len(v))
		for _, x := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, raw)
		return append(b, '"')
	}
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}

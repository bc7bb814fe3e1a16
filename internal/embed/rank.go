package embed

import (
	"context"
	"slices"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/model"
	"hearth/internal/tokenizer"
)

// Rank implements chat.Ranker.
func (s *Service) Rank(ctx context.Context, r *chat.RankRequest) (*chat.Ranking, error) {
	came := time.Now()
	limit, err := s.room(&r.Overflow)
	if err != nil {
		return nil, err
	}
	query, err := s.query(ctx, r)
	if err != nil {
		return nil, encodeError(ctx, "query", err)
	}
	if n := query.least(); n >= limit {
		return nil, s.tooLong("query", n, limit)
	}
	q := &request{ctx: ctx, width: 1, came: came}
	for i := range r.Documents {
		d := &r.Documents[i]
		ids, types, n, err := query.read(ctx, d.Text, limit)
		if err != nil {
			return nil, encodeError(ctx, d.Path, err)
		}
		if n > limit {
			if !s.truncates(&r.Overflow) {
				return nil, s.tooLong(d.Path, n, limit)
			}
			s.counts.truncated.Add(1)
		}
		if err := q.add(ids, types, d.Path); err != nil {
			return nil, err
		}
	}
	if err := s.run(q); err != nil {
		return nil, err
	}
	out := &chat.Ranking{Tokens: q.tokens, EncodeTimes: q.took}
	for _, x := range q.out {
		out.Scores = append(out.Scores, float64(x))
	}
	return out, nil
}

// rankInput makes what a model reads of a query and one document after the other.
type rankInput interface {
	// least is how many tokens there are without a document.
	least() int
	// read cuts the document so that there are limit tokens, and says how many there would be.
	read(ctx context.Context, document string, limit int) (ids, types []int32, n int, err error)
}

// query makes the rankInput of a request.
func (s *Service) query(ctx context.Context, r *chat.RankRequest) (rankInput, error) {
	if s.reranker != nil {
		return s.reranker.ask(ctx, r)
	}
	ids, err := s.cfg.Tokenizer.EncodeContext(ctx, r.Query, tokenizer.EncodeOptions{})
	return &crossEncoder{s, ids}, err
}

// crossEncoder is for models that read two texts side by side.
type crossEncoder struct {
	s     *Service
	query []int32
}

func (p *crossEncoder) least() int {
	ids, _ := p.join(nil)
	return len(ids)
}

func (p *crossEncoder) read(ctx context.Context, document string, limit int) (ids, types []int32, n int, err error) {
	doc, err := p.s.cfg.Tokenizer.EncodeContext(ctx, document, tokenizer.EncodeOptions{})
	if err != nil {
		return nil, nil, 0, err
	}
	n = p.least() + len(doc)
	ids, types = p.join(doc[:min(len(doc), len(doc)-n+limit)])
	return ids, types, n, nil
}

// join puts the tokenizer's own around both; where it has none for two texts they follow each other as one.
func (p *crossEncoder) join(doc []int32) (ids, types []int32) {
	if p.s.pair == nil {
		return slices.Concat(p.s.around[0], p.query, doc, p.s.around[1]), nil
	}
	typed := false
	for _, piece := range p.s.pair {
		from := len(ids)
		switch piece.Text {
		case 1:
			ids = append(ids, p.query...)
		case 2:
			ids = append(ids, doc...)
		default:
			ids = append(ids, piece.ID)
		}
		for range ids[from:] {
			types = append(types, piece.Type)
		}
		typed = typed || piece.Type != 0
	}
	if !typed {
		return ids, nil
	}
	return ids, types
}

// generativeReranker is a chat model that was taught to say whether a document answers a query, asked in the words it was taught
// with.
type generativeReranker struct {
	tok           *tokenizer.Tokenizer
	system, after []int32
}

// What Qwen3's rankers are asked, as their authors publish it.
const (
	rerankSystem = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
		"Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n"
	rerankAfter       = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
	rerankInstruction = "Given a web search query, retrieve relevant passages that answer the query"
)

// newGenerativeReranker is nil for models that read pairs.
func newGenerativeReranker(m *model.Encoder, tok *tokenizer.Tokenizer) *generativeReranker {
	if !strings.HasPrefix(m.Type, "qwen3") {
		return nil
	}
	parse := tokenizer.EncodeOptions{ParseSpecial: true}
	return &generativeReranker{tok, tok.Encode(rerankSystem, parse), tok.Encode(rerankAfter, parse)}
}

func (j *generativeReranker) ask(ctx context.Context, r *chat.RankRequest) (*rerankQuery, error) {
	instruction := r.Instruction
	if instruction == "" {
		instruction = rerankInstruction
	}
	q := &rerankQuery{generativeReranker: j, before: "<Instruct>: " + instruction + "\n<Query>: " + r.Query + "\n<Document>: "}
	ids, err := j.tok.EncodeContext(ctx, q.before, tokenizer.EncodeOptions{})
	q.own = len(j.system) + len(ids) + len(j.after)
	return q, err
}

// rerankQuery is one query to a generative reranker.
type rerankQuery struct {
	*generativeReranker
	before string // the document
	own    int    // tokens without one
}

func (q *rerankQuery) least() int { return q.own }

// read encodes query and document as one text, as the authors do: tokens reach across the seam.
func (q *rerankQuery) read(ctx context.Context, document string, limit int) (ids, types []int32, n int, err error) {
	body, err := q.tok.EncodeContext(ctx, q.before+document, tokenizer.EncodeOptions{})
	if err != nil {
		return nil, nil, 0, err
	}
	n = len(q.system) + len(body) + len(q.after)
	return slices.Concat(q.system, body[:min(len(body), len(body)-n+limit)], q.after), nil, n, nil
}

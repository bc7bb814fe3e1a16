package chat

import (
	"context"
	"time"
)

// Input is a text that becomes a vector.
type Input struct {
	Text   string
	Tokens []int32 // if not nil, in the place of Text and taken as they are
	Path   string  // where in the client's JSON it stands, for errors
}

// Overflow is what happens to a text that is longer than the model reads.
type Overflow struct {
	Mode  Toggle // On: what is too much at the end is left out; Off: the request is refused
	Limit int    // tokens, if fewer than the model's limit; 0: that
}

// EmbedRequest asks for the vectors of texts.
type EmbedRequest struct {
	Model      string // as the client sent it
	Inputs     []Input
	Dimensions int // first numbers of each vector to keep, at length 1; 0: all
	Overflow   Overflow
	KeepAlive  *time.Duration // see Request
}

// EncodeTimes are where the time of a request for vectors or scores went.
type EncodeTimes struct {
	Tokenized time.Duration // its tokens were made
	Queued    time.Duration // from there to the first step that had some of them
	Ran       time.Duration // from there to the end
}

// Embeddings are the vectors of a request's inputs, in their order, all of one length.
type Embeddings struct {
	Vectors [][]float32
	Tokens  int // of all inputs, as the model read them
	EncodeTimes
}

// RankRequest asks how well documents answer a query.
type RankRequest struct {
	Model       string // as the client sent it
	Query       string
	Documents   []Input
	Instruction string // what ranking means here, for models that can be told; "" is theirs
	Overflow    Overflow
	KeepAlive   *time.Duration // see Request
}

// Ranking is a score per document of a request, in their order; a higher one is better.
type Ranking struct {
	Scores []float64
	Tokens int // of all pairs, as the model read them
	EncodeTimes
}

// Embedder turns texts into vectors with one model. Implementations are safe for concurrent use. Errors are *Error.
type Embedder interface {
	Model() Model
	Embed(ctx context.Context, r *EmbedRequest) (*Embeddings, error)
}

// Ranker scores documents with one model. Implementations are safe for concurrent use. Errors are *Error.
type Ranker interface {
	Model() Model
	Rank(ctx context.Context, r *RankRequest) (*Ranking, error)
}

// Encoders finds embedders and rankers by the name a client sent. A name of a model for something else is an *Error of
// kind Invalid that says so, an unknown one of kind NotFound.
type Encoders interface {
	OpenEmbedder(ctx context.Context, name string) (Embedder, error)
	OpenRanker(ctx context.Context, name string) (Ranker, error)
}

package generate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// Engine is what generate needs of an engine; Over makes one of Tokens.
type Engine interface {
	Submit(ctx context.Context, p engine.Prompt) (Stream, error)
	// Context is the most tokens, prompt and answer together, that a request can have.
	Context() int
}

// Stream is the tokens of one sequence, as *engine.Stream gives them.
type Stream interface {
	Next() (engine.Token, error)
	Finish() engine.Reason
	Usage() engine.Usage
	// Started is closed when the sequence's first step begins, or it ends without one.
	Started() <-chan struct{}
	Close()
}

// Tokens is an engine whose streams are those of package engine: *engine.Engine, or one in another process.
type Tokens interface {
	Submit(ctx context.Context, p engine.Prompt) (*engine.Stream, error)
	Context() int
	scorer
}

// Over adapts an engine.
func Over(e Tokens) Engine { return adapter{e} }

type adapter struct{ Tokens }

func (a adapter) Submit(ctx context.Context, p engine.Prompt) (Stream, error) {
	s, err := a.Tokens.Submit(ctx, p)
	if err != nil { // not s: a nil *engine.Stream is no nil Stream
		return nil, err
	}
	return s, nil
}

// scorer is an engine that tells what a model makes of a prompt.
type scorer interface {
	Score(ctx context.Context, tokens []int32, top int) ([]engine.Score, error)
}

// engineError says what an engine's refusal means to the client.
func engineError(err error) error {
	var long *engine.TooLongError
	var full *engine.QueueFullError
	var many *engine.ClientFullError
	var lost *engine.LostError
	var memory *engine.NoMemoryError
	switch {
	case errors.As(err, &long):
		return &chat.Error{Kind: chat.ContextLength, Param: "messages", Tokens: long.Tokens, Limit: long.Max, Msg: long.Error(), Err: err}
	case errors.As(err, &full):
		return &chat.Error{Kind: chat.Overloaded, RetryAfter: time.Second, Err: err,
			Msg: fmt.Sprintf("the server is busy: %d requests run and %d wait, as many as its flags --max-sequences and --max-queue let; try again later", full.Running, full.Waiting)}
	case errors.As(err, &many):
		return &chat.Error{Kind: chat.RateLimited, RetryAfter: time.Second, Err: err,
			Msg: fmt.Sprintf("%d requests of this client run or wait, half of all there may be; try again later", many.Live)}
	case errors.As(err, &lost) && lost.Began:
		return &chat.Error{Kind: chat.Internal, Code: "model_process_ended", Err: err,
			Msg: "the process that ran the model has ended, and this reply with it; it is being started again: try again"}
	case errors.As(err, &lost):
		return &chat.Error{Kind: chat.Overloaded, Code: "model_process_ended", RetryAfter: max(lost.After, time.Second), Err: err,
			Msg: fmt.Sprintf("the process that runs the model has ended %d times in a row and is being started again; try again later", lost.Times)}
	case errors.As(err, &memory):
		return &chat.Error{Kind: chat.Overloaded, RetryAfter: 5 * time.Second, Msg: memory.Error(), Err: err}
	case errors.Is(err, engine.ErrClosed):
		return &chat.Error{Kind: chat.Overloaded, Msg: "the server is shutting down", RetryAfter: 5 * time.Second, Err: err}
	}
	return chat.AsError(err)
}

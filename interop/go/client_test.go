package interop

import "context"

// sdk is one client library, reduced to what the tests do with it.
type sdk interface {
	create(ctx context.Context, c call) (*reply, error)
	// stream does the same through the SDK's own stream accumulator.
	stream(ctx context.Context, c call) (*reply, error)
	models(ctx context.Context) ([]string, error)
	model(ctx context.Context, id string) (string, error)
	// failure is what an error of the SDK carries: the HTTP status, the API's error type and its message; 0 if it is
	// another error.
	failure(err error) (status int, kind, message string)
}

// call is a request. With a tool, result (if not nil) continues the conversation after the reply to it.
type call struct {
	model, prompt string
	tool          bool
	previous      *reply // an earlier reply that called the tool
	result        string // what the tool answered
}

// reply is a reply as the SDK understood it.
type reply struct {
	model, text, reasoning, stop string
	calls                        []toolCall
	input, output                int64
	turn                         any // the SDK's own message, to send back
}

type toolCall struct{ id, name, arguments string }

// The tool of the tests.
const (
	toolName  = "get_weather"
	toolParam = "city"
)

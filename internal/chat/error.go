package chat

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind is what went wrong, free of any protocol. Each protocol maps it to a status and a body in one table.
type ErrorKind uint8

const (
	Internal        ErrorKind = iota // our fault
	Invalid                          // the request is wrong; Param names where
	Unauthenticated                  // no or wrong key
	Forbidden                        // host, origin or permission
	NotFound                         // no such model or resource
	TooLarge                         // body over the limit
	ContextLength                    // the prompt does not fit; Tokens and Limit are set
	Overloaded                       // queue full or out of memory; RetryAfter may be set
	RateLimited                      // this client asks too much; RetryAfter may be set
	TimedOut                         // the request did not get on; RetryAfter may be set
)

// Error is the one error type at the edge. Msg is a sentence for the person who made the request.
type Error struct {
	Kind       ErrorKind
	Param      string // JSON path of the offending field: messages[2].content[0].type
	Code       string // machine-readable detail, protocol-free: "model_not_found"
	Msg        string
	Tokens     int    // ContextLength: tokens of the prompt
	MaxTokens  int    // ContextLength: output tokens asked for, 0 if none
	Limit      int    // ContextLength: tokens that fit
	Advice     string // ContextLength: a sentence to add to the words that clients know
	RetryAfter time.Duration
	Bound      Bound // that the request met; "" none
	Err        error // cause, for logs
}

func (e *Error) Error() string {
	if e.Param != "" {
		return e.Param + ": " + e.Msg
	}
	return e.Msg
}

func (e *Error) Unwrap() error { return e.Err }

// CodeWrongKey is the Code of Unauthenticated errors about a key that is none of those accepted.
const CodeWrongKey = "invalid_api_key"

// ErrCut ends a reply by closing its connection without a word, as a broken network would. Scripts use it.
var ErrCut = errors.New("the connection is cut")

// Invalidf makes an Invalid error about the field at param.
func Invalidf(param, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Param: param, Msg: fmt.Sprintf(format, args...)}
}

// AsError returns err as an *Error, wrapping anything else as Internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Msg: "internal error: " + err.Error(), Err: err}
}

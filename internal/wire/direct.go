package wire

import (
	"net/http"

	"hearth/internal/chat"
)

// Direct answers r with a document that is no reply of a generator: the JSON that f gives, for so many tokens read, or its
// error. model is the name that the log has.
func Direct(w http.ResponseWriter, r *http.Request, fail ErrorWriter, f func() (body []byte, model string, tokens int, err error)) {
	info := InfoFrom(r.Context())
	body, model, tokens, err := f()
	info.Model = model
	switch {
	case err != nil && gone(r.Context()):
		info.Err = ErrClientGone
	case err != nil:
		fail(w, r, chat.AsError(err))
	default:
		info.Usage = &chat.Usage{Prompt: tokens}
		w.Header().Set("Content-Type", "application/json")
		Write(w, body)
	}
}

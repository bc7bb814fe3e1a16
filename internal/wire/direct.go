package wire

import (
	"net/http"

	"hearth/internal/chat"
)

// Direct answers r with a document that no generator makes, such as embeddings. f gives its JSON, the name of the model for the
// log and how many tokens were read, or an error.
func Direct(w http.ResponseWriter, r *http.Request, fail ErrorWriter, f func() (body []byte, model string, tokens int, err error)) {
	info := InfoFrom(r.Context())
	body, model, tokens, err := f()
	info.Model = model
	switch {
	case err != nil && gone(r.Context()):
		info.Err = ErrClientGone
	case err != nil:
		fail(w, r, asError(r.Context(), err))
	default:
		info.Usage = &chat.Usage{Prompt: tokens}
		w.Header().Set("Content-Type", "application/json")
		Write(w, body)
	}
}

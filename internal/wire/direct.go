package wire

import (
	"net/http"

	"hearth/internal/chat"
)

// Direct answers r with a document that no generator makes, such as embeddings. f gives its JSON, the name of the model for the
// log and what it took, or an error.
func Direct(w http.ResponseWriter, r *http.Request, fail ErrorWriter, f func() (body []byte, model string, usage *chat.Usage, err error)) {
	info := InfoFrom(r.Context())
	body, model, usage, err := f()
	info.Model = model
	switch {
	case err != nil && gone(r.Context()):
		info.Err = ErrClientGone
	case err != nil:
		fail(w, r, asError(r.Context(), err))
	default:
		info.Usage = usage
		w.Header().Set("Content-Type", "application/json")
		Write(w, body)
	}
}

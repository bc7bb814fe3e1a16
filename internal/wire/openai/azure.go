package openai

import (
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// azure is where Azure has this API. /openai/v1 and /openai/models are like its own paths; below
// /openai/deployments/NAME the name stands for the model. Any api-version is accepted, and none.
const azure = "/openai"

// deployment routes /openai/deployments/NAME/PATH. NAME may hold slashes, escaped or not.
func (h handler) deployment(w http.ResponseWriter, r *http.Request) {
	for path, f := range map[string]http.HandlerFunc{
		"/chat/completions": h.chat, "/completions": h.completions, "/embeddings": h.embeddings,
	} {
		name, ok := strings.CutSuffix(r.PathValue("rest"), path)
		if !ok || name == "" || path == "/completions" && strings.HasSuffix(name, "/chat") {
			continue
		}
		r = r.WithContext(chat.WithDeployment(r.Context(), name))
		wire.Method(h.WriteError, http.MethodPost, f).ServeHTTP(w, r)
		return
	}
	h.WriteError(w, r, &chat.Error{Kind: chat.NotFound, Code: "not_found",
		Msg: "there is nothing at " + r.Method + " " + r.URL.Path + "; deployments have /chat/completions, /completions and /embeddings"})
}

// Deployed is the model that a request means: the deployment that its path names, if it does, else what its body says.
func Deployed(r *http.Request, model string) string {
	if name, ok := chat.Deployment(r.Context()); ok {
		return name
	}
	return model
}

package openai

import (
	"net/http"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// embeddings refuses: the models that run here generate text.
func (h handler) embeddings(w http.ResponseWriter, r *http.Request) {
	body, err := wire.ReadBody(w, r, h.MaxBody)
	if err != nil {
		h.WriteError(w, r, err)
		return
	}
	d := &decoder{}
	req := chat.Request{}
	if d.Want(body, wire.Object) {
		req.Model = d.OptString(body.Get("model"))
	}
	if err := d.Err(); err != nil {
		h.WriteError(w, r, err)
		return
	}
	setDeployment(r, &req)
	h.WriteError(w, r, &chat.Error{Kind: chat.Invalid, Param: "model", Code: "embeddings_not_supported",
		Msg: "embeddings need an embedding model (an encoder such as BERT or XLM-RoBERTa, or a decoder made into one), and this version runs none; " +
			wire.Quote(req.Model) + " generates text"})
}

package wire

import (
	"cmp"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"hearth/internal/chat"
)

// modelObject is one served model in a shape that the clients of every protocol accept: the fields of Anthropic's
// ModelInfo and OpenAI's Model together, plus the names under which other servers publish the context length, the parser
// and what the model reads.
type modelObject struct {
	ID            string `json:"id"`
	Type          string `json:"type"`   // Anthropic
	Object        string `json:"object"` // OpenAI
	DisplayName   string `json:"display_name"`
	CreatedAt     string `json:"created_at"`
	Created       int64  `json:"created"`
	OwnedBy       string `json:"owned_by"`
	Lifecycle     string `json:"lifecycle"`
	MaxInput      int    `json:"max_input_tokens,omitempty"` // the context, like the three below, while it is known
	MaxTokens     int    `json:"max_tokens,omitempty"`
	ContextLength int    `json:"context_length,omitempty"`
	ContextWindow int    `json:"context_window,omitempty"`
	MaxModelLen   int    `json:"max_model_len,omitempty"`
	Modality      string `json:"modality"`
	Quant         string `json:"quantization,omitempty"`
	Parser        string `json:"tool_call_parser,omitempty"`
	Reasoning     string `json:"reasoning_parser,omitempty"` // of models that can think
	Description   string `json:"description,omitempty"`
	Kind          string `json:"kind"`            // chat, completion (a base model), embedding or rerank
	State         string `json:"state,omitempty"` // loaded, loading or on_disk
	// Capabilities are what the model does; of one on disk what its folder tells.
	Capabilities []string `json:"capabilities,omitempty"`
}

type modelList struct {
	Object  string        `json:"object"`
	Data    []modelObject `json:"data"`
	HasMore bool          `json:"has_more"`
	FirstID *string       `json:"first_id"`
	LastID  *string       `json:"last_id"`
}

func newModelObject(m chat.Model) modelObject {
	created := m.Created.UTC()
	if created.Before(time.Unix(0, 0)) {
		created = time.Unix(0, 0).UTC()
	}
	o := modelObject{
		ID: m.ID, Type: "model", Object: "model", DisplayName: m.ID, OwnedBy: "hearth", Lifecycle: "active",
		CreatedAt: created.Format(time.RFC3339), Created: created.Unix(),
		MaxInput: m.Context, MaxTokens: m.Output, ContextLength: m.Context, ContextWindow: m.Context, MaxModelLen: m.Context,
		Modality: modality(m), Quant: m.Quant, Parser: m.Parser, Description: m.Description, Kind: cmp.Or(string(m.Kind), "chat"),
	}
	if m.Thinking {
		o.Reasoning = m.Parser
	}
	if o.State = string(m.State); o.State != "" {
		o.Capabilities = capabilities(m)
	}
	return o
}

// modality is what a model takes in.
func modality(m chat.Model) string {
	if m.Sees {
		return "text+image"
	}
	return "text"
}

// capabilities are what a model does, in Ollama's words.
func capabilities(m chat.Model) []string {
	switch m.Kind {
	case chat.Embeds:
		return []string{"embedding"}
	case chat.Ranks:
		return []string{"rerank"}
	case chat.Completes:
		return []string{"completion"}
	}
	all := []string{"completion", "chat"}
	if m.Tools {
		all = append(all, "tools")
	}
	if m.Sees {
		all = append(all, "vision")
	}
	if m.Thinking {
		all = append(all, "thinking")
	}
	return all
}

// MountModels registers GET /v1/models and /v1/models/{id} below base. At the root all protocols have them on the same paths, so
// the server mounts them there, with a fail that picks the caller's shape.
func MountModels(mux Mux, base string, o Options, fail ErrorWriter) {
	Handle(mux, base, "/models", Method(fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		list, err := page(objects(o.Models.List(r.Context()), showsClaudeNames(r)), r)
		if err != nil {
			fail(w, r, err)
			return
		}
		WriteJSON(w, http.StatusOK, list)
	}))
	// Ids of models contain slashes, which some clients escape and some do not.
	Handle(mux, base, "/models/{id...}", Method(fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		all := objects(o.Models.List(r.Context()), true)
		if i := index(all, id); i >= 0 {
			WriteJSON(w, http.StatusOK, all[i])
			return
		}
		m, err := find(r, o.Models, id)
		if err != nil {
			fail(w, r, chat.AsError(err))
			return
		}
		WriteJSON(w, http.StatusOK, newModelObject(m))
	}))
}

// showsClaudeNames reports whether the list has the models' names with claude as well. Claude Code shows its user these alone.
// What an SDK asks for is no menu but a program's, like what other APIs' clients ask for: it would meet every model twice.
func showsClaudeNames(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" && r.Header.Get("X-Stainless-Lang") == ""
}

// objects are the models as clients see them, followed by their names with claude if these are wanted.
func objects(models []chat.Model, claude bool) []modelObject {
	all := make([]modelObject, 0, 2*len(models))
	for _, m := range models {
		all = append(all, newModelObject(m))
	}
	if !claude {
		return all
	}
	for i, m := range models {
		if name := m.ClaudeName(); name != "" && index(all, name) < 0 {
			o := all[i]
			o.ID = name // the display name stays the id, and is what a user sees
			all = append(all, o)
		}
	}
	return all
}

// find looks paths up in the list and other names where generation would.
func find(r *http.Request, models chat.Models, id string) (chat.Model, error) {
	for _, m := range models.List(r.Context()) {
		if m.Path != "" && (m.Path == id || filepath.Base(m.Path) == id) {
			return m, nil
		}
	}
	gen, err := models.Open(r.Context(), id)
	if err != nil {
		return chat.Model{}, err
	}
	return gen.Model(), nil
}

func index(models []modelObject, id string) int {
	return slices.IndexFunc(models, func(m modelObject) bool { return m.ID == id })
}

// page applies Anthropic's limit, after_id and before_id; without them the list is whole, as OpenAI has it.
func page(models []modelObject, r *http.Request) (*modelList, *chat.Error) {
	q := r.URL.Query()
	from, to := 0, len(models)
	if id := q.Get("after_id"); id != "" {
		from = len(models) // nothing follows what is not there
		if i := index(models, id); i >= 0 {
			from = i + 1
		}
	}
	if id := q.Get("before_id"); id != "" {
		to = max(index(models, id), 0)
	}
	to = max(from, to)
	more := false
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 1000 {
			return nil, chat.Invalidf("limit", "must be a number between 1 and 1000, got %s", Quote(s))
		}
		if to-from > n {
			more = true
			if q.Has("before_id") {
				from = to - n
			} else {
				to = from + n
			}
		}
	}
	list := &modelList{Object: "list", Data: models[from:to], HasMore: more}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return list, nil
}

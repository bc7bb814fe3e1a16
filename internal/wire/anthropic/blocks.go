package anthropic

import (
	"cmp"
	"encoding/base64"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// user appends one user message of the wire as messages of ours: every tool_result block becomes a message of role
// tool, the blocks between them user messages, all in their order.
func (d *decoder) user(r *request, content wire.Value) {
	if content.Kind() == wire.String {
		r.Messages = append(r.Messages, chat.Message{Role: chat.User, Parts: wire.TextParts(d.String(content))})
		return
	}
	if !d.Want(content, wire.Array) {
		return
	}
	var parts wire.Parts
	flush := func() {
		if all := parts.All(); len(all) > 0 {
			r.Messages = append(r.Messages, chat.Message{Role: chat.User, Parts: all})
		}
		parts = wire.Parts{}
	}
	before := len(r.Messages)
	for _, b := range d.Parts(content) {
		if !d.Want(b, wire.Object) {
			return
		}
		if d.String(b.Get("type")) != "tool_result" {
			d.input(&parts, b)
			continue
		}
		flush()
		result := d.toolResult(b)
		r.Messages = append(r.Messages, chat.Message{Role: chat.ToolRole, Parts: []chat.Part{{Kind: chat.PartToolResult, Result: result}}})
	}
	flush()
	if len(r.Messages) == before { // nothing in it, but still a turn
		r.Messages = append(r.Messages, chat.Message{Role: chat.User})
	}
}

// input adds a block that carries content for the model to read.
func (d *decoder) input(parts *wire.Parts, b wire.Value) {
	switch kind := d.String(b.Get("type")); kind {
	case "text":
		parts.Text(d.String(b.Get("text")))
	case "image":
		d.image(parts, b.Get("source"))
	case "document":
		d.document(parts, b)
	case "search_result":
		d.searchResult(parts, b)
	case "tool_reference":
		d.toolReference(parts, b)
	case "container_upload", "browser_state": // state of Anthropic's own servers
	default:
		d.Fail(b.Get("type"), "unknown block type %s in a user message", wire.Quote(kind))
	}
}

// image reads an image: whether the model sees, and what becomes of the image if not, is decided where the model is known, and
// so is whether a URL is followed. In the result of a tool the source may be any: no person chose to send that,
// and it stays in the conversation for good.
func (d *decoder) image(parts *wire.Parts, source wire.Value) {
	if !d.Want(source, wire.Object) {
		return
	}
	m := &chat.Media{Kind: chat.Image}
	switch kind := d.String(source.Get("type")); {
	case kind == "base64":
		media := d.OptString(source.Get("media_type"))
		if m.Type = wire.MediaType(media); media != "" && !strings.HasPrefix(m.Type, "image/") && !d.inResult {
			d.Fail(source.Get("media_type"), "%s is no type of images: must be image/jpeg, image/png, image/gif or image/webp", wire.Quote(media))
		}
		d.Base64(m, source.Get("data")) // what the data is, its own first bytes say
		m.Path, m.Refusal = source.Path(), "this model cannot see images"
	case kind == "url", kind == "file", d.inResult:
		d.elsewhere(m, source, kind)
		m.Path, m.Refusal = source.Get("type").Path(), "image source "+wire.Quote(kind)+" is not supported: send the image as base64"
	default:
		d.Fail(source.Get("type"), "unknown image source %s: must be base64, url or file", wire.Quote(kind))
	}
	parts.Add(chat.Part{Kind: chat.PartMedia, Media: m})
}

// elsewhere reads where the bytes of a file are that did not come with the request.
func (d *decoder) elsewhere(m *chat.Media, source wire.Value, kind string) {
	switch {
	case kind == "url" && d.inResult:
		d.OptString(source.Get("url"))
		wire.LinkOrData(m, source.Get("url"))
	case kind == "url":
		d.URL(m, source.Get("url"))
	case kind == "file" && d.inResult:
		wire.Stored(m, d.OptString(source.Get("file_id")))
	case kind == "file":
		wire.Stored(m, d.String(source.Get("file_id")))
	}
}

// document renders what is text. Of other documents it reads what is known, as image does.
func (d *decoder) document(parts *wire.Parts, b wire.Value) {
	title := d.OptString(b.Get("title"))
	source := b.Get("source")
	if !d.Want(source, wire.Object) {
		return
	}
	heading := "[Document " + cmp.Or(title, "untitled") + "]"
	kind := d.String(source.Get("type"))
	switch kind {
	case "text":
		parts.Text(heading)
		parts.Text(d.String(source.Get("data")))
		return
	case "content":
		parts.Text(heading)
		if c := source.Get("content"); c.Kind() == wire.String {
			parts.Text(d.String(c))
		} else {
			d.inside(parts, c)
		}
		return
	}
	at, media := source.Get("type"), d.OptString(source.Get("media_type"))
	m := &chat.Media{Kind: chat.Document, Name: wire.MediaName(title), Type: wire.MediaType(media)}
	what := cmp.Or(media, kind)
	if media != "" {
		at = source.Get("media_type")
	}
	m.Path, m.Refusal = at.Path(), "documents of "+wire.Quote(what)+" are not supported: send the text, as a source of type text"
	switch {
	case kind == "base64" && (media == "" || m.Type == "application/pdf" || d.inResult):
		d.Base64(m, source.Get("data"))
	case kind == "url", kind == "file", d.inResult:
		d.elsewhere(m, source, kind)
	default:
		d.Fail(at, "%s", m.Refusal)
	}
	parts.Add(chat.Part{Kind: chat.PartMedia, Media: m})
}

func (d *decoder) searchResult(parts *wire.Parts, b wire.Value) {
	parts.Text("[Search result " + d.OptString(b.Get("title")) + " " + d.OptString(b.Get("source")) + "]")
	d.inside(parts, b.Get("content"))
}

// maxDepth bounds how deep documents and search results are inside each other: each level reads what is below it again.
const maxDepth = 4

// inside adds the blocks of a document or search result.
func (d *decoder) inside(parts *wire.Parts, content wire.Value) {
	if d.depth++; d.depth > maxDepth {
		d.Exceeds(chat.BoundDepth, content, "documents and search results nest deeper than %d levels", maxDepth)
	}
	for _, e := range d.Parts(content) {
		d.input(parts, e)
	}
	d.depth--
}

// maxReferences bounds the bytes of what toolReference prints: a few bytes that refer to a tool print all of its schema.
const maxReferences = 8 << 20

// toolReference renders the schema of a deferred tool where a tool search loaded it, so that the tools in front of the
// conversation, and with them the cached prefix, stay as they were.
func (d *decoder) toolReference(parts *wire.Parts, b wire.Value) {
	name := d.String(b.Get("tool_name"))
	t := d.byName[name]
	if t == nil || !t.Deferred {
		parts.Text("Tool " + name + " is available.")
		return
	}
	if d.references += len(t.Name) + len(t.Description) + len(t.Parameters); d.references > maxReferences {
		d.Exceeds(chat.BoundReferences, b, "the tools that tool_reference blocks refer to have too many bytes together: at most %d in one request", maxReferences)
		return
	}
	parts.Text(string(wire.Marshal(struct {
		Type     string `json:"type"`
		Function any    `json:"function"`
	}{"function", struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  any    `json:"parameters"`
	}{t.Name, t.Description, t.Parameters}})))
}

func (d *decoder) toolResult(b wire.Value) *chat.ToolResult {
	d.Call(b)
	res := &chat.ToolResult{CallID: d.String(b.Get("tool_use_id")), IsError: d.Bool(b.Get("is_error"))}
	d.inResult = true
	if content := b.Get("content"); !content.Absent() {
		res.Parts = d.blocks(content, chat.ToolRole)
	}
	d.inResult = false
	return res
}

// blocks reads content that is a text, or blocks: those of a role's turn, or of a tool's result.
func (d *decoder) blocks(content wire.Value, role chat.Role) []chat.Part {
	if content.Kind() == wire.String {
		return wire.TextParts(d.String(content))
	}
	if !d.Want(content, wire.Array) {
		return nil
	}
	var parts wire.Parts
	for _, b := range d.Parts(content) {
		if !d.Want(b, wire.Object) {
			break
		}
		switch role {
		case chat.Assistant:
			d.assistant(&parts, b)
		case chat.System:
			d.systemTurn(&parts, b)
		default:
			d.input(&parts, b)
		}
	}
	return parts.All()
}

// assistant reads a block of the model's own earlier turns, or of a prefill as the last message.
func (d *decoder) assistant(parts *wire.Parts, b wire.Value) {
	switch kind := d.String(b.Get("type")); kind {
	case "text":
		parts.Text(d.String(b.Get("text")))
	case "thinking":
		text, signature := d.OptString(b.Get("thinking")), d.OptString(b.Get("signature"))
		if text == "" {
			text = openSignature(signature)
		}
		if text != "" {
			parts.Add(chat.Part{Kind: chat.PartReasoning, Text: text})
		}
	case "tool_use":
		d.Call(b)
		parts.Add(chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{
			ID: d.String(b.Get("id")), Name: d.String(b.Get("name")), Arguments: d.Compact(b.Get("input")),
		}})
	case "mcp_tool_use":
		d.Call(b)
		t := chat.MCPTool{Server: d.OptString(b.Get("server_name")), Name: d.String(b.Get("name"))}
		parts.Add(chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{
			ID: d.String(b.Get("id")), Name: t.FullName(), Arguments: d.Compact(b.Get("input")), MCP: &t,
		}})
	case "mcp_tool_result":
		parts.Add(chat.Part{Kind: chat.PartToolResult, Result: d.toolResult(b)})
	case "image", "document", "search_result":
		d.input(parts, b)
	default:
		if !serverBlock(kind) {
			d.Fail(b.Get("type"), "unknown block type %s in an assistant message", wire.Quote(kind))
		}
	}
}

// serverBlock reports blocks that only Anthropic's servers make or read; a conversation begun there may hold some.
func serverBlock(kind string) bool {
	switch kind {
	case "redacted_thinking", "server_tool_use", "container_upload", "compaction", "fallback":
		return true
	}
	return strings.HasSuffix(kind, "_tool_result")
}

// systemTurn reads a block of a message of role system between the turns, which stays where it is.
func (d *decoder) systemTurn(parts *wire.Parts, b wire.Value) {
	switch kind := d.String(b.Get("type")); kind {
	case "text":
		parts.Text(d.String(b.Get("text")))
	case "tool_addition", "tool_removal": // tools holds the current set
	default:
		d.Fail(b.Get("type"), "unknown block type %s in a system message", wire.Quote(kind))
	}
}

// signaturePrefix starts the signatures we give thinking blocks. Nothing is signed: the rest is empty, or the thinking
// itself in base64 where the client asked not to see it, so that the next turn's prompt can repeat it.
const signaturePrefix = "hearth1."

func sealSignature(thinking string) string {
	return signaturePrefix + base64.RawStdEncoding.EncodeToString([]byte(thinking))
}

// openSignature returns the thinking inside a signature of ours, "" for any other.
func openSignature(sig string) string {
	enc, ok := strings.CutPrefix(sig, signaturePrefix)
	if !ok {
		return ""
	}
	text, err := base64.RawStdEncoding.DecodeString(enc)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

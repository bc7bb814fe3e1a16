package anthropic

import (
	"encoding/base64"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// user appends one user message of the wire as messages of ours: every tool_result block becomes a message of role
// tool, the blocks between them user messages, all in their order.
func (d *decoder) user(r *request, content wire.Value) {
	if content.Kind() == wire.String {
		r.Messages = append(r.Messages, chat.Message{Role: chat.User, Parts: wire.AppendText(nil, d.String(content))})
		return
	}
	if !d.Want(content, wire.Array) {
		return
	}
	var parts []chat.Part
	flush := func() {
		if len(parts) > 0 {
			r.Messages = append(r.Messages, chat.Message{Role: chat.User, Parts: parts})
			parts = nil
		}
	}
	before := len(r.Messages)
	for _, b := range d.Items(content) {
		if !d.Want(b, wire.Object) {
			return
		}
		if d.String(b.Get("type")) != "tool_result" {
			parts = d.input(parts, b)
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

// input appends a block that carries content for the model to read.
func (d *decoder) input(parts []chat.Part, b wire.Value) []chat.Part {
	switch kind := d.String(b.Get("type")); kind {
	case "text":
		return wire.AppendText(parts, d.String(b.Get("text")))
	case "image":
		return d.image(parts, b.Get("source"))
	case "document":
		return d.document(parts, b)
	case "search_result":
		return d.searchResult(parts, b)
	case "tool_reference":
		return d.toolReference(parts, b)
	case "container_upload", "browser_state":
		return parts // state of Anthropic's own servers
	default:
		d.Fail(b.Get("type"), "unknown block type %s in a user message", wire.Quote(kind))
		return parts
	}
}

func (d *decoder) image(parts []chat.Part, source wire.Value) []chat.Part {
	if !d.Want(source, wire.Object) {
		return parts
	}
	switch kind := d.String(source.Get("type")); {
	case kind == "base64":
	case d.inResult:
		return wire.AppendText(parts, "[Image: this server cannot fetch it]")
	default:
		d.Fail(source.Get("type"), "image source %s is not supported: send the image as base64", wire.Quote(kind))
		return parts
	}
	d.OptString(source.Get("media_type")) // what the data is, its own first bytes say
	data, err := wire.Base64(d.String(source.Get("data")))
	if err != nil {
		d.Fail(source.Get("data"), "is not valid base64: %v", err)
		return parts
	}
	return append(parts, chat.Part{Kind: chat.PartImage, Image: data, Path: source.Path()})
}

// document renders what is text. Other documents (PDF, URLs, stored files) are refused, except in the result of a tool:
// no person chose to send that, and it stays in the conversation for good, so the model learns that it was there.
func (d *decoder) document(parts []chat.Part, b wire.Value) []chat.Part {
	title := d.OptString(b.Get("title"))
	if title == "" {
		title = "untitled"
	}
	source := b.Get("source")
	if !d.Want(source, wire.Object) {
		return parts
	}
	var body []chat.Part
	switch kind := d.String(source.Get("type")); kind {
	case "text":
		body = wire.AppendText(nil, d.String(source.Get("data")))
	case "content":
		if c := source.Get("content"); c.Kind() == wire.String {
			body = wire.AppendText(nil, d.String(c))
		} else {
			for _, e := range d.Items(c) {
				body = d.input(body, e)
			}
		}
	default:
		at := source.Get("type")
		if media := d.OptString(source.Get("media_type")); media != "" {
			kind, at = media, source.Get("media_type")
		}
		if d.inResult {
			return wire.AppendText(parts, "[Document "+title+": this server cannot read "+kind+"]")
		}
		d.Fail(at, "documents of %s are not supported: send the text, as a source of type text", wire.Quote(kind))
		return parts
	}
	parts = wire.AppendText(parts, "[Document "+title+"]")
	return appendParts(parts, body)
}

func (d *decoder) searchResult(parts []chat.Part, b wire.Value) []chat.Part {
	parts = wire.AppendText(parts, "[Search result "+d.OptString(b.Get("title"))+" "+d.OptString(b.Get("source"))+"]")
	for _, e := range d.Items(b.Get("content")) {
		parts = d.input(parts, e)
	}
	return parts
}

// toolReference renders the schema of a deferred tool where a tool search loaded it, so that the tools in front of the
// conversation, and with them the cached prefix, stay as they were.
func (d *decoder) toolReference(parts []chat.Part, b wire.Value) []chat.Part {
	name := d.String(b.Get("tool_name"))
	t := d.byName[name]
	if t == nil || !t.Deferred {
		return wire.AppendText(parts, "Tool "+name+" is available.")
	}
	return wire.AppendText(parts, string(wire.Marshal(struct {
		Type     string `json:"type"`
		Function any    `json:"function"`
	}{"function", struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  any    `json:"parameters"`
	}{t.Name, t.Description, t.Parameters}})))
}

func appendParts(parts, more []chat.Part) []chat.Part {
	for _, p := range more {
		if p.Kind == chat.PartText {
			parts = wire.AppendText(parts, p.Text)
		} else {
			parts = append(parts, p)
		}
	}
	return parts
}

func (d *decoder) toolResult(b wire.Value) *chat.ToolResult {
	res := &chat.ToolResult{CallID: d.String(b.Get("tool_use_id")), IsError: d.Bool(b.Get("is_error"))}
	content := b.Get("content")
	if content.Kind() == wire.String {
		res.Parts = wire.AppendText(nil, d.String(content))
		return res
	}
	d.inResult = true
	for _, e := range d.Items(content) {
		if !d.Want(e, wire.Object) {
			break
		}
		res.Parts = d.input(res.Parts, e)
	}
	d.inResult = false
	return res
}

// assistant reads the model's own earlier turns, and a prefill as the last message.
func (d *decoder) assistant(content wire.Value) []chat.Part {
	if content.Kind() == wire.String {
		return wire.AppendText(nil, d.String(content))
	}
	if !d.Want(content, wire.Array) {
		return nil
	}
	var parts []chat.Part
	for _, b := range d.Items(content) {
		if !d.Want(b, wire.Object) {
			break
		}
		switch kind := d.String(b.Get("type")); kind {
		case "text":
			parts = wire.AppendText(parts, d.String(b.Get("text")))
		case "thinking":
			text, signature := d.OptString(b.Get("thinking")), d.OptString(b.Get("signature"))
			if text == "" {
				text = openSignature(signature)
			}
			if text != "" {
				parts = append(parts, chat.Part{Kind: chat.PartReasoning, Text: text})
			}
		case "tool_use":
			parts = append(parts, chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{
				ID: d.String(b.Get("id")), Name: d.String(b.Get("name")), Arguments: d.Compact(b.Get("input")),
			}})
		case "image", "document", "search_result":
			parts = d.input(parts, b)
		default:
			if !serverBlock(kind) {
				d.Fail(b.Get("type"), "unknown block type %s in an assistant message", wire.Quote(kind))
			}
		}
	}
	return parts
}

// serverBlock reports blocks that only Anthropic's servers make or read; a conversation begun there may hold some.
func serverBlock(kind string) bool {
	switch kind {
	case "redacted_thinking", "server_tool_use", "mcp_tool_use", "container_upload", "compaction", "fallback":
		return true
	}
	return strings.HasSuffix(kind, "_tool_result")
}

// systemTurn reads a message of role system between the turns. It stays where it is.
func (d *decoder) systemTurn(content wire.Value) []chat.Part {
	if content.Kind() == wire.String {
		return wire.AppendText(nil, d.String(content))
	}
	if !d.Want(content, wire.Array) {
		return nil
	}
	var parts []chat.Part
	for _, b := range d.Items(content) {
		if !d.Want(b, wire.Object) {
			break
		}
		switch kind := d.String(b.Get("type")); kind {
		case "text":
			parts = wire.AppendText(parts, d.String(b.Get("text")))
		case "tool_addition", "tool_removal": // tools holds the current set
		default:
			d.Fail(b.Get("type"), "unknown block type %s in a system message", wire.Quote(kind))
		}
	}
	return parts
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

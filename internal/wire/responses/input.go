package responses

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

// input reads the conversation: a text of the user's, or items. What the model said stands in several items, which are one turn.
func (d *decoder) input(v wire.Value) {
	d.goesOn = d.r.previous != ""
	switch v.Kind() {
	case wire.String:
		d.r.Messages = append(d.r.Messages, chat.Message{Role: chat.User, Parts: wire.TextParts(d.String(v))})
		if d.keepsItems() {
			d.keepText(v)
		}
	case wire.Array:
		for _, item := range d.Messages(v) {
			if !d.Want(item, wire.Object) {
				return
			}
			if d.r.compacts {
				d.Fail(item, "nothing may follow a %s", compactionTrigger)
				return
			}
			d.item(item)
			if d.keepsItems() {
				d.keepItem(item)
			}
			d.r.compacts = d.OptString(item.Get("type")) == compactionTrigger
		}
		d.endTurn()
	case wire.Missing, wire.Null:
		if d.r.previous != "" || d.r.conversation != "" || d.r.warm { // there is a prompt, or none is needed yet
			break
		}
		d.Fail(v, "is required and must be a string or an array of items")
	default:
		d.Fail(v, "expected a string or an array of items, got %s", v.Kind())
	}
	d.sumUp()
	if len(d.r.Messages) == 0 && !d.r.warm {
		d.Fail(v, "must hold at least one message")
	}
}

// skipped are items of tools that only run elsewhere, and marks that mean nothing here.
var skipped = []string{compactionTrigger, "configuration_update"}

func (d *decoder) item(item wire.Value) {
	kind := d.OptString(item.Get("type"))
	switch kind {
	case "", "message":
		d.message(item)
	case "reasoning":
		if text := d.thought(item); text != "" {
			d.assistant().Add(chat.Part{Kind: chat.PartReasoning, Text: text})
		}
	case "function_call":
		d.call(item, joined(d.OptString(item.Get("namespace")), d.String(item.Get("name"))), d.Arguments(item.Get("arguments")))
	case "custom_tool_call":
		d.call(item, d.String(item.Get("name")), openai.TextArgument(openai.CustomInput, d.OptString(item.Get("input"))))
	case "tool_search_call":
		d.call(item, searchName, d.Compact(item.Get("arguments")))
	case "mcp_call":
		d.mcpCall(item)
	case "function_call_output", "custom_tool_call_output":
		d.result(item, d.Content(item.Get("output"), true))
	case "tool_search_output":
		d.found(item)
	case "additional_tools":
		for _, t := range d.Tools(item.Get("tools")) {
			if d.Want(t, wire.Object) {
				d.declareOne("", t, false)
			}
		}
	case "item_reference":
		d.reference(item.Get("id"))
	case "compaction", "compaction_summary", "context_compaction": // the last two are Codex's
		d.compaction(item)
	default:
		if !slices.Contains(skipped, kind) && !strings.HasSuffix(kind, "_call") && !strings.HasSuffix(kind, "_output") && !strings.HasPrefix(kind, "mcp_") {
			d.Fail(item.Get("type"), "unknown item %s: must be message, reasoning, function_call, function_call_output or one of their like", wire.Quote(kind))
		}
	}
}

// assistant is the model's turn under way.
func (d *decoder) assistant() *wire.Parts {
	if d.turn == nil {
		d.turn = &wire.Parts{}
	}
	return d.turn
}

// endTurn ends the model's turn under way.
func (d *decoder) endTurn() {
	if d.turn != nil {
		d.r.Messages = append(d.r.Messages, chat.Message{Role: chat.Assistant, Parts: d.turn.All()})
		d.turn = nil
	}
}

func (d *decoder) message(item wire.Value) {
	content := item.Get("content")
	msg := chat.Message{}
	switch role := d.String(item.Get("role")); role {
	case "assistant":
		for _, p := range d.Content(content, true) {
			d.assistant().Add(p)
		}
		d.assistant()
		return
	case "user":
		msg.Role, msg.Parts = chat.User, d.Content(content, true)
	case "system", "developer":
		msg.Role, msg.Parts = chat.System, d.Content(content, false)
	default:
		d.Fail(item.Get("role"), "unknown role %s: must be user, assistant, system or developer", wire.Quote(role))
	}
	d.endTurn()
	d.r.Messages = append(d.r.Messages, msg)
}

// call adds a call. Ids of items are not those of calls.
func (d *decoder) call(item wire.Value, name string, args json.RawMessage) {
	d.Call(item)
	id := d.OptString(item.Get("call_id"))
	if id == "" {
		id = d.OptString(item.Get("id"))
	}
	if d.called == nil {
		d.called = map[string]bool{}
	}
	d.called[plainID(id)] = true
	d.assistant().Add(chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id, Name: name, Arguments: args}})
}

func (d *decoder) result(item wire.Value, parts []chat.Part) {
	d.Call(item)
	d.endTurn()
	id := d.OptString(item.Get("call_id"))
	if d.goesOn && id != "" && !d.called[plainID(id)] {
		d.Fail(item.Get("call_id"), "the response that this goes on from has no call %s", wire.Quote(id))
	}
	d.r.Messages = append(d.r.Messages, chat.Message{Role: chat.ToolRole,
		Parts: []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: parts}}}})
}

// mcpCall adds a call that was run here, with its result.
func (d *decoder) mcpCall(item wire.Value) {
	d.Call(item)
	t := chat.MCPTool{Server: d.OptString(item.Get("server_label")), Name: d.String(item.Get("name"))}
	id := d.OptString(item.Get("id"))
	d.assistant().Add(chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id, Name: t.FullName(), Arguments: d.Arguments(item.Get("arguments")), MCP: &t}})
	d.endTurn()
	text, isError := d.OptString(item.Get("output")), false
	if v := item.Get("error"); !v.Absent() {
		isError = true
		if text = string(d.Copy(v)); v.Kind() == wire.String {
			text = d.String(v)
		}
	}
	d.r.Messages = append(d.r.Messages, chat.Message{Role: chat.ToolRole,
		Parts: []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: wire.TextParts(text), IsError: isError}}}})
}

// plainID is an id without what some clients leave out of it, such as underscores.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, id)
}

// found reads the tools that a search gave: the model sees them in the result, and can call them from then on.
func (d *decoder) found(item wire.Value) {
	tools := item.Get("tools")
	for _, t := range d.Tools(tools) {
		if d.Want(t, wire.Object) {
			d.declareOne("", t, true)
		}
	}
	text := "[]"
	if !tools.Absent() {
		text = string(d.Copy(tools))
	}
	d.result(item, wire.TextParts(text))
}

// thought is the text of a reasoning item: what stands in it, else what its encrypted content has if that is from here, else its
// summary.
func (d *decoder) thought(item wire.Value) string {
	if text := d.texts(item.Get("content")); text != "" {
		return text
	}
	if text, ok := decrypted(sealed, d.OptString(item.Get("encrypted_content"))); ok {
		return text
	}
	return d.texts(item.Get("summary"))
}

// texts joins the texts of parts.
func (d *decoder) texts(v wire.Value) string {
	var all []string
	for _, p := range d.Parts(v) {
		if d.Want(p, wire.Object) {
			all = append(all, d.OptString(p.Get("text")))
		}
	}
	return strings.Join(all, "\n\n")
}

// What the encrypted content that is made here begins with. It hides nothing, because who gets it could have had the reasoning,
// or has sent what is summed up. It only has to come back as it was.
const (
	sealed        = "hearth1."  // reasoning
	sealedSummary = "hearth1s." // the summary of a conversation
)

// encrypted is reasoning or a summary as the opaque text that clients send back; kind is one of the above.
func encrypted(kind, text string) string {
	return kind + base64.RawURLEncoding.EncodeToString([]byte(text))
}

// decrypted is what is in such a text; false if it was not made here, or is of another kind.
func decrypted(kind, s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, kind)
	b, err := base64.RawURLEncoding.DecodeString(rest)
	return string(b), ok && err == nil && utf8.Valid(b)
}

package openai

import (
	"encoding/json"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

func (d *decoder) messages(r *request, v wire.Value) {
	if !d.Want(v, wire.Array) {
		return
	}
	for _, m := range d.Messages(v) {
		if !d.Want(m, wire.Object) {
			return
		}
		r.Messages = append(r.Messages, d.message(m))
	}
	if len(r.Messages) == 0 {
		d.Fail(v, "must hold at least one message")
	}
}

func (d *decoder) message(m wire.Value) chat.Message {
	content := m.Get("content")
	msg := chat.Message{Name: d.OptString(m.Get("name"))}
	switch role := d.String(m.Get("role")); role {
	case "system", "developer":
		msg.Role, msg.Parts = chat.System, d.content(content, false)
	case "user":
		msg.Role, msg.Parts = chat.User, d.content(content, true)
	case "assistant":
		msg.Role, msg.Parts = chat.Assistant, d.assistant(m)
	case "tool":
		d.Call(m)
		msg.Role = chat.ToolRole
		msg.Parts = toolResult(d.OptString(m.Get("tool_call_id")), d.content(content, true))
	case "function": // before tools there was one call a turn and no id
		d.Call(m)
		msg.Role = chat.ToolRole
		msg.Parts = toolResult("", d.content(content, false))
	default:
		d.Fail(m.Get("role"), "unknown role %s: must be system, developer, user, assistant or tool", wire.Quote(role))
	}
	return msg
}

func toolResult(id string, parts []chat.Part) []chat.Part {
	return []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: parts}}}
}

func (d *decoder) content(v wire.Value, images bool) []chat.Part {
	var parts wire.Parts
	d.addContent(&parts, v, images)
	return parts.All()
}

// addContent reads a string, a list of parts, or null, which is no content.
func (d *decoder) addContent(parts *wire.Parts, v wire.Value, images bool) {
	if v.Absent() {
		return
	}
	if v.Kind() == wire.String {
		parts.Text(d.String(v))
		return
	}
	if v.Kind() != wire.Array {
		d.Fail(v, "expected a string or an array of parts, got %s", v.Kind())
		return
	}
	for _, p := range d.Parts(v) {
		if !d.Want(p, wire.Object) {
			return
		}
		switch kind := d.String(p.Get("type")); kind {
		case "text", "input_text", "output_text": // the Responses API has the longer names
			parts.Text(d.String(p.Get("text")))
		case "refusal":
			parts.Text(d.String(p.Get("refusal")))
		case "image_url":
			if !images {
				d.Fail(p.Get("type"), "images are allowed in user and tool messages only")
				return
			}
			d.image(parts, p.Get("image_url"))
		case "input_audio", "file", "video_url":
			d.Fail(p.Get("type"), "no model here takes %s parts: send text", kind)
		default:
			d.Fail(p.Get("type"), "unknown content part %s: must be text, image_url or refusal", wire.Quote(kind))
		}
	}
}

// image reads {"url": …}, or the bare URL some clients send. Only data URLs: the server fetches nothing.
func (d *decoder) image(parts *wire.Parts, v wire.Value) {
	if v.Kind() == wire.Object {
		v = v.Get("url")
	}
	url := d.String(v)
	if d.Err() != nil {
		return
	}
	if !strings.HasPrefix(url, "data:") {
		d.Fail(v, "image URLs are not fetched: send the image as data:image/…;base64,…")
		return
	}
	_, data, err := wire.DataURL(url)
	if err != nil {
		d.Fail(v, "is not a valid data URL: %v", err)
		return
	}
	parts.Add(chat.Part{Kind: chat.PartImage, Image: data, Path: v.Path()})
}

// assistant reads a turn of the model's own: its reasoning under any of the names clients send it back as, then the
// text, then the calls.
func (d *decoder) assistant(m wire.Value) []chat.Part {
	var parts wire.Parts
	for _, key := range []string{"reasoning_content", "reasoning"} {
		if v := m.Get(key); v.Kind() == wire.String {
			if text := d.String(v); text != "" {
				parts.Add(chat.Part{Kind: chat.PartReasoning, Text: text})
				break
			}
		}
	}
	d.addContent(&parts, m.Get("content"), false)
	parts.Text(d.OptString(m.Get("refusal")))
	for _, c := range d.Parts(m.Get("tool_calls")) {
		if !d.Want(c, wire.Object) {
			return nil
		}
		d.Call(c)
		if kind := d.OptString(c.Get("type")); kind == "custom" {
			parts.Add(d.customCall(c))
			continue
		}
		parts.Add(d.call(d.OptString(c.Get("id")), c.Get("function")))
	}
	if fn := m.Get("function_call"); !fn.Absent() {
		d.Call(fn)
		parts.Add(d.call("", fn))
	}
	return parts.All()
}

func (d *decoder) call(id string, fn wire.Value) chat.Part {
	if !d.Want(fn, wire.Object) {
		return chat.Part{}
	}
	call := &chat.ToolCall{ID: id, Name: d.String(fn.Get("name"))}
	args := fn.Get("arguments")
	if args.Kind() == wire.Object { // some clients send the object instead of its text
		call.Arguments = d.Compact(args)
	} else {
		call.Arguments = d.arguments(args)
	}
	return chat.Part{Kind: chat.PartToolCall, Call: call}
}

// customCall keeps a call of a custom tool, whose input is text, as one argument of that name.
func (d *decoder) customCall(c wire.Value) chat.Part {
	custom := c.Get("custom")
	if !d.Want(custom, wire.Object) {
		return chat.Part{}
	}
	return chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{
		ID: d.OptString(c.Get("id")), Name: d.String(custom.Get("name")),
		Arguments: textArgument(customInput, d.OptString(custom.Get("input"))),
	}}
}

// arguments reads the JSON text of a call's arguments. A model may have written something else in an earlier turn;
// clients send that back, and it must not end the conversation, so it is kept as one argument.
func (d *decoder) arguments(at wire.Value) json.RawMessage {
	text := d.OptString(at)
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	v, err := wire.Parse([]byte(text))
	if err != nil || v.Kind() != wire.Object {
		return textArgument("raw_arguments", text)
	}
	return d.Compact(v.At(at))
}

func textArgument(name, text string) json.RawMessage {
	return wire.Marshal(map[string]string{name: text})
}

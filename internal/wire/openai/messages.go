package openai

import (
	"encoding/json"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

func (d *Decoder) messages(r *request, v wire.Value) {
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

func (d *Decoder) message(m wire.Value) chat.Message {
	content := m.Get("content")
	msg := chat.Message{Name: d.OptString(m.Get("name"))}
	switch role := d.String(m.Get("role")); role {
	case "system", "developer":
		msg.Role, msg.Parts = chat.System, d.Content(content, false)
	case "user":
		msg.Role, msg.Parts = chat.User, d.Content(content, true)
	case "assistant":
		msg.Role, msg.Parts = chat.Assistant, d.assistant(m)
	case "tool":
		d.Call(m)
		msg.Role = chat.ToolRole
		msg.Parts = toolResult(d.OptString(m.Get("tool_call_id")), d.Content(content, true))
	case "function": // before tools there was one call a turn and no id
		d.Call(m)
		msg.Role = chat.ToolRole
		msg.Parts = toolResult("", d.Content(content, true))
	default:
		d.Fail(m.Get("role"), "unknown role %s: must be system, developer, user, assistant or tool", wire.Quote(role))
	}
	return msg
}

func toolResult(id string, parts []chat.Part) []chat.Part {
	return []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id, Parts: parts}}}
}

// Content reads a message's: a string, a list of parts, or null. Media counts where media may stand.
func (d *Decoder) Content(v wire.Value, media bool) []chat.Part {
	var parts wire.Parts
	d.addContent(&parts, v, media)
	return parts.All()
}

// addContent reads a string, a list of parts, or null, which is no content.
func (d *Decoder) addContent(parts *wire.Parts, v wire.Value, media bool) {
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
		default:
			m := d.Media(p, kind)
			if m == nil {
				d.Fail(p.Get("type"), "unknown content part %s: must be text, image_url, file, input_audio or refusal", wire.Quote(kind))
			} else if !media {
				d.Fail(p.Get("type"), "images and files are allowed in messages of users, assistants and tools only")
			}
			parts.Add(chat.Part{Kind: chat.PartMedia, Media: m})
		}
	}
}

// Media reads a part that is no text, nil if it is none of those: whether the model takes it in, what becomes of it if not, and
// whether a URL is followed is decided where the model is known.
func (d *Decoder) Media(p wire.Value, kind string) *chat.Media {
	m := &chat.Media{Path: p.Get("type").Path(), Refusal: "no model here takes " + kind + " parts: send text"}
	switch kind {
	case "image_url", "input_image": // the latter as in the Responses API
		m.Kind = chat.Image
		of := p.Get("image_url")
		v := urlOf(of)
		m.Detail = detail(p.Get("detail"), of)
		if id := p.Get("file_id"); v.Absent() && !id.Absent() {
			wire.Stored(m, d.String(id))
			m.Path, m.Refusal = id.Path(), "no files are stored here: send the image as data:image/…;base64,…"
			break
		}
		m.Path, m.Refusal = v.Path(), "image URLs are not fetched: send the image as data:image/…;base64,…"
		if d.link(m, v, "image/") {
			m.Refusal = "this model cannot see " + string(m.Kind) + "s"
		}
	case "video_url":
		m.Kind = chat.Video
		d.link(m, urlOf(p.Get("video_url")), "video/")
	case "audio_url":
		m.Kind = chat.Audio
		d.link(m, urlOf(p.Get("audio_url")), "audio/")
	case "input_audio":
		m.Kind = chat.Audio
		if a := p.Get("input_audio"); d.Want(a, wire.Object) {
			m.Type = wire.MediaType("audio/" + d.OptString(a.Get("format")))
			d.data(m, a.Get("data"))
		}
	case "file", "input_file":
		m.Kind = chat.Document
		f := p
		if kind == "file" {
			f = p.Get("file")
		}
		if !d.Want(f, wire.Object) {
			break
		}
		m.Name = wire.MediaName(d.OptString(f.Get("filename")))
		switch id, to := f.Get("file_id"), f.Get("file_url"); {
		case !f.Get("file_data").Absent() || id.Absent() && to.Absent():
			d.data(m, f.Get("file_data"))
		case !id.Absent():
			wire.Stored(m, d.String(id))
		default:
			d.link(m, to, "")
		}
	default:
		return nil
	}
	return m
}

// detail is how closely an image is to be looked at, which stands beside the URL or with it in an object. What is not known says
// nothing.
func detail(beside, of wire.Value) string {
	v := beside
	if of.Kind() == wire.Object {
		v = of.Get("detail")
	}
	var d wire.Decoder
	switch s := d.OptString(v); s {
	case "low", "high", "auto":
		return s
	case "original": // as Codex has it: no smaller than it is
		return "high"
	}
	return ""
}

// urlOf is the URL of a part, in an object or bare, as some clients send it.
func urlOf(v wire.Value) wire.Value {
	if v.Kind() == wire.Object {
		return v.Get("url")
	}
	return v
}

// link reads a URL: one that has the file itself, which is of a media type with the given beginning, or one that leads to it.
// It tells whether it is the former.
func (d *Decoder) link(m *chat.Media, v wire.Value, types string) (data bool) {
	t, data := d.URL(m, v)
	switch {
	case m.Kind == chat.Image && t == "application/pdf": // as gateways send them
		m.Kind, m.Base64 = chat.Document, nil
	case t != "" && !strings.HasPrefix(t, types):
		d.Fail(v, "is of type %s: must be %s…", t, types)
	}
	return data
}

// data reads the file itself, in base64 or in a data URL.
func (d *Decoder) data(m *chat.Media, v wire.Value) {
	if d.IsData(v) {
		d.DataURL(m, v)
		return
	}
	d.Base64(m, v)
}

// assistant reads a turn of the model's own: its reasoning under any of the names clients send it back as, then the
// text, then the calls.
func (d *Decoder) assistant(m wire.Value) []chat.Part {
	var parts wire.Parts
	thinking := m.Get("thinking")
	if thinking.Kind() == wire.Object { // as claude-code-router has it
		thinking = thinking.Get("content")
	}
	for _, v := range []wire.Value{m.Get("reasoning_content"), m.Get("reasoning"), thinking} {
		if v.Kind() == wire.String {
			if text := d.String(v); text != "" {
				parts.Add(chat.Part{Kind: chat.PartReasoning, Text: text})
				break
			}
		}
	}
	d.addContent(&parts, m.Get("content"), true)
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

func (d *Decoder) call(id string, fn wire.Value) chat.Part {
	if !d.Want(fn, wire.Object) {
		return chat.Part{}
	}
	call := &chat.ToolCall{ID: id, Name: d.String(fn.Get("name")), Arguments: d.Arguments(fn.Get("arguments"))}
	return chat.Part{Kind: chat.PartToolCall, Call: call}
}

// customCall keeps a call of a custom tool, whose input is text, as one argument of that name.
func (d *Decoder) customCall(c wire.Value) chat.Part {
	custom := c.Get("custom")
	if !d.Want(custom, wire.Object) {
		return chat.Part{}
	}
	return chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{
		ID: d.OptString(c.Get("id")), Name: d.String(custom.Get("name")),
		Arguments: TextArgument(CustomInput, d.OptString(custom.Get("input"))),
	}}
}

// Arguments reads a call's arguments: their JSON text, or the object itself, which some clients send. A model may have written
// something else in an earlier turn; clients send that back, and it must not end the conversation, so it is kept as one argument.
func (d *Decoder) Arguments(at wire.Value) json.RawMessage {
	if at.Kind() == wire.Object {
		return d.Compact(at)
	}
	text := d.OptString(at)
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	v, err := wire.Parse([]byte(text))
	if err != nil || v.Kind() != wire.Object {
		return TextArgument("raw_arguments", text)
	}
	return d.Compact(v.At(at))
}

// TextArgument is an object of one text.
func TextArgument(name, text string) json.RawMessage {
	return wire.Marshal(map[string]string{name: text})
}

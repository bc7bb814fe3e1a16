package openai

import (
	"slices"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// tools keeps functions and custom tools. Tools of other types (web_search, …) only work where OpenAI runs them; the model
// does not learn of them.
func (d *Decoder) tools(r *request, f wire.Value) {
	for _, t := range d.Tools(f.Get("tools")) {
		if !d.Want(t, wire.Object) {
			return
		}
		switch d.OptString(t.Get("type")) {
		case "", "function":
			d.function(r, t.Get("function"))
		case "custom":
			d.custom(r, t.Get("custom"))
		}
	}
	for _, old := range []string{"functions", "function_call"} {
		if v := f.Get(old); !v.Absent() {
			d.Fail(v, "functions and function_call are not supported: send tools and tool_choice")
		}
	}
}

func (d *Decoder) function(r *request, fn wire.Value) {
	if d.Want(fn, wire.Object) {
		d.AddTool(&r.Request, fn.Get("name"), d.Function(fn))
	}
}

// Function reads the fields of a function.
func (d *Decoder) Function(fn wire.Value) chat.Tool {
	parameters := fn.Get("parameters")
	return chat.Tool{
		Name: d.String(fn.Get("name")), Description: d.OptString(fn.Get("description")),
		Parameters: d.ObjectRaw(parameters), Strict: d.Bool(fn.Get("strict")), Path: parameters.Path(),
	}
}

// AddTool adds t, whose name stands at v, unless there is one of that name.
func (d *Decoder) AddTool(r *chat.Request, v wire.Value, t chat.Tool) {
	switch {
	case d.Err() != nil:
	case t.Name == "":
		d.Fail(v, "must not be empty")
	case d.byName[t.Name]:
		d.Fail(v, "there are two tools named %s", wire.Quote(t.Name))
	default:
		if d.byName == nil {
			d.byName = map[string]bool{}
		}
		d.byName[t.Name] = true
		r.Tools = append(r.Tools, t)
	}
}

// CustomInput is the one argument by which models call a custom tool.
const CustomInput = "input"

// customParameters is the schema of a function with that argument.
const customParameters = `{"type":"object","properties":{"` + CustomInput + `":{"type":"string"}},"required":["` + CustomInput + `"]}`

// custom adds a custom tool.
func (d *Decoder) custom(r *request, c wire.Value) {
	if !d.Want(c, wire.Object) {
		return
	}
	t := d.Custom(c)
	d.AddTool(&r.Request, c.Get("name"), t)
	if r.custom == nil {
		r.custom = map[string]bool{}
	}
	r.custom[t.Name] = true
}

// Custom makes a function of a tool whose input is text. A grammar for that text is put to the model in words too, and is strict.
func (d *Decoder) Custom(c wire.Value) chat.Tool {
	t := chat.Tool{Name: d.String(c.Get("name")), Description: d.OptString(c.Get("description")), Parameters: []byte(customParameters)}
	f := c.Get("format")
	if f.Absent() || !d.Want(f, wire.Object) {
		return t
	}
	switch kind := d.String(f.Get("type")); kind {
	case "text":
	case "grammar":
		g := f.Get("grammar")
		if g.Absent() { // the Responses API has its fields here
			g = f
		}
		if !d.Want(g, wire.Object) {
			return t
		}
		syntax, definition := d.String(g.Get("syntax")), g.Get("definition")
		t.Input, t.Strict = &chat.Form{Source: d.String(definition), Path: definition.Path()}, true
		switch syntax {
		case "lark":
			t.Input.Kind = chat.FormLark
		case "regex":
			t.Input.Kind = chat.FormRegex
		default:
			d.Fail(g.Get("syntax"), "unknown syntax %s: must be lark or regex", wire.Quote(syntax))
		}
		if t.Description != "" {
			t.Description += "\n"
		}
		t.Description += "The input must match this " + syntax + " grammar:\n" + t.Input.Source
	default:
		d.Fail(f.Get("type"), "unknown format %s: must be text or grammar", wire.Quote(kind))
	}
	return t
}

func (d *Decoder) toolChoice(r *request, v wire.Value) {
	if v.Absent() {
		return
	}
	if v.Kind() == wire.String {
		r.Choice.Kind = d.ChoiceMode(v, &r.Request)
		return
	}
	if !d.Want(v, wire.Object) {
		return
	}
	switch kind := d.String(v.Get("type")); kind {
	case "function", "custom":
		r.Choice.Kind, r.Choice.Name = chat.ChoiceNamed, d.named(r, v)
	case "allowed_tools":
		d.allowedTools(r, v.Get("allowed_tools"))
	default:
		d.Fail(v.Get("type"), "unknown tool_choice %s: must be function, custom or allowed_tools", wire.Quote(kind))
	}
}

// named reads the name in {"type": "function", "function": {"name": …}} and its like for custom tools.
func (d *Decoder) named(r *request, v wire.Value) string {
	kind := d.String(v.Get("type"))
	if kind != "function" && kind != "custom" {
		d.Fail(v.Get("type"), "unknown type of tool %s: must be function or custom", wire.Quote(kind))
		return ""
	}
	of := v.Get(kind)
	if !d.Want(of, wire.Object) {
		return ""
	}
	name := d.String(of.Get("name"))
	if !d.byName[name] || r.custom[name] != (kind == "custom") {
		d.Fail(of.Get("name"), "there is no %s tool named %s in tools", kind, wire.Quote(name))
	}
	return name
}

// ChoiceMode reads how far the model is free to call tools.
func (d *Decoder) ChoiceMode(v wire.Value, r *chat.Request) chat.ChoiceKind {
	switch mode := d.String(v); mode {
	case "auto":
	case "none":
		return chat.ChoiceNone
	case "required", "any":
		if len(r.Tools) == 0 {
			d.Fail(v, "%s needs at least one function in tools", mode)
		}
		return chat.ChoiceRequired
	default:
		d.Fail(v, "unknown tool_choice %s: must be none, auto, required or an object", wire.Quote(mode))
	}
	return chat.ChoiceAuto
}

// allowedTools narrows the tools to those listed.
func (d *Decoder) allowedTools(r *request, v wire.Value) {
	if !d.Want(v, wire.Object) {
		return
	}
	allowed := map[string]bool{}
	for _, t := range d.Tools(v.Get("tools")) {
		if !d.Want(t, wire.Object) {
			return
		}
		allowed[d.named(r, t)] = true
	}
	r.Tools = slices.DeleteFunc(r.Tools, func(t chat.Tool) bool { return !allowed[t.Name] })
	mode := v.Get("mode")
	if r.Choice.Kind = d.ChoiceMode(mode, &r.Request); r.Choice.Kind == chat.ChoiceNone {
		d.Fail(mode, "must be auto or required")
	}
}

package parser

import (
	"bytes"
	"strings"
)

// gemma4 is the format of Gemma 4: keys without quotes, strings in a quote mark of its own, which nothing escapes.
//
//	<|channel>thought⏎…<channel|> text <|tool_call>call:f{p:<|"|>v<|"|>,n:3}<tool_call|>
var gemma4 = tagFamily("gemma4", &syntax{
	open: "<|channel>", close: "<channel|>", label: "thought", reopen: true,
	openers: []opener{{tag: "<|tool_call>", call: newGemma(`<|"|>`)}},
	closers: []string{"<tool_call|>", "<|tool_response>"},
}, func(tool string) string { return "<|tool_call>call:" + suffixed(tool, "{") },
	func(e Evidence) bool { return e.mentions("<|tool_call>") || e.token("<|tool_call>", "<tool_call|>") },
	`<|"|>`)

// functionGemma is the same with other marks.
//
//	<start_function_call>call:f{p:<escape>v<escape>,n:3}<end_function_call>
var functionGemma = tagFamily("functiongemma", &syntax{
	openers: []opener{{tag: "<start_function_call>", call: newGemma("<escape>")}},
	closers: []string{"<end_function_call>", "<start_function_response>"},
}, func(tool string) string { return "<start_function_call>call:" + suffixed(tool, "{") },
	func(e Evidence) bool {
		return e.mentions("<start_function_call>") || e.token("<start_function_call>", "<end_function_call>")
	},
	"<escape>")

// gemma3 was never trained to call tools; it follows what prompts teach it, mostly Python in a fence or JSON.
//
//	```tool_code⏎f(p="v")⏎```
var gemma3 = tagFamily("gemma3", &syntax{
	openers: []opener{
		{tag: "```tool_code", call: func(ts *toolset) callReader { return &pyCall{ts: ts} }},
		{tag: "tool_code", lead: true, call: func(ts *toolset) callReader { return &pyCall{ts: ts} }},
		{tag: "```json", lead: true, call: newBareList}},
	closers: []string{"```"},
	bare:    bareCall,
}, func(tool string) string { return "```tool_code\n" + suffixed(tool, "(") },
	func(e Evidence) bool { return e.mentions("tool_code") })

// suffixed is tool with what follows a name, or nothing for any tool.
func suffixed(tool, after string) string {
	if tool == "" {
		return ""
	}
	return tool + after
}

// gemmaCall reads call:f{…}; it goes out when it is complete.
type gemmaCall struct {
	ts       *toolset
	quote    string
	buf      []byte
	open     int // bytes up to and with "{"
	depth    int
	inString bool
	from     int // bytes up to and with the mark that opened or closed the string last
	sent     bool
}

func newGemma(quote string) func(*toolset) callReader {
	return func(ts *toolset) callReader { return &gemmaCall{ts: ts, quote: quote} }
}

func (g *gemmaCall) started() bool { return g.sent }

func (g *gemmaCall) step(c byte, out *joiner) verdict {
	if len(g.buf) == 0 && isBlank(c) {
		return more
	}
	g.buf = append(g.buf, c)
	switch {
	case g.open == 0:
		if c == '{' {
			if !g.ts.has(g.tool()) {
				return refuted
			}
			g.open, g.depth, g.from = len(g.buf), 1, len(g.buf)
		} else if len(g.buf) > maxName {
			return refuted
		}
	case len(g.buf)-g.from >= len(g.quote) && bytes.HasSuffix(g.buf, []byte(g.quote)):
		g.inString, g.from = !g.inString, len(g.buf)
	case g.inString:
	case c == '{' || c == '[':
		g.depth++
	case c == '}' || c == ']':
		if g.depth--; g.depth == 0 {
			return g.end(out)
		}
	}
	return more
}

func (g *gemmaCall) tool() string {
	head := string(g.buf[:len(g.buf)-1])
	if g.open > 0 {
		head = string(g.buf[:g.open-1])
	}
	return strings.TrimSpace(strings.TrimPrefix(head, "call:"))
}

func (g *gemmaCall) end(out *joiner) verdict {
	tool := g.tool()
	p := gemmaParser{pyParser: pyParser{s: string(g.buf), pos: g.open - 1}, quote: g.quote}
	args, ok := p.object(0, func(key string) types { return g.ts.types(tool, key) })
	if !ok || !p.atEnd() {
		return refuted
	}
	g.sent = true
	out.add(ToolStart, tool)
	out.add(ToolArgs, args)
	out.add(ToolEnd, "")
	return ended
}

// gemmaParser reads the notation of arguments and gives them as JSON.
type gemmaParser struct {
	pyParser
	quote string
}

// object reads from "{" to "}". The types of its members are known on the outermost level only.
func (p *gemmaParser) object(depth int, of func(string) types) (string, bool) {
	if depth > maxJSONDepth || !p.take('{') {
		return "", false
	}
	out := []byte{'{'}
	for first := true; ; first = false {
		if p.take('}') {
			return string(append(out, '}')), true
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			out = append(out, ", "...)
		}
		key, ok := p.key()
		if !ok {
			return "", false
		}
		v, ok := p.value(depth+1, of(key))
		if !ok {
			return "", false
		}
		out = append(append(appendQuoted(out, key), ": "...), v...)
	}
}

// key reads a key with or without quotes, and the colon.
func (p *gemmaParser) key() (string, bool) {
	p.blanks()
	rest := p.s[p.pos:]
	if after, ok := strings.CutPrefix(rest, p.quote); ok {
		key, _, ok := strings.Cut(after, p.quote)
		p.pos += len(key) + 2*len(p.quote)
		return key, ok && p.take(':')
	}
	i := strings.IndexByte(rest, ':')
	if i <= 0 {
		return "", false
	}
	p.pos += i + 1
	return strings.Trim(strings.TrimSpace(rest[:i]), `"`), true
}

func (p *gemmaParser) value(depth int, ts types) (string, bool) {
	p.blanks()
	rest := p.s[p.pos:]
	if after, ok := strings.CutPrefix(rest, p.quote); ok {
		text, _, ok := strings.Cut(after, p.quote)
		p.pos += len(text) + 2*len(p.quote)
		quoted := string(appendQuoted(nil, text))
		return retyped(quoted, ts), ok
	}
	switch {
	case strings.HasPrefix(rest, "{"):
		return p.object(depth, func(string) types { return 0 })
	case strings.HasPrefix(rest, "["):
		return p.list(depth)
	}
	if strings.HasPrefix(rest, `"`) {
		return p.pyParser.value(depth)
	}
	n := strings.IndexAny(rest, ",]}")
	if n < 0 {
		return "", false
	}
	word := strings.TrimSpace(rest[:n])
	p.pos += n
	lit := pyParser{s: word}
	if v, ok := lit.value(0); ok && lit.atEnd() {
		return retyped(v, ts), true
	}
	return string(appendQuoted(nil, word)), true // a string without its marks
}

func (p *gemmaParser) list(depth int) (string, bool) {
	if depth > maxJSONDepth || !p.take('[') {
		return "", false
	}
	out := []byte{'['}
	for first := true; ; first = false {
		if p.take(']') {
			return string(append(out, ']')), true
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			out = append(out, ", "...)
		}
		v, ok := p.value(depth+1, 0)
		if !ok {
			return "", false
		}
		out = append(out, v...)
	}
}

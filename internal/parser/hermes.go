package parser

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// hermes is the format of Hermes, Qwen 2.5, Qwen 3 and everything trained like them:
//
//	<think>…</think> text <tool_call>{"name": "f", "arguments": {…}}</tool_call> …
//
// Also read, because models write it: arguments before the name, "parameters" for "arguments", arguments encoded as a
// string, a missing closing tag, raw control characters and bad escapes in strings, Python's True, False and None.
// Templates use the same tags around other forms (XML parameters, GLM's arg_key); those are families of their own.
var hermes = &Family{
	Name: "hermes", Open: thinkOpen, Close: thinkClose,
	Markers: []string{thinkOpen, thinkClose, callOpen, callClose},
	New: func(o Options) Parser {
		return newTagged(tags{open: thinkOpen, close: thinkClose, callOpen: callOpen, callClose: callClose, call: newJSONCall}, o)
	},
	Force: func(tool string) string {
		if tool == "" {
			return callOpen + "\n"
		}
		return callOpen + "\n{\"name\": " + strconv.Quote(tool) + ", \"arguments\": "
	},
	matches: func(e Evidence) bool {
		if e.mentions(callOpen) {
			return !e.mentions("<function=") && !e.mentions("<arg_key>")
		}
		return e.token(callOpen, callClose)
	},
}

const (
	callOpen  = "<tool_call>"
	callClose = "</tool_call>"
)

// jsonCall reads a call written as a JSON object with a name and arguments. Arguments go out as they come once the name
// is known.
type jsonCall struct {
	tools []string
	json  jsonScanner
	begun bool // the object has begun
	sent  bool // ToolStart went out

	key     string // the member being read, at the top level
	name    string
	named   bool
	value   strings.Builder // the member's text: of name, of arguments before the name, of arguments as a string
	args    string          // arguments that wait for the name
	hasArgs bool
	stream  bool // arguments go straight out
}

func newJSONCall(tools []string) callReader { return &jsonCall{tools: tools} }

func (j *jsonCall) started() bool { return j.sent }

func (j *jsonCall) step(c byte, out *joiner) verdict {
	if !j.begun {
		if isBlank(c) {
			return more
		}
		if c != '{' {
			return refuted
		}
		j.begun = true
	}
	text, ev := j.json.step(c)
	switch ev {
	case scanBad:
		return j.fail()
	case scanKey:
		j.key = j.json.lastKey
		j.value.Reset()
	}
	if ev != scanKey && j.key != "" && !j.member(text, c, ev, out) {
		return j.fail()
	}
	if ev == scanDone {
		return j.end(out)
	}
	return more
}

func (j *jsonCall) fail() verdict {
	if j.sent {
		return broken
	}
	return refuted
}

// member takes text of the value of a top-level member; ev scanValue marks its end.
func (j *jsonCall) member(text string, c byte, ev scanEvent, out *joiner) bool {
	isArgs := j.key == "arguments" || j.key == "parameters"
	if !isArgs && j.key != "name" {
		if ev == scanValue || ev == scanDone {
			j.key = ""
		}
		return true
	}
	if isArgs && j.hasArgs {
		return false // given twice
	}
	if j.value.Len() == 0 && !j.stream {
		text = strings.TrimLeft(text, ": \t\r\n")
		if isArgs && j.named && strings.HasPrefix(text, "{") {
			j.start(out)
			j.stream = true
		}
	}
	valueEnds := ev == scanValue || ev == scanDone
	if valueEnds && j.json.after { // the byte that ended a literal belongs to what follows
		text = strings.TrimSuffix(text, oneByte[c])
	}
	if j.stream {
		out.add(ToolArgs, text)
	} else {
		j.value.WriteString(text)
	}
	if !valueEnds {
		return true
	}
	key := j.key
	j.key = ""
	if key == "name" {
		return j.setName()
	}
	j.hasArgs = true
	if j.stream {
		j.stream = false
		return true
	}
	var ok bool
	j.args, ok = objectText(j.value.String())
	return ok
}

func (j *jsonCall) setName() bool {
	if j.named || json.Unmarshal([]byte(j.value.String()), &j.name) != nil || !slices.Contains(j.tools, j.name) {
		return false
	}
	j.named = true
	return true
}

// objectText accepts the forms in which arguments are written: an object, a string with an object in it, or nothing.
func objectText(s string) (string, bool) {
	var inner string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
		s = strings.TrimSpace(inner)
	}
	if s == "" || s == "null" {
		return "{}", true
	}
	return s, strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

func (j *jsonCall) start(out *joiner) {
	out.add(ToolStart, j.name)
	j.sent = true
}

// end is the closing brace of the call.
func (j *jsonCall) end(out *joiner) verdict {
	if !j.named {
		return j.fail()
	}
	if !j.sent {
		j.start(out)
		if !j.hasArgs {
			j.args = "{}"
		}
		out.add(ToolArgs, j.args)
	}
	out.add(ToolEnd, "")
	return ended
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

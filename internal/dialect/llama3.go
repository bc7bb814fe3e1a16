package dialect

// llama3 is the format of Llama 3.1 to 3.3: an answer that is one JSON object is a call.
//
//	{"name": "f", "parameters": {…}}
//
// Also read: <|python_tag|> before it, calls of built-in tools written f.call(p="v") behind that tag if a tool has that
// name, further calls separated by semicolons, and Python lists of calls.
var llama3 = tagFamily("llama3", llamaSyntax, forceJSON("", "name", "parameters"), func(e Evidence) bool {
	return e.mentions("<|python_tag|>") || e.mentions(`"parameters":`, "ipython")
})

// pythonic is the format of Llama 4 and of small Llamas told so: [f(p="v"), g()]. What llama3 reads is read too.
var pythonic = tagFamily("pythonic", llamaSyntax, func(tool string) string { return "[" + suffixed(tool, "(") },
	func(e Evidence) bool {
		return e.mentions("<|python_start|>") || e.token("<|python_start|>", "<|python_end|>")
	})

var llamaSyntax = &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{
		{tag: "<|python_tag|>", call: newPythonTag},
		{tag: "<|python_start|>", drop: true, call: newPythonTag}}, // Llama 4's template puts text behind it, too
	leads:   []string{"<|python_end|>"},
	closers: []string{"<|python_end|>"},
	drop:    []string{"<|eom_id|>", "<|python_start|>"},
	between: ";",
	bare:    bareCall,
}

func newPythonTag(ts *toolset) callReader { return &pythonTag{ts: ts} }

// pythonTag reads what follows the tag: JSON, a list, or one call in Python.
type pythonTag struct {
	ts *toolset
	chosen
}

func (t *pythonTag) step(c byte, out *joiner) verdict {
	if t.callReader == nil {
		if isBlank(c) {
			return more
		}
		if t.callReader = bareCall(c, t.ts); t.callReader == nil {
			t.callReader = newPyCalls(t.ts)
		}
	}
	return t.callReader.step(c, out)
}

package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// minimaxM3 is the format of MiniMax M3: a token before every tag, tags named by the parameters, and values that are lists
// or objects spelled out as tags in turn. NS stands for the token:
//
//	NS<tool_call>⏎NS<invoke name="f">NS<p>vNS</p>NS<l>NS<item>1NS</item>NS</l>NS</invoke>⏎NS</tool_call>
var minimaxM3 = tagFamily(&Family{
	Name: "minimax_m3", Names: []string{"minimax_m3"}, Shared: []string{"minimax"},
	Think: &Think{Open: "<mm:think>", Close: "</mm:think>", Leave: "\n</mm:think>\n\n", at: beforeAnswer,
		ReasoningNames: []string{"minimax_m3"}},
	Resume: none, Replay: ReplayPrinted, Ends: none, Builtin: noBuiltin,
	Calls: &Calls{
		Force: forceNamed(m3NS+"<tool_call>\n"+m3NS+`<invoke name="`, `">`),
		Written: `{% macro m(k, v) %}]<]minimax[>[<{{ k }}>{% if v is mapping %}{% for n, x in v.items() %}{{ m(n, x) }}{% endfor %}` +
			`{% elif v is string or v is not iterable %}{{ v if v is string else v | tojson }}` +
			`{% else %}{% for x in v %}{{ m("item", x) }}{% endfor %}{% endif %}]<]minimax[>[</{{ k }}>{% endmacro %}` +
			eachCall("]<]minimax[>[<tool_call>\n", "\n", "\n]<]minimax[>[</tool_call>", `]<]minimax[>[<invoke name="{{ c.name }}">`+
				`{% for k, v in c.arguments.items() %}{{ m(k, v) }}{% endfor %}]<]minimax[>[</invoke>`),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Open: m3NS + "<tool_call>\n", Call: m3NS + `<invoke name="$name">$args` + m3NS + "</invoke>", Between: "\n", Close: "\n" + m3NS + "</tool_call>",
			Args: ArgsTags, Param: m3NS + "<$key>$value" + m3NS + "</$key>", Never: []string{m3NS}},
	},
	matches: func(e Evidence) bool {
		return e.mentions(m3NS) && !e.mentions("<minimax:tool_call>") || e.token(m3NS, "<mm:think>")
	},
}, &syntax{
	openers:  []opener{{tag: m3NS + "<invoke", call: newM3}},
	inner:    []string{m3NS, callOpen, callClose},
	sections: []string{m3NS + "<tool_call>"},
	closers:  []string{m3NS + "</invoke>", m3NS + "</tool_call>"},
})

const m3NS = "]<]minimax[>["

// m3Call reads one invocation.
type m3Call struct {
	argWriter
	unsound bool // a value is neither a list nor an object
	named   bool
	head    []byte // name of the tool
	held    []byte // may be the token
	tag     []byte // after the token, from "<" on
	inTag   bool
	to      *joiner
	of      *argType // of the parameter being read
	stream  bool     // it is a string and goes out as it comes
	path    []m3Node
	size    int      // bytes collected
	early   []string // elements of which an end may come late
}

// m3Node is an element: text, or elements.
type m3Node struct {
	name string
	text []byte
	kids []m3Node
}

func newM3(ts *toolset) callReader { return checked(ts, &m3Call{argWriter: argWriter{ts: ts}}) }

func (m *m3Call) started() bool { return m.sent }

func (m *m3Call) finish(out *joiner) verdict {
	if m.named && len(m.path) == 0 {
		return m.endUnclosed(out)
	}
	return m.fail()
}

func (m *m3Call) step(c byte, out *joiner) verdict {
	switch {
	case !m.named:
		if m.head = append(m.head, c); c != '>' {
			if len(m.head) > maxName {
				return refuted
			}
			return more
		}
		m.tool, _ = tagName(string(m.head[:len(m.head)-1]))
		m.named = true
		if !m.ts.find(&m.tool) {
			return refuted
		}
		return more
	case m.inTag:
		m.tag = append(m.tag, c)
		switch {
		case m.tag[0] != '<' && !m.ts.strict && !m.stream && (len(m.path) == 0 || !m.hasText()): // its name stands behind it
			m.inTag = false
			m.path = append(m.path, m3Node{})
			return m.step(c, out)
		case m.tag[0] != '<' || len(m.tag) > maxName:
			return m.fail()
		case c == '>':
			m.inTag = false
			return m.element(strings.TrimSuffix(string(m.tag[1:]), ">"), out)
		}
		return more
	}
	m.held = append(m.held, c)
	for len(m.held) > 0 {
		if string(m.held) == m3NS {
			m.inTag, m.held, m.tag = true, m.held[:0], m.tag[:0]
			return more
		}
		if strings.HasPrefix(m3NS, string(m.held)) {
			return more
		}
		if !m.text(m.held[0]) {
			return m.fail()
		}
		m.held = append(m.held[:0], m.held[1:]...)
	}
	return more
}

// text takes a byte of a value.
func (m *m3Call) text(c byte) bool {
	if len(m.path) == 0 {
		return isBlank(c)
	}
	if m.stream {
		m.to.add(ToolArgs, string(appendEscaped(nil, c)))
		return true
	}
	n := &m.path[len(m.path)-1]
	n.text = append(n.text, c)
	m.size++
	return m.size <= maxHeld
}

// element acts on a tag.
func (m *m3Call) element(tag string, out *joiner) verdict {
	name, closes := strings.CutPrefix(tag, "/")
	switch depth := len(m.path); {
	case depth == 0 && tag == "/invoke":
		return m.end(out)
	case closes && depth > 0 && m.path[depth-1].name == name && (name != "" || m.ts.strict):
		return m.closeElement()
	case m.ts.strict && (closes || m.stream) || depth > maxJSONDepth:
		return m.fail()
	case m.ts.strict:
		return m.openElement(name, out)
	case closes:
		return m.mendClose(strings.TrimSpace(name), out)
	}
	if name = strings.TrimSpace(tag); strings.HasPrefix(name, "parameter ") {
		if name, _ = tagName(name[len("parameter "):]); !m.ts.repair(RepairTag) {
			return m.fail()
		}
	}
	if strings.HasPrefix(name, "invoke ") && len(m.path) == 0 {
		v := m.endUnclosed(out)
		if m.ts.unread = []byte(m3NS + "<" + tag + ">"); v == ended {
			return endedEarlier
		}
		return v
	}
	if len(m.path) == 0 && (nearly(name, "/invoke") || nearly(name, "/tool_call")) && !m.ts.declares(m.tool, name) && m.ts.repair(RepairTag) {
		return m.end(out)
	}
	n := m.unended(name)
	switch {
	case n < 0 || n > 0 && !m.ts.repair(RepairTag), n == len(m.path) && m.isNoName(name):
		return m.fail()
	case n > 0:
		m.closeElements(n)
	}
	return m.openElement(name, out)
}

// isNoName tells whether no parameter has such a name.
func (m *m3Call) isNoName(name string) bool {
	return (name == "" || strings.ContainsAny(name, `"<>=`)) && !m.ts.declares(m.tool, name)
}

func (m *m3Call) openElement(name string, out *joiner) verdict {
	if len(m.path) == 0 {
		var ok bool
		if m.to, ok = m.param(name, out); !ok {
			return m.fail()
		}
		m.of, m.size = m.ts.of(m.tool).property(name), 0
		ts := m.of.types()
		if m.stream = ts == typeString; m.stream {
			m.to.add(ToolArgs, `"`)
		}
	}
	if m.size += len(name) + 2; m.size > maxHeld {
		return m.fail()
	}
	m.path = append(m.path, m3Node{name: name})
	return more
}

// hasText tells whether the innermost element is text.
func (m *m3Call) hasText() bool {
	return m.stream || len(bytes.TrimSpace(m.path[len(m.path)-1].text)) > 0
}

// mayFollow tells whether a parameter is one of the tool and was not given yet.
func (m *m3Call) mayFollow(name string) bool {
	return !slices.Contains(m.seen, name) && m.ts.declares(m.tool, name)
}

// unended is how many elements lack their end before one of that name: it cannot stand in them. -1 is a name that cannot stand
// anywhere.
func (m *m3Call) unended(name string) int {
	depth := len(m.path)
	if depth == 0 {
		return 0
	}
	top := &m.path[depth-1]
	isList := len(top.kids) > 0 && top.kids[0].name == "item" && name != "item"
	switch follows := m.mayFollow(name); {
	case !m.hasText() && !(isList && follows):
		return 0
	case top.name == "" || depth == 1 && !follows:
		return -1
	case depth > 1 && follows && name != "item" && m.path[depth-2].kids != nil && m.path[depth-2].kids[0].name == "item":
		return depth
	}
	return 1
}

// mendClose acts on a closing tag that is not the innermost element's.
func (m *m3Call) mendClose(name string, out *joiner) verdict {
	depth := len(m.path)
	at := depth - 1
	for at >= 0 && m.path[at].name != name {
		at--
	}
	isNear := func(open string) bool { return nearly(name, open) || slices.Contains(wrongEnds, name) }
	switch {
	case depth > 0 && m.path[depth-1].name == "":
		return m.nameElement(name, out)
	case !m.ts.repair(RepairTag):
		return m.fail()
	case at >= 0:
		m.closeElements(depth - at)
	case name == "invoke" || name == "tool_call":
		m.closeElements(depth)
		return m.end(out)
	case depth == 0 && slices.Contains(m.seen, name), depth > 0 && !m.hasText() && m.lastKid() == name: // a second time
	case slices.Contains(m.early, name) && (depth == 0 || !m.hasText()):
	case depth == 0 && nearly(name, "invoke"):
		return m.end(out)
	case depth == 1 && m.ts.declares(m.tool, name) && !m.ts.declares(m.tool, m.path[0].name): // which of the names is meant?
		return m.fail()
	case depth > 0 && isNear(m.path[depth-1].name):
		m.closeElements(1)
	default:
		return m.fail()
	}
	return more
}

func (m *m3Call) lastKid() string {
	kids := m.path[len(m.path)-1].kids
	if len(kids) == 0 {
		return ""
	}
	return kids[len(kids)-1].name
}

// nameElement takes the closing tag of an element that lacks the other.
func (m *m3Call) nameElement(name string, out *joiner) verdict {
	n := m.path[len(m.path)-1]
	if name == "" || !m.ts.repair(RepairTag) {
		return m.fail()
	}
	m.path = m.path[:len(m.path)-1]
	if len(m.path) == 0 {
		if !m.mayFollow(name) {
			return m.fail()
		}
		m.to, _ = m.param(name, out)
		m.of, m.size = m.ts.of(m.tool).property(name), 0
	}
	m.path = append(m.path, m3Node{name: name, text: n.text, kids: n.kids})
	return m.closeElement()
}

func (m *m3Call) closeElements(n int) {
	for range n {
		m.early = append(m.early, m.path[len(m.path)-1].name)
		m.closeElement()
	}
}

// end closes the call, unless a value of it cannot be told.
func (m *m3Call) end(out *joiner) verdict {
	if m.unsound {
		return m.fail()
	}
	return m.argWriter.end(out)
}

func (m *m3Call) endUnclosed(out *joiner) verdict {
	if m.unsound {
		return m.fail()
	}
	return m.argWriter.endUnclosed(out)
}

func (m *m3Call) closeElement() verdict {
	last := len(m.path) - 1
	n := m.path[last]
	m.path = m.path[:last]
	switch {
	case m.stream:
		m.to.add(ToolArgs, `"`)
		m.stream = false
	case n.name == "" && !m.ts.strict: // nothing closed it that has its name
		m.unsound = true
	case last > 0:
		m.path[last-1].kids = append(m.path[last-1].kids, n)
	case !n.isSound() && !m.ts.strict:
		m.unsound = true
	default:
		m.to.add(ToolArgs, m.json(n, m.of, false))
	}
	return more
}

// isSound tells whether the elements in an element are a list or the members of an object, not some of each.
func (n *m3Node) isSound() bool {
	seen := map[string]bool{}
	isList, isObject := true, true
	for i := range n.kids {
		k := &n.kids[i]
		isList = isList && k.name == "item"
		isObject = isObject && !seen[k.name] && !strings.ContainsAny(k.name, "/<")
		if seen[k.name] = true; !k.isSound() {
			return false
		}
	}
	return isList || isObject
}

// isScalar tells a number, true, false and null from other text.
func isScalar(s string) bool {
	_, isNumber := number(s, false)
	return isNumber || s == "true" || s == "false" || s == "null"
}

// json writes an element as the schema wants it. Elements that are all called item are a list. Inside of lists and
// objects whose schema says no more, what looks like a number is one.
func (m *m3Call) json(n m3Node, of *argType, inside bool) string {
	ts := of.types()
	if len(n.kids) == 0 {
		if len(bytes.TrimSpace(n.text)) == 0 && ts&typeString == 0 {
			switch {
			case ts&typeArray != 0:
				return "[]"
			case ts&typeObject != 0:
				return "{}"
			}
		}
		if text := string(n.text); ts == 0 && isScalar(text) && inside {
			return text
		}
		return m.ts.typed(string(n.text), ts, of)
	}
	isList := ts&typeObject == 0
	for _, k := range n.kids {
		isList = isList && k.name == "item"
	}
	var b []byte
	for i, k := range n.kids {
		if i > 0 {
			b = append(b, ", "...)
		}
		if isList {
			b = append(b, m.json(k, of.item(i), true)...)
			continue
		}
		v := m.json(k, of.property(k.name), true)
		b = append(append(appendQuoted(b, k.name), ": "...), v...)
		of = of.given(k.name, v)
	}
	if isList {
		return "[" + string(b) + "]"
	}
	return "{" + string(b) + "}"
}

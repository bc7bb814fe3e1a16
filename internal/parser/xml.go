package parser

import (
	"slices"
	"strings"
)

// xmlSyntax is a form of calls with a tag around every parameter. The tag that opens a call has been read up to the
// name.
type xmlSyntax struct {
	param      string // begins a parameter's tag, which ">" ends
	paramClose string
	callClose  string
	outerClose string // also ends a call that lacks its callClose; may be ""
	trim       bool   // one newline at each end of a value belongs to the markup
}

type xmlState uint8

const (
	xmlName  xmlState = iota // of the tool, up to ">"
	xmlGap                   // between parameters
	xmlParam                 // rest of a parameter's tag
	xmlValue
	xmlJSON // arguments as a JSON object instead of parameters
)

// xmlCall reads one call. Its arguments go out as they come.
type xmlCall struct {
	*xmlSyntax
	ts    *toolset
	state xmlState
	head  []byte // of the tag being read
	tool  string
	seen  []string // parameters so far
	value valueReader
	drop  bool // the parameter was given before: its value is read and left out
	void  joiner
	json  headCall
	sent  bool
}

func newXML(s *xmlSyntax) func(*toolset) callReader {
	return func(ts *toolset) callReader { return &xmlCall{xmlSyntax: s, ts: ts} }
}

func (x *xmlCall) started() bool { return x.sent }

func (x *xmlCall) finish(*joiner) verdict { return x.fail() }

func (x *xmlCall) fail() verdict {
	if x.sent {
		return broken
	}
	return refuted
}

func (x *xmlCall) step(c byte, out *joiner) verdict {
	switch x.state {
	case xmlName:
		if c != '>' {
			x.head = append(x.head, c)
			if len(x.head) > maxName || c == '\n' || c == '<' {
				return refuted
			}
			return more
		}
		x.tool, _ = tagName(string(x.head))
		if !x.ts.has(x.tool) {
			return refuted
		}
		x.state, x.head = xmlGap, nil
	case xmlGap:
		return x.gap(c, out)
	case xmlParam:
		return x.param(c, out)
	case xmlValue:
		return x.inValue(c, out)
	case xmlJSON:
		return x.json.args(c, out)
	}
	return more
}

// tagName reads a name as it stands in tags: "f" after "=", or the attribute name="f" with others around it.
func tagName(head string) (name, rest string) {
	head = strings.TrimSpace(head)
	if head, ok := strings.CutPrefix(head, "name="); ok && head != "" && (head[0] == '"' || head[0] == '\'') {
		if name, rest, ok := strings.Cut(head[1:], head[:1]); ok {
			return name, rest
		}
	}
	return strings.Trim(strings.TrimPrefix(head, "="), `"' `), ""
}

func (x *xmlCall) gap(c byte, out *joiner) verdict {
	if len(x.head) == 0 {
		if isBlank(c) {
			return more
		}
		if c == '{' && len(x.seen) == 0 {
			x.start(out)
			x.state, x.json.sent = xmlJSON, true
			return x.json.args(c, out)
		}
	}
	x.head = append(x.head, c)
	switch h := string(x.head); {
	case h == x.xmlSyntax.param:
		x.begin()
	case h == x.callClose || h == x.outerClose:
		return x.end(out)
	case !strings.HasPrefix(x.xmlSyntax.param, h) && !strings.HasPrefix(x.callClose, h) && !strings.HasPrefix(x.outerClose, h):
		return x.fail()
	}
	return more
}

// begin reads a parameter next.
func (x *xmlCall) begin() { x.state, x.head = xmlParam, nil }

func (x *xmlCall) start(out *joiner) {
	if !x.sent {
		x.sent = true
		out.add(ToolStart, x.tool)
	}
}

func (x *xmlCall) param(c byte, out *joiner) verdict {
	if c != '>' {
		if x.head = append(x.head, c); len(x.head) > maxName {
			return x.fail()
		}
		return more
	}
	name, attrs := tagName(string(x.head))
	ts := x.ts.types(x.tool, name)
	switch {
	case strings.Contains(attrs, `string="true"`):
		ts = typeString
	case strings.Contains(attrs, `string="false"`) && ts&typeString != 0:
		ts = typeInteger | typeNumber | typeBoolean | typeArray | typeObject | typeNull
	}
	x.startParam(name, ts, out)
	return more
}

// startParam writes the parameter's name and reads its value next.
func (x *xmlCall) startParam(name string, ts types, out *joiner) {
	x.start(out)
	x.drop = slices.Contains(x.seen, name)
	if !x.drop {
		sep := []byte("{")
		if len(x.seen) > 0 {
			sep = []byte(", ")
		}
		out.add(ToolArgs, string(appendQuoted(sep, name))+": ")
		x.seen = append(x.seen, name)
	}
	next := []string{x.xmlSyntax.param, x.callClose}
	if x.outerClose != "" && x.outerClose != x.callClose {
		next = append(next, x.outerClose)
	}
	x.state, x.head = xmlValue, nil
	x.value = valueReader{closer: x.paramClose, next: next, trim: x.trim, types: ts}
}

func (x *xmlCall) inValue(c byte, out *joiner) verdict {
	to := out
	if x.drop {
		to = &x.void
	}
	next := x.value.step(c, to)
	if x.drop {
		x.void.take()
	}
	switch next {
	case "":
		return more
	case x.xmlSyntax.param:
		x.begin()
		return more
	}
	return x.end(out)
}

func (x *xmlCall) end(out *joiner) verdict {
	x.start(out)
	if len(x.seen) == 0 {
		out.add(ToolArgs, "{")
	}
	out.add(ToolArgs, "}")
	out.add(ToolEnd, "")
	return ended
}

package dialect

import "strings"

// xmlSyntax is a form of calls with a tag around every parameter. The tag that opens a call has been read up to the
// name.
type xmlSyntax struct {
	tagEnd     string // of opening tags; "" for ">"
	param      string // begins a parameter's tag
	paramClose string
	callClose  string
	outerClose string // also ends a call that lacks its callClose; may be ""
	json       string // begins a tag around all arguments as JSON; may be ""
	trim       bool   // one newline at each end of a value belongs to the markup
	cdata      bool   // values may stand in <![CDATA[ ]]>
}

type xmlState uint8

const (
	xmlName  xmlState = iota // of the tool, up to the tag's end
	xmlGap                   // between parameters
	xmlParam                 // rest of a parameter's tag
	xmlValue
	xmlJSONTag // rest of the tag around JSON
	xmlJSON    // arguments as a JSON object instead of parameters
)

// xmlCall reads one call. Its arguments go out as they come.
type xmlCall struct {
	*xmlSyntax
	argWriter
	state xmlState
	head  []byte // of the tag being read
	value valueReader
	to    *joiner // where the value goes
	json  *argsReader
}

func newXML(s *xmlSyntax) func(*toolset) callReader {
	return func(ts *toolset) callReader { return checked(ts, &xmlCall{xmlSyntax: s, argWriter: argWriter{ts: ts}}) }
}

func (x *xmlCall) started() bool { return x.sent }

// finish takes a call of which nothing but closing tags is missing.
func (x *xmlCall) finish(out *joiner) verdict {
	switch {
	case x.state == xmlGap:
		return x.endUnclosed(out)
	case x.state == xmlValue && x.value.closed():
		x.value.end(x.to)
		return x.endUnclosed(out)
	}
	return x.fail()
}

func (x *xmlCall) step(c byte, out *joiner) verdict {
	switch x.state {
	case xmlName:
		end, bad := x.tag(c)
		switch {
		case bad || c == '\n':
			return refuted
		case end:
			x.tool, _ = tagName(string(x.head))
			if !x.ts.find(&x.tool) {
				return refuted
			}
			x.state, x.head = xmlGap, x.head[:0]
		}
	case xmlGap:
		return x.gap(c, out)
	case xmlParam:
		return x.param(c, out)
	case xmlValue:
		return x.inValue(c, out)
	case xmlJSONTag:
		end, bad := x.tag(c)
		if bad {
			return x.fail()
		}
		if end {
			x.state = xmlJSON
		}
	case xmlJSON:
		return x.object(c, out)
	}
	return more
}

// object reads arguments that stand as one JSON object. Anything else in its place is no call.
func (x *xmlCall) object(c byte, out *joiner) verdict {
	if x.json == nil {
		if isBlank(c) {
			return more
		}
		if c != '{' {
			return x.fail()
		}
		x.start(out)
		x.json = newArgs(x.ts, x.tool)
	}
	return x.json.last(c, out)
}

// tag collects what stands in a tag up to its end. Bad is a tag that cannot be one.
func (x *xmlCall) tag(c byte) (end, bad bool) {
	if x.tagEnd == "" {
		if c == '>' {
			return true, false
		}
		x.head = append(x.head, c)
		return false, len(x.head) > maxName || c == '<'
	}
	x.head = append(x.head, c)
	if head, ok := strings.CutSuffix(string(x.head), x.tagEnd); ok {
		x.head = x.head[:len(head)]
		return true, false
	}
	return false, len(x.head) > maxName
}

// tagName reads a name as it stands in tags: "f" after "=", or an attribute name="f" with others around it.
func tagName(head string) (name, rest string) {
	head = strings.TrimSpace(head)
	for _, attr := range []string{"name=", "tool=", "key="} {
		if head, ok := strings.CutPrefix(head, attr); ok && head != "" && (head[0] == '"' || head[0] == '\'') {
			if name, rest, ok := strings.Cut(head[1:], head[:1]); ok {
				return attrText.Replace(name), rest
			}
		}
	}
	return strings.Trim(strings.TrimPrefix(head, "="), `"' `), ""
}

var attrText = strings.NewReplacer("&quot;", `"`, "&amp;", "&")

func (x *xmlCall) gap(c byte, out *joiner) verdict {
	if len(x.head) == 0 {
		if isBlank(c) {
			return more
		}
		if c == '{' && len(x.seen) == 0 {
			x.state = xmlJSON
			return x.object(c, out)
		}
	}
	x.head = append(x.head, c)
	switch h := string(x.head); {
	case h == x.xmlSyntax.param:
		x.begin()
	case h == x.xmlSyntax.json && len(x.seen) == 0:
		x.state, x.head = xmlJSONTag, x.head[:0]
	case h == x.callClose || h == x.outerClose:
		return x.end(out)
	case !strings.HasPrefix(x.xmlSyntax.param, h) && !strings.HasPrefix(x.callClose, h) &&
		!strings.HasPrefix(x.outerClose, h) && !strings.HasPrefix(x.xmlSyntax.json, h):
		return x.fail()
	}
	return more
}

// begin reads a parameter next.
func (x *xmlCall) begin() { x.state, x.head = xmlParam, x.head[:0] }

func (x *xmlCall) param(c byte, out *joiner) verdict {
	end, bad := x.tag(c)
	switch {
	case bad:
		return x.fail()
	case !end:
		return more
	}
	name, attrs := tagName(string(x.head))
	of := x.ts.of(x.tool).property(name)
	ts := of.types()
	isString := strings.Contains(attrs, `string="true"`) || strings.Contains(attrs, `type="string"`)
	switch { // the schema counts more than what the model says, where there is one
	case isString && (ts == 0 || ts&typeString != 0):
		ts = typeString
	case !isString && (strings.Contains(attrs, `string="`) || strings.Contains(attrs, `type="`)):
		if ts == 0 {
			ts = typeString | typeInteger | typeNumber | typeBoolean | typeArray | typeObject | typeNull
		}
		if ts != typeString {
			ts &^= typeString
		}
	}
	return x.startParam(name, of, ts, out)
}

// startParam writes the parameter's name and reads its value next.
func (x *xmlCall) startParam(name string, of *argType, ts types, out *joiner) verdict {
	var ok bool
	if x.to, ok = x.argWriter.param(name, out); !ok {
		return x.fail()
	}
	next := []string{x.xmlSyntax.param, x.callClose}
	if x.outerClose != "" && x.outerClose != x.callClose {
		next = append(next, x.outerClose)
	}
	x.state, x.head = xmlValue, x.head[:0]
	x.value = valueReader{ts: x.ts, closer: x.paramClose, next: next, trim: x.trim, types: ts, of: of, cdata: x.cdata}
	return more
}

func (x *xmlCall) inValue(c byte, out *joiner) verdict {
	switch next := x.value.step(c, x.to); next {
	case "":
		return more
	case x.xmlSyntax.param:
		x.begin()
		return more
	}
	return x.end(out)
}

package dialect

import (
	"slices"
	"strings"
)

// xmlSyntax is a form of calls with a tag around every parameter. The tag that opens a call has been read up to the
// name.
type xmlSyntax struct {
	tagEnd     string // of opening tags; "" for ">"
	param      string // begins a parameter's tag
	keyClose   string // ends that tag where the value has one of its own, valueOpen; may be ""
	valueOpen  string
	paramClose string
	callClose  string
	outer      []string // close what stands around calls, and end a call that lacks its callClose
	before     string   // opens that
	open       string   // begins the tag of a call, up to its name
	json       string   // begins a tag around all arguments as JSON; may be ""
	lines      bool     // a parameter begins a line
	tokens     bool     // tags are made of tokens that no text has
	trim       bool     // one line end at each side of a value belongs to the markup
	cdata      bool     // values may stand in <![CDATA[ ]]>
	tags       *xmlTags
}

type xmlState uint8

const (
	xmlName  xmlState = iota // of the tool, up to the tag's end
	xmlGap                   // between parameters
	xmlParam                 // rest of a parameter's tag
	xmlValue
	xmlJSONTag // rest of the tag around JSON
	xmlJSON    // arguments as a JSON object instead of parameters
	xmlDoubt   // behind what may be the end of a value
	xmlClosed  // behind the end of the call
)

// xmlCall reads one call. Its arguments go out as they come.
type xmlCall struct {
	*xmlSyntax
	argWriter
	state xmlState
	head  []byte // of the tag being read
	value valueReader
	to    *joiner // where the value goes
	json  *callArgs
	// gotKey reads a parameter's value next, in forms where that has a tag of its own.
	gotKey func(name string)
	tangle
}

func newXML(s *xmlSyntax) func(*toolset) callReader {
	s.tags = tagsOf(s)
	return func(ts *toolset) callReader { return checked(ts, &xmlCall{xmlSyntax: s, argWriter: argWriter{ts: ts}}) }
}

func (x *xmlCall) started() bool { return x.sent }

// finish takes a call of which nothing but closing tags is missing.
func (x *xmlCall) finish(out *joiner) verdict {
	switch {
	case x.state == xmlGap:
		return x.endUnclosed(out)
	case x.state == xmlClosed && !x.ts.cut: // else another parameter may have been to come
		return x.end(out)
	case x.json != nil:
		return x.json.finish(out)
	case x.state == xmlValue && (x.value.closed() || x.nearlyClosed()):
		x.value.end(x.to)
		return x.endUnclosed(out)
	case x.state == xmlDoubt && !x.ts.cut && x.doubt.endsCall():
		return x.endValue(out)
	}
	return x.fail()
}

func (x *xmlCall) step(c byte, out *joiner) verdict {
	switch x.state {
	case xmlName:
		end, bad := x.tag(c)
		unended := (bad || c == '\n') && x.tagEnd == "" && len(x.head) <= maxName
		switch {
		case unended:
			x.head = x.head[:len(x.head)-1]
		case bad || c == '\n':
			return refuted
		case !end:
			return more
		}
		x.tool, _ = tagName(string(x.head))
		isShort := end && !x.ts.has(x.tool) && strings.HasSuffix(x.tool, "/")
		if isShort { // a tag without a body
			x.tool, _ = tagName(strings.TrimSuffix(string(x.head), "/"))
		}
		if !x.ts.find(&x.tool) || (unended || isShort) && !x.ts.repair(RepairTag) {
			return refuted
		}
		x.state, x.head = xmlGap, x.head[:0]
		switch {
		case isShort:
			return x.end(out)
		case unended:
			return x.gap(c, out)
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
	case xmlDoubt:
		return x.inDoubt(c, out)
	case xmlClosed:
		return x.closed(c, out)
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
		x.json = newCallArgs(x.ts, x.tool)
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
		return true, strings.Contains(head, x.tagEnd[:2]) // what stands before another mark is not all of a tag
	}
	return false, len(x.head) > maxName
}

// tagName reads a name as it stands in tags: "f" after "=", or an attribute name="f" with others around it.
func tagName(head string) (name, rest string) {
	head = strings.TrimSpace(head)
	for _, attr := range []string{"name", "tool", "key"} {
		value, ok := strings.CutPrefix(head, attr)
		if value = strings.TrimLeft(value, " \t"); !ok || !strings.HasPrefix(value, "=") {
			continue
		}
		value = strings.TrimLeft(value[1:], " \t")
		if value == "" || value[0] != '"' && value[0] != '\'' {
			name, rest, _ := strings.Cut(value, " ")
			return strings.Trim(name, `"'`), rest
		}
		if name, rest, ok := strings.Cut(value[1:], value[:1]); ok {
			return attrText.Replace(name), rest
		}
	}
	attr, value, ok := strings.Cut(strings.ReplaceAll(head, "'", `"`), `"`)
	if attr = bareTag(attr); ok && (nearly(attr, "name") || nearly(attr, "key") || nearly(attr, "tool")) {
		name, rest, _ := strings.Cut(value, `"`)
		return strings.Trim(name, "= "), rest
	}
	return strings.Trim(strings.TrimLeft(head, "="), `"' `), ""
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
	case h == x.callClose || slices.Contains(x.outer, h):
		return x.endCall(h, out)
	case !strings.HasPrefix(x.xmlSyntax.param, h) && !strings.HasPrefix(x.callClose, h) && !strings.HasPrefix(x.xmlSyntax.json, h) &&
		!slices.ContainsFunc(x.outer, func(o string) bool { return strings.HasPrefix(o, h) }):
		return x.mendGap(out)
	}
	return more
}

// begin reads a parameter next.
func (x *xmlCall) begin() { x.state, x.head = xmlParam, x.head[:0] }

func (x *xmlCall) param(c byte, out *joiner) verdict {
	end, bad := x.tag(c)
	switch {
	case c == '\n' && !end && x.isLine() && x.ts.repair(RepairTag):
		if v := x.beginParam(string(x.head), out); v != more {
			return v
		}
		return x.inValue(c, out)
	case bad:
		return x.fail()
	case !end:
		return more
	}
	return x.beginParam(string(x.head), out)
}

// isLine tells whether a line is a tag without its end, and no more.
func (x *xmlCall) isLine() bool {
	name, rest := tagName(string(x.head))
	rest = strings.TrimSpace(rest)
	return x.mayFollow(name) && (rest == "" || strings.HasSuffix(rest, `"`))
}

// beginParam takes what stands in a parameter's tag.
func (x *xmlCall) beginParam(head string, out *joiner) verdict {
	if strings.ContainsAny(strings.TrimRight(head, "<|>sep"), "<>") { // more than a tag: what stands in it would be lost
		return x.fail()
	}
	name, attrs := tagName(head)
	if (name == "" || strings.ContainsAny(name, "<>=[]{}\n")) && !x.ts.strict && !x.ts.declares(x.tool, name) {
		return x.fail() // no name
	}
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
	if x.opened && !x.ts.declares(x.tool, name) { // the parameter is that of a call which a value before took in
		return x.fail()
	}
	var ok bool
	if x.to, ok = x.argWriter.param(name, out); !ok {
		return x.fail()
	}
	x.state, x.head, x.tangle = xmlValue, x.head[:0], tangle{name: name, opened: x.opened, settled: x.settled}
	x.value = valueReader{ts: x.ts, closer: x.paramClose, next: append([]string{x.xmlSyntax.param, x.callClose}, x.outer...), trim: x.trim,
		types: ts, of: of, cdata: x.cdata}
	if !x.ts.strict {
		x.value.implied = x.impliesEnd
	}
	return more
}

func (x *xmlCall) inValue(c byte, out *joiner) verdict {
	x.settled = max(0, x.settled-1)
	switch next := x.value.step(c, x.to); next {
	case "":
		return more
	case implied:
		return x.doubtValue(out)
	case x.xmlSyntax.param:
		x.begin()
		return more
	default:
		return x.endCall(next, out)
	}
}

// endCall takes a tag that ends the call, or ends it too early.
func (x *xmlCall) endCall(tag string, out *joiner) verdict {
	if tag != x.callClose || x.ts.strict || len(x.seen) == 0 {
		return x.end(out)
	}
	x.state, x.head = xmlClosed, x.head[:0]
	return more
}

// closed takes what follows the end of the call. If that is another parameter, it was none.
func (x *xmlCall) closed(c byte, out *joiner) verdict {
	x.head = append(x.head, c)
	h := strings.TrimLeft(string(x.head), " \t\r\n")
	if h == "" && len(x.head) <= maxHeldGap || h != "" && strings.HasPrefix(x.xmlSyntax.param, h) {
		return more
	}
	if strings.HasPrefix(h, x.xmlSyntax.param) {
		tag, complete := x.tagAt(h)
		if !complete && len(h) <= maxName {
			return more
		}
		if _, _, ok := x.paramOf(tag); ok && x.ts.repair(RepairTag) {
			x.ts.unread, x.state, x.head = []byte(h), xmlGap, nil
			return reread
		}
	}
	x.end(out)
	x.ts.unread = x.head
	return endedEarlier
}

package dialect

import (
	"slices"
	"strings"
)

// tagKind is what a tag means inside of a call.
type tagKind uint8

const (
	tagOther  tagKind = iota
	tagParam          // opens a parameter that the tool declares and that was not given yet
	tagValue          // closes a value
	tagCall           // closes the call
	tagOuter          // closes what stands around calls
	tagOpen           // opens a call
	tagBefore         // stands before the tag that opens a call
	tagOwn            // opens an element whose closing tag could be taken for a value's
)

// maxTagBlanks bounds the blanks in a tag that has more than the family writes.
const maxTagBlanks = 8

// wrongEnds are elements that models close values with, whatever opened them.
var wrongEnds = []string{"parameter", "param", "arg", "argument", "value", "arg_value"}

// xmlTags are the tags of a form of calls without blanks and quotes, and without what a family puts before names.
type xmlTags struct {
	param, value, call string
	outer              []string
}

func tagsOf(s *xmlSyntax) *xmlTags {
	t := &xmlTags{param: bareTag(s.param), value: bareTag(s.paramClose), call: bareTag(s.callClose)}
	for _, o := range s.outer {
		t.outer = append(t.outer, bareTag(o))
	}
	return t
}

var tagSpace = strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "", "=", "")

var tagBlanks = strings.NewReplacer(" ", "", "\t", "")

var tagSpelling = strings.NewReplacer("｜DSML｜", "", "｜", "", "atem:", "")

// bareTag is a tag without what may vary.
func bareTag(t string) string { return strings.ToLower(tagSpelling.Replace(tagSpace.Replace(t))) }

// begunTag is bareTag of a tag that is not complete.
func begunTag(t string) string {
	for _, before := range []string{"｜DSML｜", "atem:"} {
		t = strings.ReplaceAll(t, before, "")
		for n := min(len(before)-1, len(t)); n > 0; n-- {
			if t[len(t)-n:] == before[:n] {
				return bareTag(t[:len(t)-n])
			}
		}
	}
	return bareTag(t)
}

// nearly tells whether texts are the same but for one character that is missing, too many, another one, or behind the next.
func nearly(a, b string) bool { return nearlyBegins(a, b) && nearlyBegins(b, a) }

// nearlyBegins tells whether s is nearly the beginning of whole.
func nearlyBegins(s, whole string) bool {
	n := 0
	for n < len(s) && n < len(whole) && s[n] == whole[n] {
		n++
	}
	s, whole = s[n:], whole[n:]
	switch {
	case s == "":
		return true
	case whole == "":
		return len(s) == 1
	case strings.HasPrefix(whole[1:], s), strings.HasPrefix(whole, s[1:]), strings.HasPrefix(whole[1:], s[1:]):
		return true
	}
	return len(s) > 1 && len(whole) > 1 && s[0] == whole[1] && s[1] == whole[0] && strings.HasPrefix(whole[2:], s[2:])
}

// tagAt reads the tag that s begins with. It is complete with its end, or before a line end or another tag.
func (x *xmlCall) tagAt(s string) (tag string, complete bool) {
	end := ">"
	switch {
	case x.tagEnd != "":
		end = x.tagEnd
	case x.keyClose != "" && x.opensKey(s):
		end = x.keyClose
	case x.keyClose != "" && strings.HasPrefix(s, x.open): // with the name of the tool
		i := strings.IndexAny(s[len(x.open):], "<\n")
		if i < 0 {
			return s, false
		}
		return s[:len(x.open)+i], true
	}
	if i := strings.Index(s, end); i >= 0 {
		s, complete = s[:i+len(end)], true
	}
	if x.tagEnd != "" || end == x.keyClose {
		return s, complete
	}
	from := len(s) - len(strings.TrimLeft(s, "</"))
	if i := strings.IndexAny(s[from:], "<\r\n"); i >= 0 {
		return s[:from+i], true
	}
	return s, complete
}

// opensKey tells whether s begins with the tag before the name of a parameter, where that is a tag of its own.
func (x *xmlCall) opensKey(s string) bool {
	i := strings.IndexByte(s, '>')
	return i > 0 && nearly(bareTag(s[:i+1]), x.tags.param) && s[1] != '/'
}

// mayBeTag tells whether s may become a tag that means something.
func (x *xmlCall) mayBeTag(s string) bool {
	b := begunTag(s)
	if x.keyClose != "" && x.opensKey(s) {
		return len(s) <= maxName
	}
	switch isOpen := x.open != "" && (strings.HasPrefix(s, x.open) || strings.HasPrefix(x.open, s)); {
	case len(s) > maxName:
		return false
	case isOpen:
		return true
	case len(tagBlanks.Replace(s)) < len(s)-maxTagBlanks:
		return false
	}
	if nearlyBegins(b, x.tags.param) || nearlyBegins(x.tags.param, b) || nearlyBegins(b, x.tags.value) || nearlyBegins(b, x.tags.call) || strings.HasPrefix(x.before, b) {
		return true
	}
	for _, o := range x.tags.outer {
		if nearlyBegins(b, o) {
			return true
		}
	}
	for _, e := range x.wrongEnds() {
		if strings.HasPrefix("</"+e+">", b) || strings.HasPrefix("<"+e+">", b) {
			return true
		}
	}
	return false
}

// kind tells what a complete tag means. Exact are those that are not misspelled.
func (x *xmlCall) kind(tag string) (k tagKind, name string, exact bool) {
	b := bareTag(tag)
	switch {
	case tag == x.paramClose:
		return tagValue, "", true
	case b == x.tags.call:
		return tagCall, "", true
	case tag == x.before:
		return tagBefore, "", true
	case x.open != "" && strings.HasPrefix(tag, x.open):
		name, _ := tagName(strings.TrimSuffix(strings.TrimSuffix(tag[len(x.open):], ">"), x.tagEnd))
		return tagOpen, name, x.ts.has(name)
	}
	for _, o := range x.tags.outer {
		if b == o {
			return tagOuter, "", true
		}
	}
	if name, exact, ok := x.paramOf(tag); ok {
		return tagParam, name, exact
	}
	switch {
	case nearly(b, x.tags.value):
		return tagValue, "", false
	case nearly(b, x.tags.call):
		return tagCall, "", false
	}
	for _, o := range x.tags.outer {
		if nearly(b, o) {
			return tagOuter, "", false
		}
	}
	for _, e := range x.wrongEnds() {
		switch b {
		case "</" + e + ">":
			return tagValue, e, false
		case "<" + e + ">":
			return tagOwn, e, false
		}
	}
	return tagOther, "", false
}

// wrongEnds are the elements that may wrongly close the value being read.
func (x *xmlCall) wrongEnds() []string {
	name := strings.ToLower(x.name)
	return append([]string{name, "parameter" + name}, wrongEnds...)
}

// paramOf returns the parameter that a tag opens, if the tool declares it and it was not given yet.
func (x *xmlCall) paramOf(tag string) (name string, exact, ok bool) {
	if x.keyClose != "" {
		open, key, _ := strings.Cut(tag, ">")
		key, isKey := strings.CutSuffix(key, x.keyClose)
		key = strings.TrimSpace(key)
		return key, open+">" == x.xmlSyntax.param, isKey && x.opensKey(tag) && x.mayFollow(key)
	}
	head := x.inParam(tag)
	element := bareTag(tag[:strings.LastIndex(tag, head)])
	name, _ = tagName(head)
	if head == "" || !nearly(element, x.tags.param) || !x.mayFollow(name) {
		return "", false, false
	}
	return name, element == x.tags.param && strings.HasPrefix(tagBlanks.Replace(tag), strings.TrimRight(x.xmlSyntax.param, "= ")), true
}

// mayFollow tells whether a parameter is one of the tool and was not given yet.
func (x *xmlCall) mayFollow(name string) bool {
	for _, s := range x.seen {
		if s == name {
			return false
		}
	}
	return x.ts.declares(x.tool, name)
}

// maxDoubt bounds what is held behind a tag that may end a value or be a part of it.
const maxDoubt = 4 << 10

// tangle is what is known of the value being read where it holds tags, or ends without its own.
type tangle struct {
	name    string   // of the parameter
	nested  int      // calls that were opened in the value
	opened  bool     // one was, in this value or one before
	own     []string // elements that were opened in it
	settled int      // bytes to come in which a parameter's tag ends the value: nothing behind it can say that it does not
	doubt   *doubt
}

// doubt is an end of a value that may be a part of it: a parameter's tag, or one that ends the call, without the end of the
// value before it. What follows tells; as long as nothing does, it is held back.
type doubt struct {
	raw    []byte // from the end of the value on
	param  bool   // a parameter follows
	next   int    // of raw: where what follows the value begins
	run    int    // where the closing tags in a row end
	outer  bool   // one of what stands around calls is among them
	closed int    // where the closing tag of a value ended, if that was the last tag
	tag    int    // where a tag began that has not ended, or -1
	looked int    // where the last tag ended
}

// endsCall tells whether the output may end here.
func (d *doubt) endsCall() bool {
	return d.param || d.outer || strings.TrimSpace(string(d.raw[d.run:])) == ""
}

// impliesEnd tells whether a value ends at what follows it: the next parameter of the tool, or the end of the call, without
// the proper end of the value or with one that is misspelled.
func (x *xmlCall) impliesEnd(h string) (ends, partial bool) {
	line := lineEnd(h)
	s := h[line:]
	if s == "" || s[0] != '<' && (line == 0 || s[0] != '/') {
		return false, false
	}
	tag, complete := x.tagAt(s)
	if !complete {
		return false, x.mayBeTag(s)
	}
	k, name, exact := x.kind(tag)
	if k == tagOpen && exact && x.tokens {
		return x.value.sure == 0, false
	}
	if line == 0 && (k == tagOpen || k == tagOwn || k == tagCall && x.nested > 0) {
		x.nest(k, name)
		return false, false
	}
	switch {
	case x.nested > 0:
		return false, false
	case k == tagParam && x.keyClose != "":
		rest := x.behind(s, tag)
		return exact && x.value.sure == 0 && strings.HasPrefix(rest, x.valueOpen), strings.HasPrefix(x.valueOpen, rest) && len(rest) < len(x.valueOpen)
	case k == tagParam:
		return exact && x.value.sure == 0 && (line > 0 || !x.lines), false
	case k == tagCall, k == tagOuter:
		return exact && x.value.sure == 0, false
	case k != tagValue, !exact && x.value.sure > 0, line > 0 && !x.trim, slices.Contains(x.own, name):
		return false, false
	}
	rest := x.behind(s, tag)
	switch {
	case rest == "":
		return false, len(s)-len(tag) <= maxHeldGap
	case exact && x.keyClose != "" && isNameByte(rest[0]):
		return x.keyAt(rest)
	case rest[0] != '<' && rest[0] != '/':
		return false, false
	}
	next, complete := x.tagAt(rest)
	if !complete {
		return false, x.mayBeTag(rest)
	}
	switch k, _, declared := x.kind(next); k {
	case tagParam, tagCall, tagOuter:
		return true, false
	case tagOpen, tagBefore:
		return exact && declared, false
	}
	return false, false
}

// keyAt tells whether s begins with the name of a parameter that lacks the tag before it, or may become that.
func (x *xmlCall) keyAt(s string) (is, partial bool) {
	key, rest, ok := strings.Cut(s, "<")
	if !ok {
		return false, len(s) <= maxHeldGap && x.ts.mayDeclare(x.tool, s)
	}
	return "<"+rest == x.keyClose && x.mayFollow(strings.TrimSpace(key)), strings.HasPrefix(x.keyClose, "<"+rest) && len(rest)+1 < len(x.keyClose)
}

// behind is what follows a tag. It may have ended twice.
func (x *xmlCall) behind(s, tag string) string {
	return strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(s[len(tag):], " \t\r\n"), ">"), " \t\r\n")
}

// nest remembers a tag that is a part of the value.
func (x *xmlCall) nest(k tagKind, name string) {
	switch k {
	case tagOpen:
		x.nested++
		x.opened = true
	case tagCall:
		x.nested--
	default:
		x.own = append(x.own, name)
	}
}

// doubtValue reads on behind an implied end of the value.
func (x *xmlCall) doubtValue(out *joiner) verdict {
	h := string(x.value.held)
	x.value.held = x.value.held[:0]
	at := lineEnd(h)
	tag, _ := x.tagAt(h[at:])
	k, _, exact := x.kind(tag)
	isClosed := k == tagValue
	if isClosed {
		at = len(h) - len(x.behind(h[at:], tag))
		tag, _ = x.tagAt(h[at:])
		k, _, _ = x.kind(tag)
	}
	if k == tagOpen && !isClosed { // another call: what this one lacks is not only tags
		x.ts.unread = []byte(h[at:])
		return broken
	}
	x.state = xmlDoubt
	x.doubt = &doubt{raw: []byte(h), param: k == tagParam || isClosed && exact, next: at, run: at + len(tag), outer: k == tagOuter, tag: -1, looked: at + len(tag)}
	if isClosed && x.keyClose != "" && isNameByte(h[at]) && x.ts.repair(RepairTag) {
		x.doubt.raw = slices.Insert(x.doubt.raw, at, []byte(x.xmlSyntax.param)...)
	}
	switch {
	case isClosed && exact:
		return x.readBehind(out)
	case isClosed && k == tagParam, k == tagParam && x.settled > 0:
		return x.endValue(out)
	}
	return more
}

// inDoubt takes a byte behind what may be the end of the value.
func (x *xmlCall) inDoubt(c byte, out *joiner) verdict {
	d := x.doubt
	d.raw = append(d.raw, c)
	isEnd, decided := d.param && !d.goesOn(), len(d.raw) > maxDoubt
	switch start := x.tagStart(c); {
	case start >= 0:
		if end, is := x.decides(string(d.raw[start:]), start); is {
			isEnd, decided = end, true
		}
		d.tag, d.looked = -1, len(d.raw)
	case d.param && d.tag < 0 && x.tagEnd == "" && d.goesOn():
		isEnd, decided = false, true
	}
	switch {
	case !decided:
		return more
	case isEnd:
		return x.endValue(out)
	}
	return x.keepValue(out)
}

// goesOn tells whether text follows the end of a value, which then was none.
func (d *doubt) goesOn() bool {
	rest := strings.TrimSpace(string(d.raw[d.closed:]))
	return d.closed > 0 && rest != "" && rest[0] != '<'
}

// tagStart tells where a tag begins that ends with c, the last byte read, -1 if none does.
func (x *xmlCall) tagStart(c byte) int {
	d := x.doubt
	switch {
	case x.tagEnd != "":
		if fresh := string(d.raw[d.looked:]); strings.HasSuffix(fresh, x.tagEnd) {
			if i := max(strings.LastIndex(fresh, "<|open|>"), strings.LastIndex(fresh, "<|close|>")); i >= 0 {
				return d.looked + i
			}
		}
	case c == '<':
		d.tag = len(d.raw) - 1
	case c == '>' && d.tag >= 0:
		return d.tag
	case len(d.raw)-d.tag > maxName:
		d.tag = -1
	}
	return -1
}

// decides tells what a tag behind a doubtful end of the value says of that, if it says something.
func (x *xmlCall) decides(tag string, start int) (isEnd, decided bool) {
	d := x.doubt
	isBehind := func(at int) bool { return strings.TrimSpace(string(d.raw[at:start])) == "" }
	isParam := strings.HasPrefix(tag, x.xmlSyntax.param)
	k, _, exact := x.kind(tag)
	ends := exact && (k == tagCall || k == tagOuter)
	opens := exact && k == tagOpen
	inRun := !d.param && isBehind(d.run)
	isPending := d.closed > 0 && isBehind(d.closed)
	switch {
	case d.param && isPending:
		return isParam || ends || opens || k == tagBefore, true
	case d.param && (ends || opens):
		return true, true
	case inRun && (k == tagBefore || k == tagOpen):
		return true, true
	case inRun && k == tagParam && !isPending:
		d.param, d.next = true, start
		return true, true
	case isPending && (isParam || ends && (k == tagCall || !inRun)):
		return false, true
	case !d.param && opens:
		return true, true
	}
	if d.closed = 0; exact && k == tagValue {
		d.closed = len(d.raw)
	}
	if inRun && (ends || d.closed > 0) {
		d.run, d.outer = len(d.raw), d.outer || k == tagOuter
	}
	return false, false
}

// endValue ends the value where it was in doubt, and reads on behind it.
func (x *xmlCall) endValue(out *joiner) verdict {
	if !x.ts.repair(RepairTag) {
		return x.fail()
	}
	return x.readBehind(out)
}

func (x *xmlCall) readBehind(out *joiner) verdict {
	d := x.doubt
	x.doubt = nil
	x.value.end(x.to)
	x.state, x.head = xmlGap, x.head[:0]
	if d.param {
		x.ts.unread, x.settled = d.raw[d.next:], len(d.raw)-d.next
		return reread
	}
	x.ts.unread = d.raw[d.run:]
	x.end(out)
	return endedEarlier
}

// keepValue makes a part of the value of what was held back.
func (x *xmlCall) keepValue(out *joiner) verdict {
	raw := x.doubt.raw
	x.doubt, x.state, x.value.sure = nil, xmlValue, len(raw)
	for i, c := range raw {
		v := x.inValue(c, out)
		if v == more && x.state == xmlValue {
			continue
		}
		x.ts.unread = append(slices.Clone(x.ts.unread), raw[i+1:]...)
		switch v {
		case more:
			return reread
		case ended:
			return endedEarlier
		}
		return v
	}
	return more
}

// nearlyClosed tells whether the output ends behind a misspelled end of the value.
func (x *xmlCall) nearlyClosed() bool {
	h := string(x.value.held)
	if x.trim {
		h = h[lineEnd(h):]
	}
	if h == "" || x.ts.strict {
		return false
	}
	tag, _ := x.tagAt(h)
	k, name, _ := x.kind(tag)
	return k == tagValue && name == "" && x.behind(h, tag) == "" && !x.ts.cut
}

// mendGap takes what is no tag of the form, between parameters.
func (x *xmlCall) mendGap(out *joiner) verdict {
	h := string(x.head)
	bad := func() verdict {
		v := x.fail()
		if v == broken {
			x.ts.unread = x.head
		}
		return v
	}
	if x.ts.strict {
		return bad()
	}
	tag, complete := x.tagAt(h)
	if !complete && (h[0] == '<' || h[0] == '/') && x.mayBeTag(h) {
		return more
	}
	k, _, _ := x.kind(tag)
	again := func(v verdict) verdict {
		x.ts.unread = []byte(h[len(tag):])
		return v
	}
	switch {
	case k == tagOpen || k == tagBefore:
		if x.endUnclosed(out) == ended {
			x.ts.unread = x.head
			return endedEarlier
		}
		return bad()
	case h != ">" && (!complete || k == tagOther || k == tagOwn) || !x.ts.repair(RepairTag):
		return bad()
	case k == tagParam && x.keyClose != "":
		name, _, _ := x.paramOf(tag)
		x.gotKey(name)
		return again(reread)
	case k == tagParam:
		if v := x.beginParam(x.inParam(tag), out); v != more {
			return v
		}
		return again(reread)
	case k == tagCall || k == tagOuter:
		x.end(out)
		return again(endedEarlier)
	}
	x.head = x.head[:0]
	return again(reread)
}

// inParam is what stands in a parameter's tag.
func (x *xmlCall) inParam(tag string) string {
	head := strings.TrimSuffix(strings.TrimRight(tag, ">"), x.tagEnd)
	from := len(head) - len(strings.TrimLeft(head, "< \t"))
	if i := strings.IndexAny(head[from:], "= \t\"'"); i >= 0 {
		return head[from+i:]
	}
	return ""
}

package dialect

import "strings"

// namespaces are what models write before the name of a tool that they know under it from elsewhere.
var namespaces = []string{"functions", "function", "tools", "tool", "default_api"}

// find tells whether a call is of a declared tool, and makes the name that tool's. A name that is none, but can mean one tool
// alone, is mended; the call must wait then (checkedCall).
func (s *toolset) find(name *string) bool {
	declared, ok := s.meant(*name)
	if s.mended = ""; ok && declared != *name {
		s.mended, s.before = *name, len(s.pending)
	}
	*name = declared
	return ok
}

// meant is the declared name that a written one means: the same; else the only one that differs by case and separators
// alone; else that of what stands behind a namespace.
func (s *toolset) meant(name string) (string, bool) {
	if s.has(name) || s.strict {
		return name, s.has(name)
	}
	if declared, n := s.alike(name); n > 0 {
		return declared, n == 1
	}
	for rest := unqualified(name); rest != ""; rest = unqualified(rest) {
		if s.has(rest) {
			return rest, true
		}
		if declared, n := s.alike(rest); n > 0 {
			return declared, n == 1
		}
	}
	return name, false
}

// alike is a declared name that differs from another by case and separators alone, and how many do.
func (s *toolset) alike(name string) (declared string, n int) {
	declared, folded := name, fold(name)
	if folded == "" {
		return name, 0
	}
	for i, f := range s.foldedNames() {
		if f == folded && (n == 0 || s.tools[i].Name != declared) {
			declared = s.tools[i].Name
			n++
		}
	}
	return declared, n
}

// mayMean tells whether a name that begins with prefix may mean a tool.
func (s *toolset) mayMean(prefix string) bool {
	if s.begins(prefix) {
		return true
	}
	if s.strict {
		return false
	}
	folded := fold(prefix)
	if anyOf(s.foldedNames(), func(f string) bool { return strings.HasPrefix(f, folded) }) {
		return true
	}
	low := strings.ToLower(prefix)
	if rest := unqualified(low); rest != "" {
		return s.mayMean(rest)
	}
	return strings.HasPrefix("mcp__", low) || strings.HasPrefix(low, "mcp__") ||
		anyOf(namespaces, func(n string) bool { return strings.HasPrefix(n+".", low) || low == n+"." || low == n+":" })
}

func anyOf(list []string, is func(string) bool) bool {
	for _, x := range list {
		if is(x) {
			return true
		}
	}
	return false
}

// foldedNames are the declared names without what does not tell them apart.
func (s *toolset) foldedNames() []string {
	if s.folded == nil {
		for i := range s.tools {
			s.folded = append(s.folded, fold(s.tools[i].Name))
		}
	}
	return s.folded
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func fold(name string) string { return separators.Replace(strings.ToLower(name)) }

// unqualified is a name without the namespace before it (functions.f, mcp__server__f), "" if there is none.
func unqualified(name string) string {
	if i := strings.IndexAny(name, ".:"); i > 0 && anyOf(namespaces, func(n string) bool { return strings.EqualFold(n, name[:i]) }) {
		return name[i+1:]
	}
	if len(name) > 5 && strings.EqualFold(name[:5], "mcp__") {
		if server, rest, ok := strings.Cut(name[5:], "__"); ok && server != "" {
			return rest
		}
	}
	return ""
}

// checkedCall reads a call and gives it out as it comes, unless its name had to be mended or it leaked: then it is held until it
// is complete, and is text if its arguments do not fit the tool.
type checkedCall struct {
	callReader
	ts     *toolset
	leaked bool
	kept   joiner // what came out, or where it goes: readers remember it
	open   bool   // goes out as it comes
	last   verdict
}

func checked(ts *toolset, r callReader) callReader { return &checkedCall{callReader: r, ts: ts} }

func (k *checkedCall) started() bool { return k.open }

func (k *checkedCall) step(c byte, out *joiner) verdict {
	if k.open {
		k.kept.to = out
		return k.callReader.step(c, &k.kept)
	}
	v := k.judge(k.callReader.step(c, &k.kept), out)
	if v == unfit {
		k.leaveUnread(c)
	}
	return v
}

func (k *checkedCall) finish(out *joiner) verdict {
	if k.open {
		k.kept.to = out
		return k.callReader.finish(&k.kept)
	}
	return k.judge(k.callReader.finish(&k.kept), out)
}

// judge decides about a call of which nothing went out yet.
func (k *checkedCall) judge(v verdict, out *joiner) verdict {
	k.last = v
	switch {
	case k.ts.mended == "" && !k.leaked:
		if k.callReader.started() {
			k.open = true
			k.kept.moveTo(out)
		}
		return v
	case v == more || v == stuck || v == reread:
		return v
	case (v == ended || v == endedBefore || v == endedEarlier) && k.ts.accept(&k.kept, k.leaked):
		k.open = true
		k.kept.moveTo(out)
		return v
	}
	k.ts.refuse()
	if v == ended || v == endedBefore || v == endedEarlier {
		return unfit
	}
	return refuted
}

// leaveUnread keeps what was read behind a call that does not fit.
func (k *checkedCall) leaveUnread(c byte) {
	if k.ts.unread == nil && k.last == endedBefore {
		k.ts.unread = []byte{c}
	}
}

// accept tells whether a complete call that was held is one, and notes what was mended.
func (s *toolset) accept(call *joiner, leaked bool) bool {
	call.flush()
	tool, args := "", ""
	for _, p := range call.pieces {
		switch p.Kind {
		case ToolStart:
			tool = p.Text
		case ToolArgs:
			args += p.Text
		}
	}
	if !s.fits(tool, args) {
		return false
	}
	note := tool
	if s.mended != "" {
		s.repair(RepairName)
		note = strings.ToValidUTF8(s.mended[:min(len(s.mended), maxNoted)], "") + " as " + tool
	}
	if leaked {
		s.repair(RepairLeaked)
		note += ", leaked"
	}
	if s.noted != nil {
		s.notes = append(s.notes, note)
	}
	s.mended = ""
	return true
}

// maxNoted bounds what is told of a name as the model wrote it.
const maxNoted = 64

// refuse forgets a call that was held.
func (s *toolset) refuse() {
	if s.mended != "" {
		s.pending = s.pending[:min(s.before, len(s.pending))]
	}
	s.mended = ""
}

// moveTo gives another what was collected.
func (j *joiner) moveTo(out *joiner) {
	for _, p := range j.take() {
		if p.Kind == ToolStart || p.Kind == ToolEnd {
			out.call(p.Kind, p.Text, p.ID)
			continue
		}
		out.add(p.Kind, p.Text)
	}
}

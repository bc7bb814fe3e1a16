package dialect

import (
	"slices"
	"strings"

	"hearth/internal/schema"
)

// types is a set of JSON types. The empty set means that nothing is known.
type types uint8

const (
	typeString types = 1 << iota
	typeInteger
	typeNumber
	typeBoolean
	typeArray
	typeObject
	typeNull
)

var typeNames = map[string]types{"string": typeString, "integer": typeInteger, "number": typeNumber,
	"boolean": typeBoolean, "array": typeArray, "object": typeObject, "null": typeNull}

const allTypes = typeNull<<1 - 1

const (
	// maxReferences bounds how many references in a row are followed where one schema is looked for.
	maxReferences = 16
	// maxSchemaWork bounds how many parts of schemas are read for one reply. After that types count as not known, and arguments
	// stay as the model wrote them.
	maxSchemaWork = 1_000_000
)

// toolset is the tools of a request and what may be done for them. Schemas are read when a call first needs them.
type toolset struct {
	tools    []Tool
	schemas  map[string]*argType // of arguments, by tool
	reading  *reading            // of all of them
	strict   bool                // no repairs
	repaired func(Repair)
	pending  []Repair // in what may become a call
	cut      bool     // the output did not end by itself
	marked   bool     // what follows the call shows that it ends here
	unread   []byte   // to be read once more: behind a call that has ended, or in one that reads on

	folded []string     // names, see foldedNames
	mended string       // the name of the call being read, as the model wrote it, where it had to be mended
	before int          // of pending, when that was seen
	noted  func(string) // takes notes
	notes  []string     // of calls that were mended, for the log
}

func newToolset(o Options) toolset {
	return toolset{tools: o.Tools, strict: o.NoRepair, repaired: o.Repaired, noted: o.Mended}
}

func (s *toolset) has(name string) bool {
	for i := range s.tools {
		if s.tools[i].Name == name {
			return true
		}
	}
	return false
}

// begins tells whether prefix may become the name of a tool.
func (s *toolset) begins(prefix string) bool {
	for i := range s.tools {
		if strings.HasPrefix(s.tools[i].Name, prefix) {
			return true
		}
	}
	return false
}

// of returns the schema of a tool's arguments.
func (s *toolset) of(tool string) *argType {
	a, ok := s.schemas[tool]
	if ok {
		return a
	}
	if s.reading == nil {
		s.reading, s.schemas = newReading(), map[string]*argType{}
	}
	for i := range s.tools {
		if s.tools[i].Name != tool {
			continue
		}
		if root := s.tools[i].Schema.Root(); root.Kind() == schema.Object {
			a = (&argType{reading: s.reading, root: root}).alone(root)
		}
	}
	s.schemas[tool] = a
	return a
}

// hasAll tells whether the parameters given are all that the tool requires.
func (s *toolset) hasAll(tool string, given []string) bool {
	a := s.of(tool)
	if a == nil {
		return true
	}
	has := make(map[string]bool, len(given))
	for _, name := range given {
		has[name] = true
	}
	return slices.ContainsFunc(a.alts, func(alt []*schema.Node) bool {
		for _, node := range alt {
			required := node.Member("required").Elements()
			if !a.spend(len(required)) {
				return false
			}
			for i := range required {
				if name, ok := required[i].Str(); ok && !has[name] {
					return false
				}
			}
		}
		return true
	})
}

// declares tells whether a tool has a parameter of that name.
func (s *toolset) declares(tool, param string) bool {
	of := s.of(tool)
	if of == nil {
		return false
	}
	for _, alt := range of.alts {
		if !of.spend(len(alt)) {
			return false
		}
		for _, node := range alt {
			if node.Member("properties").Member(param).Given() {
				return true
			}
		}
	}
	return false
}

// mayDeclare tells whether prefix may become the name of a tool's parameter.
func (s *toolset) mayDeclare(tool, prefix string) bool {
	of := s.of(tool)
	if of == nil {
		return false
	}
	for _, alt := range of.alts {
		for _, node := range alt {
			members := node.Member("properties").Members()
			if !of.spend(len(members)) {
				return false
			}
			for i := range members {
				if strings.HasPrefix(members[i].Key, prefix) {
					return true
				}
			}
		}
	}
	return false
}

package dialect

// Repair is a kind of correction of what a model wrote, made so that a call can be carried out. Options.NoRepair leaves
// them all out, Options.Repaired counts them.
type Repair string

const (
	RepairText     Repair = "json_text" // raw control characters, unknown escapes, Python's True, False and None in JSON
	RepairNumber   Repair = "number"    // 5.0 for an integer, "5" for a number
	RepairBoolean  Repair = "boolean"   // "false", False, "yes" and 1 where the schema wants a boolean
	RepairString   Repair = "string"    // a number, boolean, list or object where the schema wants a string
	RepairEncoded  Repair = "encoded"   // a list, an object or null written as a string, or all arguments
	RepairLiteral  Repair = "literal"   // a list or an object in Python's spelling where JSON belongs
	RepairTwice    Repair = "twice"     // a parameter given a second time, which is left out
	RepairUnclosed Repair = "unclosed"  // the last closing tags or brackets missing
	RepairBracket  Repair = "bracket"   // a bracket too many, doubled braces, a list around the arguments
	RepairComma    Repair = "comma"     // a comma too many, or none between members
	RepairQuote    Repair = "quote"     // single quotes, or none around a key
	RepairComment  Repair = "comment"   // a comment in JSON
	RepairForm     Repair = "form"      // a call inside of a member "function", or its name as "tool"
	RepairName     Repair = "name"      // the name of a tool in other letters, or with a namespace
	RepairLeaked   Repair = "leaked"    // a call without the marks of the family
	RepairHeader   Repair = "header"    // a mark missing in the header of a message, or around it
	RepairKey      Repair = "key"       // keywords of a Python call as a dict, or behind colons
	RepairTag      Repair = "tag"       // a tag inside of a call that is missing, misspelled, too early or one too many
)

// Repairs are all kinds, for those who show counts.
var Repairs = []Repair{RepairText, RepairNumber, RepairBoolean, RepairString, RepairEncoded, RepairLiteral, RepairTwice, RepairUnclosed,
	RepairBracket, RepairComma, RepairQuote, RepairComment, RepairForm, RepairName, RepairLeaked, RepairHeader, RepairTag, RepairKey}

// repair notes a correction and tells whether it may be made.
func (s *toolset) repair(kind Repair) bool {
	if s.strict {
		return false
	}
	if s.repaired != nil {
		s.pending = append(s.pending, kind)
	}
	return true
}

// settle counts the corrections noted if they are in a call, and forgets them if it turned out to be none.
func (s *toolset) settle(isCall bool) {
	switch {
	case isCall && s.mended != "": // it is not decided yet
		return
	case s.mended == "" && len(s.pending)+len(s.notes) == 0: // as after most bytes
		return
	}
	if isCall {
		for _, kind := range s.pending {
			s.repaired(kind)
		}
		for _, note := range s.notes {
			s.noted(note)
		}
	}
	s.pending, s.notes, s.mended = s.pending[:0], s.notes[:0], ""
}

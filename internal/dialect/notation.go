package dialect

import (
	"slices"
	"strings"
)

// Notation is how a family writes calls, for grammars that hold a model to it. The readers of the family read more than that. In
// its texts these words stand for what differs from call to call:
//
//	$name    the tool          $quoted  the same, as a string of JSON
//	$number  digits            $id      nine or more letters and digits
//	$args    all arguments         $blanks  white space, or none
//	$key     a parameter       $value   its value        $kind  the type of its value, see Kind
//	$[ … $]  what may be left out      $[ … $| … $]  one of both
//
// What a reader takes for the end of a value no value may hold.
type Notation struct {
	Open    string // before the first call
	Call    string // one
	Between string // calls
	Close   string // behind the last
	Args    Args

	// Of ArgsTags.
	Param string   // one parameter
	Ends  []string // what, behind the closing tag of a value and blanks, shows that the value has ended
	Trim  bool     // one line end at each side of a value is none of it
	CData bool     // a text may stand in <![CDATA[ ]]>
	Kind  func(jsonType string) string

	Mark  string   // of ArgsMarked: around texts
	Never []string // what no text may hold, wherever it stands

	Begins *Beginnings // nil where they are those of the family's tags
}

// Beginnings is what the reader of a family may take for the beginning of a call: all else that a model writes is none. They are
// texts as those of a Notation; $name and $quoted are the names of all tools then, and there are these words:
//
//	$head    what holds no Body
//	$ids     members of an object that say what a call is, and not of which tool
type Beginnings struct {
	Anywhere []string
	Answers  []string // where an answer may begin, behind blanks
	Behind   []string // what an answer may begin behind, besides the beginning of a reply and calls
	Again    []string // behind a call and blanks
	Body     string
}

// bareBeginnings are of calls without a tag, as JSON and in Python.
var bareBeginnings = []string{
	`$[[$blanks$]{$blanks$[$ids$]"$[$[name$|$[tool_name$|function$]$]"$blanks:$blanks$quoted$|$[arguments$|parameters$]"$blanks:$blanks{$]`,
	"[$blanks$name$blanks(",
}

// Beginnings are what calls begin with, for the reader of the family.
func (f *Family) Beginnings() *Beginnings {
	if f.Notation.Begins != nil {
		return f.Notation.Begins
	}
	b := &Beginnings{Anywhere: slices.Clone(f.syntax.sections), Behind: f.syntax.leads, Again: f.syntax.again}
	if f.Close != "" {
		b.Behind = append(slices.Clone(b.Behind), f.Close)
	}
	if f.syntax.bare != nil {
		b.Answers = bareBeginnings
	}
	for _, o := range f.syntax.openers {
		switch {
		case !o.lead:
			b.Anywhere = append(b.Anywhere, o.tag)
		case strings.HasPrefix(o.tag, fence):
			for _, text := range bareBeginnings {
				b.Answers = append(slices.Clone(b.Answers), o.tag+"$blanks"+text)
			}
		default:
			b.Answers = append(slices.Clone(b.Answers), o.tag)
		}
	}
	return b
}

// Args is how the arguments of a call are written.
type Args uint8

const (
	ArgsJSON   Args = iota + 1 // one JSON object
	ArgsTags                   // parameter by parameter, a text as it is and other values as JSON
	ArgsPython                 // as key=value, the values with Python's words
	ArgsMarked                 // as key:value, keys bare and texts as they are between marks
)

var noNotation = &Notation{}

// jsonNotation is of calls as JSON objects with the given keys.
func jsonNotation(before, between, after, name, args string) *Notation {
	return &Notation{Open: before, Call: `{"` + name + `": $quoted, "` + args + `": $args}`, Between: between, Close: after, Args: ArgsJSON}
}

// headNotation is of calls whose name stands before a JSON object with the arguments.
func headNotation(before, call, between, after string) *Notation {
	return &Notation{Open: before, Call: call, Between: between, Close: after, Args: ArgsJSON}
}

// tagNotation is of calls with a tag around every parameter.
func tagNotation(before, call, between, after, param string, ends ...string) *Notation {
	return &Notation{Open: before, Call: call, Between: between, Close: after, Args: ArgsTags, Param: param, Ends: ends}
}

// Notation is calls as that object.
func (o *Object) Notation() *Notation {
	return headNotation("", o.CallOpen+`$blanks{$blanks"name"$blanks:$blanks$quoted$blanks,$blanks"arguments"$blanks:$blanks$args$blanks}$blanks`+o.CallClose, "", "")
}

// trimmed is a notation with line ends around values.
func trimmed(n *Notation) *Notation {
	n.Trim = true
	return n
}

func pythonNotation(before, between, after string) *Notation {
	return &Notation{Open: before, Call: "$name($args)", Between: between, Close: after, Args: ArgsPython}
}

func markedNotation(open, end, mark string) *Notation {
	return &Notation{Call: open + "call:$name{$args}" + end, Args: ArgsMarked, Mark: mark}
}

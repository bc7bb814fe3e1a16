// Package dialect knows how families of models write reasoning and tool calls, and takes their raw output apart, piece by
// piece as it is generated: text, reasoning, and calls with their arguments. Package generate feeds it decoded text and
// turns the pieces into chat events.
//
// A family is one file, named as the family is, and one row in the table of Choose. The file holds all that the program
// knows by the family's name, as fields of Family; a test looks at every field of every family. Readers that several
// families share are in files without families. docs/adding-a-dialect.md has the steps to a new one.
//
// A parser gives the same pieces for any way the output is cut into Feeds, never holds back more than a bounded amount,
// calls only tools that were declared, and lets markup through as text only where it is no call. It knows no tokens and
// no protocol, and never decides when generation ends. Text of templates is data here: package generate renders it.
package dialect

import (
	"strings"

	"hearth/internal/schema"
)

// Kind says what a Piece is.
type Kind uint8

const (
	Text      Kind = iota // Piece.Text is part of the answer
	Reasoning             // Piece.Text is part of the reasoning
	ToolStart             // a call of the tool Piece.Text begins
	ToolArgs              // Piece.Text is a fragment of the call's arguments; together they are one JSON object
	ToolEnd               // the call is complete; a call without a ToolEnd was cut short and must not be carried out
)

// Piece is a stretch of parsed output.
type Piece struct {
	Kind Kind
	Text string
	// ID is what the model itself calls the call: of a ToolStart, or of the ToolEnd where it stands behind the arguments; "" if
	// the format has no ids or the model wrote none.
	ID string
}

// Options is what a parser needs to know about the request.
type Options struct {
	InReasoning bool   // the prompt ends inside a reasoning block
	Form        bool   // the answer is data, so no call is looked for that lacks the marks of the family
	Continued   bool   // the prompt ends inside the text of that block or of the answer: newlines at the start count
	Tools       []Tool // that may be called; none: markup of tool calls is plain text

	NoRepair bool              // take what the model wrote as it is
	Repaired func(kind Repair) // called for every repair of a call; may be nil
	Mended   func(call string) // called for every call with another name than the model wrote, or that leaked, with the names; may be nil
}

// Tool is a function that may be called. Formats without types of their own take them from its arguments' schema; nil means
// unknown.
type Tool struct {
	Name   string
	Schema *schema.Document
}

// Parser parses one reply. It belongs to one goroutine.
type Parser interface {
	// Feed appends the pieces that become certain with the next stretch of output to dst. Neighbours of one kind are joined.
	Feed(dst []Piece, output string) []Piece
	// Finish appends what the end of the output makes of everything held back.
	Finish(dst []Piece) []Piece
	// Cut tells before Finish that the output did not end by itself: a call that lacks its end is not complete then.
	Cut()
	// InReasoning tells whether output fed now would be reasoning.
	InReasoning() bool
}

// joiner collects pieces, joining neighbours of one kind.
type joiner struct {
	pieces []Piece
	kind   Kind
	buf    []byte  // text of the piece being made, of kind
	apart  bool    // text of the same kind is a paragraph of its own
	off    bool    // takes nothing
	to     *joiner // takes all in its place; nil: none
}

// discard takes what is read only to be left out.
var discard = &joiner{off: true}

func (j *joiner) add(k Kind, text string) {
	if j.to != nil {
		j.to.add(k, text)
		return
	}
	if j.off {
		return
	}
	if k == ToolStart || k == ToolEnd {
		j.call(k, text, "")
		return
	}
	if text == "" {
		return
	}
	if j.apart {
		if j.apart = false; k == j.kind && k != ToolArgs {
			text = "\n\n" + text
		}
	}
	if k != j.kind {
		j.flush()
		j.kind = k
	}
	j.buf = append(j.buf, text...)
}

// call adds the start or the end of a call.
func (j *joiner) call(k Kind, text, id string) {
	if j.to != nil {
		j.to.call(k, text, id)
	} else if !j.off {
		j.flush()
		j.pieces = append(j.pieces, Piece{Kind: k, Text: text, ID: id})
	}
}

func (j *joiner) flush() {
	if len(j.buf) > 0 {
		j.pieces = append(j.pieces, Piece{Kind: j.kind, Text: string(j.buf)})
		j.buf = j.buf[:0]
	}
}

// feed appends to dst what step makes of every byte.
func (j *joiner) feed(dst []Piece, output string, step func(byte)) []Piece {
	j.pieces = dst
	for i := range len(output) {
		step(output[i])
	}
	return j.take()
}

// take returns the pieces collected.
func (j *joiner) take() []Piece {
	j.flush()
	ps := j.pieces
	j.pieces = nil
	return ps
}

// splitMarks takes the next byte of an output in which marks count everywhere. Held is what may be the start of one; it
// returns what is held now, and gives out every complete mark and every byte that belongs to none.
func splitMarks(held []byte, c byte, marks []string, mark func(string), content func(byte)) []byte {
	held = append(held, c)
	for len(held) > 0 {
		partial := false
		for _, m := range marks {
			if string(held) == m {
				mark(m)
				return held[:0]
			}
			partial = partial || strings.HasPrefix(m, string(held))
		}
		if partial {
			break
		}
		first := held[0]
		held = append(held[:0], held[1:]...)
		content(first)
	}
	return held
}

// oneByte holds the string of every single byte.
var oneByte = func() (t [256]string) {
	for i := range t {
		t[i] = string([]byte{byte(i)})
	}
	return t
}()

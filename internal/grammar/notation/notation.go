// Package notation is what the notations of grammars share: reading a text by characters, and errors that name a place in it.
package notation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hearth/internal/grammar"
)

// Bounds of a text; the Builder has its own for what it expands to.
const (
	maxText   = 1 << 20 // bytes
	maxLevels = 500     // of groups within each other
)

// Error is a text that is no grammar, or none that can be held.
type Error struct {
	Line, Column int // from 1, in characters
	What         string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.What)
}

// stop ends the reading of a text by an error, from whatever depth.
type stop struct{ error }

// Reader goes through a text. One without a Read around it has no bounds of its own.
type Reader struct {
	Text  string
	At    int // byte
	level int
	steps int
	ctx   context.Context
}

// Read calls f with a Reader, and gives what f fails with. It ends when ctx does.
func Read(ctx context.Context, text string, f func(r *Reader)) error {
	r := &Reader{Text: text, ctx: ctx}
	return Caught(func() {
		if len(text) > maxText {
			r.Stop(&grammar.LimitError{What: "bytes", Limit: maxText})
		}
		for i := 0; i < len(text); {
			c, n := utf8.DecodeRuneInString(text[i:])
			if c == utf8.RuneError && n == 1 {
				r.Fail(i, "the text is not UTF-8")
			}
			i += n
		}
		f(r)
	})
}

// Caught calls f, and gives the error by which a Reader stopped in it.
func Caught(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case stop:
			err = e.error
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

// Stop ends the reading by an error.
func (r *Reader) Stop(err error) { panic(stop{err}) }

// Fail ends the reading by an Error at a byte of the text.
func (r *Reader) Fail(at int, format string, args ...any) {
	before := r.Text[:min(at, len(r.Text))]
	inLine := before[strings.LastIndexByte(before, '\n')+1:]
	r.Stop(&Error{strings.Count(before, "\n") + 1, utf8.RuneCountInString(inLine) + 1, fmt.Sprintf(format, args...)})
}

// Step looks, once in a while, whether anybody still waits.
func (r *Reader) Step() {
	if r.steps++; r.steps%1024 == 0 && r.ctx.Err() != nil {
		r.Stop(context.Cause(r.ctx))
	}
}

// Nested calls f, one level deeper.
func (r *Reader) Nested(f func()) {
	if r.level++; r.level > maxLevels {
		r.Stop(&grammar.LimitError{What: "groups within each other", Limit: maxLevels})
	}
	f()
	r.level--
}

// More tells whether the text goes on.
func (r *Reader) More() bool { return r.At < len(r.Text) }

// Peek is the next byte, 0 at the end.
func (r *Reader) Peek() byte {
	if r.At < len(r.Text) {
		return r.Text[r.At]
	}
	return 0
}

// Is tells whether a text comes next.
func (r *Reader) Is(s string) bool { return strings.HasPrefix(r.Text[r.At:], s) }

// Take takes a text if it comes next.
func (r *Reader) Take(s string) bool {
	if !r.Is(s) {
		return false
	}
	r.At += len(s)
	return true
}

// Rune takes a character. It is not called at the end.
func (r *Reader) Rune() rune {
	c, n := utf8.DecodeRuneInString(r.Text[r.At:])
	r.At += n
	return c
}

// While takes what consists of bytes that ok takes.
func (r *Reader) While(ok func(c byte) bool) string {
	start := r.At
	for r.At < len(r.Text) && ok(r.Text[r.At]) {
		r.At++
	}
	return r.Text[start:r.At]
}

// Line takes the rest of a line, without its end.
func (r *Reader) Line() { r.While(func(c byte) bool { return c != '\n' && c != '\r' }) }

// Blanks takes blanks, lines' ends, and comments up to their line's end, which begin with one of these.
func (r *Reader) Blanks(comments ...string) {
	for r.Step(); ; r.Line() {
		r.While(func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' })
		if !slices.ContainsFunc(comments, r.Is) {
			return
		}
	}
}

// Letter tells whether a byte is a letter of ASCII.
func Letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Digit tells whether a byte is a decimal digit.
func Digit(c byte) bool { return c >= '0' && c <= '9' }

// Often takes *, + or ? if one comes next, and gives how often what stands before it may come; most < 0: without end.
func (r *Reader) Often() (least, most int, ok bool) {
	switch {
	case r.Take("*"):
		return 0, -1, true
	case r.Take("+"):
		return 1, -1, true
	case r.Take("?"):
		return 0, 1, true
	}
	return 0, 0, false
}

// Count takes a number of repetitions if one comes next.
func (r *Reader) Count() (n int, ok bool) {
	digits := r.While(Digit)
	if digits == "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > grammar.MaxRepeat {
		r.Stop(&grammar.LimitError{What: "repetitions of one expression", Limit: grammar.MaxRepeat})
	}
	return n, true
}

// Next is what comes next, as errors show it.
func (r *Reader) Next() string {
	if !r.More() {
		return "the end of the text"
	}
	c, _ := utf8.DecodeRuneInString(r.Text[r.At:])
	return strconv.QuoteRune(c)
}

// Hex takes the digits of the escape at a byte of the text, which stand for a character.
func (r *Reader) Hex(at, digits int) rune {
	if r.At+digits <= len(r.Text) {
		if x, err := strconv.ParseUint(r.Text[r.At:r.At+digits], 16, 32); err == nil {
			r.At += digits
			return r.char(at, x)
		}
	}
	r.Fail(at, "the escape lacks some of its %d hexadecimal digits", digits)
	return 0
}

// HexBraces takes the digits of an escape up to a brace.
func (r *Reader) HexBraces(at int) rune {
	digits := r.While(func(c byte) bool { return c != '}' && c != '\n' })
	x, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !r.Take("}") {
		r.Fail(at, "the escape lacks a character's number and a }")
	}
	return r.char(at, x)
}

func (r *Reader) char(at int, x uint64) rune {
	if x > utf8.MaxRune || x >= 0xD800 && x < 0xE000 {
		r.Fail(at, "the escape stands for no character: there is no U+%04X, and surrogates are written as the one character that they make", x)
	}
	return rune(x)
}

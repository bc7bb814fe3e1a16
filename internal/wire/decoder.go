package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"

	"hearth/internal/chat"
)

// Decoder reads typed values and remembers the first error, so that decoding reads as a list of fields with one check
// at the end. After an error every method returns zero values and iterations stop.
type Decoder struct {
	err *chat.Error
}

// Err returns the first error.
func (d *Decoder) Err() *chat.Error { return d.err }

// Fail records an Invalid error about v, unless there was one before.
func (d *Decoder) Fail(v Value, format string, args ...any) {
	if d.err == nil {
		d.err = chat.Invalidf(v.Path(), format, args...)
	}
}

// FailAt is Fail for a value of which only the path is left.
func (d *Decoder) FailAt(path, format string, args ...any) {
	if d.err == nil {
		d.err = chat.Invalidf(path, format, args...)
	}
}

// Want fails unless v is of kind k.
func (d *Decoder) Want(v Value, k Kind) bool {
	if d.err != nil {
		return false
	}
	switch got := v.Kind(); got {
	case k:
		return true
	case Missing:
		d.Fail(v, "is required and must be %s", k)
	default:
		d.Fail(v, "expected %s, got %s", k, got)
	}
	return false
}

// Fields yields the fields of an object; null and missing have none, other kinds fail.
func (d *Decoder) Fields(v Value) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Absent() || !d.Want(v, Object) {
			return
		}
		for k, f := range v.Fields() {
			if d.err != nil || !yield(k, f) {
				return
			}
		}
	}
}

// Items yields the elements of an array; null and missing have none, other kinds fail.
func (d *Decoder) Items(v Value) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Absent() || !d.Want(v, Array) {
			return
		}
		for i, e := range v.Items() {
			if d.err != nil || !yield(i, e) {
				return
			}
		}
	}
}

// String returns a required string.
func (d *Decoder) String(v Value) string {
	if !d.Want(v, String) {
		return ""
	}
	return unquote(v.raw)
}

// OptString returns a string, "" if absent.
func (d *Decoder) OptString(v Value) string {
	if v.Absent() {
		return ""
	}
	return d.String(v)
}

// Bool returns a boolean, false if absent.
func (d *Decoder) Bool(v Value) bool {
	if v.Absent() || !d.Want(v, Bool) {
		return false
	}
	return v.raw[0] == 't'
}

// Int returns an integer in [lo, hi], nil if absent. A number written as 8.0 or 8e0 is one.
func (d *Decoder) Int(v Value, lo, hi int) *int {
	if v.Absent() || !d.Want(v, Number) {
		return nil
	}
	n, err := strconv.Atoi(string(v.raw))
	if err != nil {
		f, ferr := strconv.ParseFloat(string(v.raw), 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			d.Fail(v, "expected an integer, got %s", clip(v.raw))
			return nil
		}
		n = int(f)
	}
	if n < lo || n > hi {
		d.Fail(v, "%s is out of range: must be %s", clip(v.raw), interval(lo, hi))
		return nil
	}
	return &n
}

func interval(lo, hi int) string {
	if hi == math.MaxInt {
		return "at least " + strconv.Itoa(lo)
	}
	return "between " + strconv.Itoa(lo) + " and " + strconv.Itoa(hi)
}

// Float returns a number in [lo, hi], nil if absent.
func (d *Decoder) Float(v Value, lo, hi float64) *float64 {
	if v.Absent() || !d.Want(v, Number) {
		return nil
	}
	f, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || f < lo || f > hi {
		d.Fail(v, "%s is out of range: must be between %g and %g", clip(v.raw), lo, hi)
		return nil
	}
	return &f
}

// ObjectRaw returns the bytes of an object, nil if absent.
func (d *Decoder) ObjectRaw(v Value) json.RawMessage {
	if v.Absent() || !d.Want(v, Object) {
		return nil
	}
	return v.Raw()
}

// Compact returns the object v without insignificant space, so that the same arguments sent back by different clients
// render alike; {} if absent.
func (d *Decoder) Compact(v Value) json.RawMessage {
	if v.Absent() {
		return json.RawMessage("{}")
	}
	if !d.Want(v, Object) {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v.raw); err != nil {
		panic("wire: compact of validated JSON: " + err.Error())
	}
	return b.Bytes()
}

// Stop strings: their number and length are bounded, because every generated character is compared with each.
const (
	maxStops     = 64
	maxStopBytes = 1024
)

// Stops returns stop strings, given as one string or a list. Empty ones, which would stop everything, are dropped.
func (d *Decoder) Stops(v Value) []string {
	if v.Kind() == String {
		return d.stop(nil, v)
	}
	var out []string
	for _, e := range d.Items(v) {
		out = d.stop(out, e)
	}
	if len(out) > maxStops {
		d.Fail(v, "%d stop strings are too many: at most %d", len(out), maxStops)
	}
	return out
}

func (d *Decoder) stop(out []string, v Value) []string {
	s := d.String(v)
	if len(s) > maxStopBytes {
		d.Fail(v, "a stop string may have at most %d bytes, this has %d", maxStopBytes, len(s))
	}
	if s == "" {
		return out
	}
	return append(out, s)
}

// clip shortens a value for an error text.
func clip(raw []byte) string {
	const n = 40
	if len(raw) > n {
		return string(raw[:n]) + "…"
	}
	return string(raw)
}

// Quote renders a client's word for an error text, shortened.
func Quote(s string) string {
	const n = 60
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return strconv.Quote(s)
}

// AppendText adds text to parts as one more paragraph: neighbouring texts become one part with a line break between
// them, so that a message cut into many pieces and the same message in one string are the same message.
func AppendText(parts []chat.Part, text string) []chat.Part {
	if text == "" {
		return parts
	}
	if n := len(parts); n > 0 && parts[n-1].Kind == chat.PartText {
		last := &parts[n-1]
		if !strings.HasSuffix(last.Text, "\n") {
			last.Text += "\n"
		}
		last.Text += text
		return parts
	}
	return append(parts, chat.Part{Kind: chat.PartText, Text: text})
}

// AppendSystem adds text to the leading system message, or makes one.
func AppendSystem(r *chat.Request, text string) {
	if len(r.Messages) > 0 && r.Messages[0].Role == chat.System {
		r.Messages[0].Parts = AppendText(r.Messages[0].Parts, text)
		return
	}
	system := chat.Message{Role: chat.System, Parts: AppendText(nil, text)}
	r.Messages = append([]chat.Message{system}, r.Messages...)
}

// JSONInstruction asks the model for JSON, of the given schema if there is one. It is a request, not a constraint.
func JSONInstruction(schema json.RawMessage) string {
	if schema == nil {
		return "Answer with one JSON object and nothing else: no explanation, no code fence."
	}
	return "Answer with one JSON document and nothing else: no explanation, no code fence. It must match this JSON Schema:\n" +
		string(schema)
}

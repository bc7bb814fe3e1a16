package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"time"

	"hearth/internal/chat"
)

// Decoder reads typed values and remembers the first error, so that decoding reads as a list of fields with one check
// at the end. After an error every method returns zero values and iterations stop.
type Decoder struct {
	err    *chat.Error
	parts  int // counted by Parts
	calls  int // counted by Call
	values int // counted by own
}

// Err returns the first error.
func (d *Decoder) Err() *chat.Error { return d.err }

// Fail records an Invalid error about v, unless there was one before.
func (d *Decoder) Fail(v Value, format string, args ...any) {
	if d.err == nil {
		d.err = chat.Invalidf(v.Path(), format, args...)
	}
}

// FailWith records an error of another kind, unless there was one before.
func (d *Decoder) FailWith(err *chat.Error) {
	if d.err == nil {
		d.err = err
	}
}

// FailAt is Fail for a value of which only the path is left.
func (d *Decoder) FailAt(path, format string, args ...any) {
	if d.err == nil {
		d.err = chat.Invalidf(path, format, args...)
	}
}

// Exceeds is Fail for a value that met bound b.
func (d *Decoder) Exceeds(b chat.Bound, v Value, format string, args ...any) {
	if d.err == nil {
		d.err = chat.Boundf(b, v.Path(), format, args...)
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

// Bounds of what a request may have many of, far above what any client sends: every element becomes more in memory than
// it is in the body.
const (
	MaxMessages = 100_000 // as Anthropic has it
	MaxParts    = 100_000 // of all messages, calls and what is inside results included
	MaxCalls    = 40_000  // tool calls and their results
	MaxTools    = 4096
	MaxTokenIDs = 1 << 21 // of all prompts
	MaxArgs     = 256     // variables of a template
	MaxValues   = 500_000 // JSON values, keys included, of all schemas, arguments and variables
)

// ItemsWithin is Items for an array of which most elements are allowed, by bound b; what is their name in the plural.
func (d *Decoder) ItemsWithin(v Value, b chat.Bound, most int, what string) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i, e := range d.Items(v) {
			if i == most {
				d.Exceeds(b, v, "too many %s: at most %d", what, most)
				return
			}
			if !yield(i, e) {
				return
			}
		}
	}
}

// FieldsWithin is Fields for an object of which most fields are allowed, by bound b; what is their name in the plural.
func (d *Decoder) FieldsWithin(v Value, b chat.Bound, most int, what string) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		n := 0
		for k, f := range d.Fields(v) {
			if n++; n > most {
				d.Exceeds(b, v, "too many %s: at most %d", what, most)
				return
			}
			if !yield(k, f) {
				return
			}
		}
	}
}

// Messages is Items for the messages of a request.
func (d *Decoder) Messages(v Value) iter.Seq2[int, Value] {
	return d.ItemsWithin(v, chat.BoundMessages, MaxMessages, "messages")
}

// Tools is Items for the tools of a request.
func (d *Decoder) Tools(v Value) iter.Seq2[int, Value] {
	return d.ItemsWithin(v, chat.BoundTools, MaxTools, "tools")
}

// Parts is Items for parts of messages, all of which a decoder counts together.
func (d *Decoder) Parts(v Value) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i, e := range d.Items(v) {
			if d.parts++; d.parts > MaxParts {
				d.Exceeds(chat.BoundParts, e, "too many parts of messages: at most %d in one request", MaxParts)
				return
			}
			if !yield(i, e) {
				return
			}
		}
	}
}

// Call counts a tool call or a result, which stands at v.
func (d *Decoder) Call(v Value) {
	if d.calls++; d.calls > MaxCalls {
		d.Exceeds(chat.BoundCalls, v, "too many tool calls and results: at most %d in one request", MaxCalls)
	}
}

// own counts JSON that is kept as the client sent it: schemas, arguments and variables, of which a template makes a tree of
// values. It reports false if there is too much of it.
func (d *Decoder) own(v Value) bool {
	if d.values += v.count(MaxValues); d.values > MaxValues {
		d.Exceeds(chat.BoundValues, v, "schemas, arguments and template variables hold too many JSON values: at most %d in one request", MaxValues)
	}
	return d.err == nil
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
	if v.Absent() {
		return nil
	}
	if n := d.Number(v, lo, hi); d.err == nil {
		return &n
	}
	return nil
}

// Number returns a required integer in [lo, hi].
func (d *Decoder) Number(v Value, lo, hi int) int {
	if !d.Want(v, Number) {
		return 0
	}
	n, err := strconv.Atoi(string(v.raw))
	if err != nil {
		f, ferr := strconv.ParseFloat(string(v.raw), 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			d.Fail(v, "expected an integer, got %s", clip(v.raw))
			return 0
		}
		n = int(f)
	}
	if n < lo || n > hi {
		d.Fail(v, "%s is out of range: must be %s", clip(v.raw), interval(lo, hi))
		return 0
	}
	return n
}

// mostTokens is the largest limit of tokens: float64 has not every whole number beyond it.
const mostTokens = 1 << 53

// Limit returns a limit of tokens, nil if absent. -1 is how many clients spell "what fits". A limit that is too large for a
// number here is as good as the largest one.
func (d *Decoder) Limit(v Value, least int) *int {
	if v.Absent() || !d.Want(v, Number) {
		return nil
	}
	n := mostTokens
	if f, _ := strconv.ParseFloat(string(v.raw), 64); f <= mostTokens { // infinite where float64 ends
		n = d.Number(v, math.MinInt, math.MaxInt)
	}
	if n < least && n != -1 {
		d.Fail(v, "%s is out of range: must be at least %d, or -1 for what fits", clip(v.raw), least)
	}
	return &n
}

// Strict reads limits of tokens again as OpenAI and Anthropic do: one below least is refused, and one that is too large is not
// lowered.
func Strict(req *chat.Request, least int, limits ...Value) *chat.Error {
	d := &Decoder{}
	for _, v := range limits {
		d.Int(v, least, math.MaxInt)
	}
	req.ClampMaxTokens = false
	return d.Err()
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

// Sampling reads the sampling parameters that are numbers. With clamp they are Anthropic's, and what is out of bounds is moved
// into them: clients send what other servers allow.
func (d *Decoder) Sampling(s *chat.Sampling, body Value, clamp bool) {
	for _, p := range chat.SamplingParameters {
		if clamp && !p.Messages {
			continue
		}
		v, x := body.Get(p.Name), p.Field(s)
		lo, hi, least, most := int(p.Least), int(p.Most), p.Least, p.Most
		if clamp {
			lo, hi, least, most = math.MinInt, math.MaxInt, math.Inf(-1), math.Inf(1)
		}
		switch {
		case v.Absent():
			continue
		case p.Whole:
			n := max(float64(d.Number(v, lo, hi)), 0)
			*x = &n
		default:
			*x = d.Float(v, least, most)
		}
		switch {
		case *x == nil:
		case clamp:
			**x = min(max(**x, p.Least), p.Most)
		case **x == 0 && p.Zero != 0:
			**x = p.Zero
		}
	}
}

// KeepAlive reads how long a model stays loaded after a request, as Ollama has it: seconds, or a text such as "5m", below 0 for
// as long as its memory is not needed; nil if absent.
func (d *Decoder) KeepAlive(v Value) *time.Duration {
	var seconds float64
	switch v.Kind() {
	case Missing, Null:
		return nil
	case Number:
		if f := d.Float(v, -math.MaxFloat64, math.MaxFloat64); f != nil {
			seconds = *f
		}
	case String:
		text := d.String(v)
		if t, err := time.ParseDuration(text); err == nil {
			return &t
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) {
			d.Fail(v, "expected seconds or a time such as 30s, 5m or 2h, 0 for not at all and -1 for as long as there is room, got %s", Quote(text))
		}
		seconds = f
	default:
		d.Fail(v, "expected a number of seconds or a string such as 5m, got %s", v.Kind())
	}
	t := time.Duration(min(max(seconds, -1), mostKeepAlive.Seconds()) * float64(time.Second))
	return &t
}

// mostKeepAlive is as good as any longer time.
const mostKeepAlive = 10 * 365 * 24 * time.Hour

// ObjectRaw returns a copy of the bytes of an object, nil if absent.
func (d *Decoder) ObjectRaw(v Value) json.RawMessage {
	if v.Absent() || !d.Want(v, Object) {
		return nil
	}
	return d.Copy(v)
}

// Copy returns a copy of the bytes of v: what is kept must not keep the body.
func (d *Decoder) Copy(v Value) json.RawMessage {
	if !d.own(v) {
		return nil
	}
	return bytes.Clone(v.raw)
}

// Compact returns the object v without insignificant space, so that the same arguments sent back by different clients
// render alike; {} if absent.
func (d *Decoder) Compact(v Value) json.RawMessage {
	if v.Absent() {
		return json.RawMessage("{}")
	}
	if !d.Want(v, Object) || !d.own(v) {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(v.raw))
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
	for _, e := range d.ItemsWithin(v, chat.BoundStops, maxStops, "stop strings") {
		out = d.stop(out, e)
	}
	return out
}

func (d *Decoder) stop(out []string, v Value) []string {
	s := d.String(v)
	if len(s) > maxStopBytes {
		d.Exceeds(chat.BoundStops, v, "a stop string may have at most %d bytes, this has %d", maxStopBytes, len(s))
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
func Quote(s string) string { return strconv.Quote(Clip(s, 60)) }

// JSONInstruction asks the model for JSON, of the given schema if there is one.
func JSONInstruction(schema json.RawMessage) string {
	if schema == nil {
		return "Answer with one JSON object and nothing else: no explanation, no code fence."
	}
	return "Answer with one JSON document and nothing else: no explanation, no code fence. It must match this JSON Schema:\n" +
		string(schema)
}

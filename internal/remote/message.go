package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"hearth/internal/budget"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/sample"
)

// appendPrompt encodes all of a prompt but its functions: of Constrain, that it is there.
func appendPrompt(b []byte, p *engine.Prompt) []byte {
	b = appendIDs(b, p.Tokens)
	b = appendInt(b, p.MaxTokens)
	b = appendIDs(b, p.StopIDs)
	b = appendParams(b, &p.Sampling)
	b = appendInt(b, p.Logprobs)
	b = appendMask(b, p.Mask)
	b = binary.AppendUvarint(b, p.Client)
	b = appendBool(b, p.Constrain != nil)
	b = appendIDs(b, p.Prediction)
	b = appendText(b, p.Request)
	b = appendBool(b, p.Background)
	b = append(b, p.Salt[:]...)
	b = binary.AppendUvarint(b, p.Session)
	b = binary.AppendUvarint(b, p.Party)
	b = appendBool(b, p.Marked)
	b = binary.AppendUvarint(b, uint64(len(p.Marks)))
	for _, m := range p.Marks {
		b = appendInt(b, m)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Images)))
	for i := range p.Images {
		b = appendImage(b, &p.Images[i])
	}
	return b
}

// appendImage encodes an image but for its patches, which go when they are asked for.
func appendImage(b []byte, img *engine.Image) []byte {
	b = append(appendInt(appendInt(b, img.At), img.EachPatch()), img.Digest[:]...)
	for _, n := range img.Grid {
		b = appendInt(b, n)
	}
	return b
}

// image reads what appendImage encoded.
func (c *contents) image() (img engine.Image) {
	img.At, img.Each = c.int(), c.int()
	copy(img.Digest[:], c.take(len(img.Digest)))
	for i := range img.Grid {
		img.Grid[i] = c.int()
	}
	return img
}

// leastImage is the bytes of an image without patches.
const leastImage = 2 + 32 + 3

// prompt reads what appendPrompt encoded.
func (c *contents) prompt() (p engine.Prompt, constrained bool) {
	p.Tokens = c.ids()
	p.MaxTokens = c.int()
	p.StopIDs = c.ids()
	p.Sampling = c.params()
	p.Logprobs = c.int()
	p.Mask = c.mask()
	p.Client = c.uint()
	constrained = c.bool()
	p.Prediction = c.ids()
	p.Request = c.text()
	p.Background = c.bool()
	p.Salt = c.salt()
	p.Session = c.uint()
	p.Party = c.uint()
	p.Marked = c.bool()
	if n := c.count(1); n > 0 {
		p.Marks = make([]int, n)
		for i := range p.Marks {
			p.Marks[i] = c.int()
		}
	}
	for range c.count(leastImage) {
		p.Images = append(p.Images, c.image())
	}
	return p, constrained
}

func (c *contents) salt() (s kv.Salt) {
	copy(s[:], c.take(len(s)))
	return s
}

func appendConstraint(b []byte, constraint engine.Constraint) []byte {
	b = appendIDs(appendMask(appendIDs(b, constraint.Forced), constraint.Mask), constraint.Ahead)
	return appendError(b, constraint.Err)
}

func (c *contents) constraint() (constraint engine.Constraint) {
	constraint.Forced, constraint.Mask, constraint.Ahead, constraint.Err = c.ids(), c.mask(), c.ids(), c.error()
	return constraint
}

// appendMask encodes a set that may be nil, which is not the empty one.
func appendMask(b []byte, only sample.Set) []byte {
	b = appendBool(b, only != nil)
	if only != nil {
		b = appendSet(b, only)
	}
	return b
}

func (c *contents) mask() sample.Set {
	if !c.bool() {
		return nil
	}
	return c.set()
}

// longestSet is the words of a vocabulary of two million, which is many times the largest there is.
const longestSet = 1 << 21 / 64

// appendSet encodes words as they are: most are all zeros or all ones, and a copy costs less than finding that out.
func appendSet(b []byte, s sample.Set) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// set is not nil even if it has no words: nil would restrict nothing.
func (c *contents) set() sample.Set {
	n := c.count(8)
	if n > longestSet {
		c.fail()
		n = 0
	}
	s, b := make(sample.Set, n), c.take(8*n)
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s
}

func appendParams(b []byte, p *sample.Params) []byte {
	for _, f := range append([]float32{p.Temperature, p.TopP, p.MinP}, p.Numbers[:]...) {
		b = appendFloat(b, f)
	}
	b = appendInt(b, p.TopK)
	b = appendIDs(b, p.XTCSpare)
	b = binary.AppendUvarint(b, p.Seed)
	b = binary.AppendUvarint(b, uint64(len(p.LogitBias)))
	for id, bias := range p.LogitBias {
		b = binary.AppendUvarint(b, uint64(uint32(id)))
		b = appendFloat(b, bias)
	}
	return b
}

func (c *contents) params() (p sample.Params) {
	p.Temperature, p.TopP, p.MinP = c.float(), c.float(), c.float()
	for i := range p.Numbers {
		p.Numbers[i] = c.float()
	}
	p.TopK = c.int()
	p.XTCSpare = c.ids()
	p.Seed = c.uint()
	if n := c.count(5); n > 0 {
		p.LogitBias = make(map[int32]float32, n)
		for range n {
			id := c.id()
			p.LogitBias[id] = c.float()
		}
	}
	return p
}

// What an update holds besides the stream's number.
const (
	hasTokens = 1 << iota
	hasLogprobs
	hasUsage
	hasInstead // of the usage; the rest of it changes more often
	hasEnd
)

// sent is what the other side knows of a stream.
type sent struct{ usage engine.Usage }

// appendUpdate encodes an update of a stream. Without usage the other side counts tokens itself.
func (s *sent) appendUpdate(b []byte, stream uint64, n *engine.Update, logprobs bool) []byte {
	s.usage.Generated += len(n.Tokens)
	flags := byte(0)
	if len(n.Tokens) > 0 {
		flags |= hasTokens
		if logprobs {
			flags |= hasLogprobs
		}
	}
	if s.usage != n.Usage {
		flags |= hasUsage
		if s.usage.Instead != n.Usage.Instead {
			flags |= hasInstead
		}
		s.usage = n.Usage
	}
	if n.Reason != engine.Running {
		flags |= hasEnd
	}
	b = binary.AppendUvarint(b, stream)
	b = append(b, flags)
	if flags&hasTokens != 0 {
		b = binary.AppendUvarint(b, uint64(len(n.Tokens)))
		for i := range n.Tokens {
			b = appendToken(b, &n.Tokens[i], logprobs)
		}
	}
	if flags&hasUsage != 0 {
		b = appendUsage(b, &n.Usage)
	}
	if flags&hasInstead != 0 {
		b = appendText(b, string(n.Usage.Instead))
	}
	if flags&hasEnd != 0 {
		b = append(b, byte(n.Reason))
		b = appendInt(b, int(n.StopID))
		b = appendError(b, n.Err)
	}
	return b
}

// known is its counterpart on the reading side.
type known struct {
	usage engine.Usage
	left  int // tokens that may still come
}

// update reads what appendUpdate encoded, behind the stream's number. More tokens than were asked for make no sense.
func (k *known) update(c *contents) (n engine.Update) {
	n.StopID = -1
	flags := c.byte()
	if flags >= hasEnd<<1 || flags&hasLogprobs != 0 && flags&hasTokens == 0 {
		c.fail()
	}
	if flags&hasTokens != 0 {
		count := c.count(1)
		if count > k.left {
			c.fail()
			return n
		}
		k.left -= count
		n.Tokens = make([]engine.Token, count)
		for i := range n.Tokens {
			n.Tokens[i] = c.token(flags&hasLogprobs != 0)
		}
		k.usage.Generated += count
	}
	if flags&hasUsage != 0 {
		k.readUsage(c)
	}
	if flags&hasInstead != 0 {
		k.usage.Instead = engine.Tokens(c.text())
	}
	n.Usage = k.usage
	if flags&hasEnd != 0 {
		n.Reason = engine.Reason(c.byte())
		n.StopID = int32(c.int())
		n.Err = c.error()
		if n.Reason == engine.Running || n.Reason > engine.Error || (n.Err != nil) != (n.Reason == engine.Cancel || n.Reason == engine.Error) {
			c.fail()
		}
	}
	return n
}

func appendToken(b []byte, t *engine.Token, logprobs bool) []byte {
	v := uint64(uint32(t.ID)) << 1
	if t.More {
		v |= 1
	}
	b = binary.AppendUvarint(b, v)
	if !logprobs {
		return b
	}
	b = appendFloat(b, t.Logprob)
	return appendTop(b, t.Top)
}

func (c *contents) token(logprobs bool) (t engine.Token) {
	v := c.uint()
	if v>>1 > math.MaxUint32 {
		c.fail()
	}
	t.ID, t.More = int32(uint32(v>>1)), v&1 != 0
	if logprobs {
		t.Logprob = c.float()
		t.Top = c.top()
	}
	return t
}

func appendTop(b []byte, top []sample.Logprob) []byte {
	b = binary.AppendUvarint(b, uint64(len(top)))
	for _, l := range top {
		b = binary.AppendUvarint(b, uint64(uint32(l.ID)))
		b = appendFloat(b, l.Logprob)
	}
	return b
}

func (c *contents) top() []sample.Logprob {
	n := c.count(5)
	if n == 0 {
		return nil
	}
	top := make([]sample.Logprob, n)
	for i := range top {
		top[i] = sample.Logprob{ID: c.id(), Logprob: c.float()}
	}
	return top
}

// appendUsage encodes all but Instead. Times are how long after the submission they were, so that no two clocks are compared. 0
// is no time.
func appendUsage(b []byte, u *engine.Usage) []byte {
	for _, n := range []int{u.Prompt, u.Cached, u.Disk, u.Added, u.Longer, u.Ran, u.Generated, u.Drafted, u.Accepted} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = append(b, byte(u.Hit))
	b = appendBool(b, u.Own)
	b = append(b, byte(u.Lack))
	b = binary.AppendUvarint(b, uint64(u.Matched))
	for _, t := range []time.Time{u.Started, u.First, u.Ended} {
		after := int64(0)
		if !t.IsZero() {
			after = max(int64(t.Sub(u.Submitted)), 1)
		}
		b = binary.AppendUvarint(b, uint64(after))
	}
	return b
}

func (k *known) readUsage(c *contents) {
	u := &k.usage
	for _, n := range []*int{&u.Prompt, &u.Cached, &u.Disk, &u.Added, &u.Longer, &u.Ran, &u.Generated, &u.Drafted, &u.Accepted} {
		v := c.uint()
		if v > math.MaxInt32 {
			c.fail()
			return
		}
		*n = int(v)
	}
	if u.Hit = kv.Kind(c.byte()); u.Hit > kv.LCP {
		u.Hit = kv.Miss
		c.fail()
	}
	u.Own = c.bool()
	if u.Lack = engine.Lack(c.byte()); u.Lack > engine.LackMemory {
		u.Lack = engine.LackNone
		c.fail()
	}
	if n := c.uint(); n > math.MaxInt64 {
		c.fail()
	} else {
		u.Matched = time.Duration(n)
	}
	for _, t := range []*time.Time{&u.Started, &u.First, &u.Ended} {
		if after := c.uint(); after > math.MaxInt64 {
			c.fail()
		} else if after > 0 {
			*t = u.Submitted.Add(time.Duration(after))
		}
	}
}

// Errors that mean something to the callers of an engine keep their types.
const (
	noError = iota
	otherError
	closedError
	canceledError
	deadlineError
	logitsError
	queueFullError
	clientFullError
	tooLongError
	stepError
	memoryError
	shortError
	imageError
	lastError = imageError
)

func appendError(b []byte, err error) []byte {
	var full *engine.QueueFullError
	var many *engine.ClientFullError
	var long *engine.TooLongError
	var step *engine.StepError
	var memory *engine.NoMemoryError
	var short *budget.ShortError
	var image *engine.ImageError
	switch {
	case err == nil:
		return append(b, noError)
	case errors.As(err, &full):
		return appendInt(appendInt(append(b, queueFullError), full.Running), full.Waiting)
	case errors.As(err, &many):
		return appendInt(append(b, clientFullError), many.Live)
	case errors.As(err, &long):
		return appendInt(appendInt(append(b, tooLongError), long.Tokens), long.Max)
	case errors.As(err, &image):
		return appendText(appendInt(append(b, imageError), image.Image), image.Err.Error())
	case errors.As(err, &step):
		return appendText(appendText(append(b, stepError), step.Err.Error()), step.Stack)
	case errors.As(err, &memory):
		return appendText(append(b, memoryError), appendJSON(nil, memory.Err))
	case errors.As(err, &short):
		return appendText(append(b, shortError), appendJSON(nil, short))
	}
	for k, e := range plainErrors {
		if errors.Is(err, e) && err.Error() == e.Error() {
			return append(b, k)
		}
	}
	return appendText(append(b, otherError), err.Error())
}

var plainErrors = map[byte]error{
	closedError: engine.ErrClosed, canceledError: context.Canceled, deadlineError: context.DeadlineExceeded, logitsError: sample.ErrLogits,
}

func (c *contents) error() error {
	switch k := c.byte(); k {
	case noError:
		return nil
	case otherError:
		return errors.New(c.text())
	case queueFullError:
		return &engine.QueueFullError{Running: c.int(), Waiting: c.int()}
	case clientFullError:
		return &engine.ClientFullError{Live: c.int()}
	case tooLongError:
		return &engine.TooLongError{Tokens: c.int(), Max: c.int()}
	case imageError:
		return &engine.ImageError{Image: c.int(), Err: errors.New(c.text())}
	case stepError:
		return &engine.StepError{Err: errors.New(c.text()), Stack: c.bytes()}
	case memoryError:
		return &engine.NoMemoryError{Err: c.shortError()}
	case shortError:
		return c.shortError()
	default:
		if err := plainErrors[k]; err != nil {
			return err
		}
		c.fail()
		return errFrame
	}
}

// shortError is one as JSON in a text.
func (c *contents) shortError() *budget.ShortError {
	e := &budget.ShortError{}
	if json.Unmarshal(c.take(c.count(1)), e) != nil {
		c.fail()
	}
	return e
}

// appendScores encodes scores of positions of a prompt.
func appendScores(b []byte, scores []engine.Score) []byte {
	b = binary.AppendUvarint(b, uint64(len(scores)))
	for i := range scores {
		s := &scores[i]
		b = binary.AppendUvarint(b, uint64(uint32(s.Argmax)))
		b = appendFloat(b, s.Logprob)
		b = appendTop(b, s.Top)
	}
	return b
}

func (c *contents) scores() []engine.Score {
	scores := make([]engine.Score, c.count(6))
	for i := range scores {
		scores[i] = engine.Score{Argmax: c.id(), Logprob: c.float(), Top: c.top()}
	}
	return slices.Clip(scores)
}

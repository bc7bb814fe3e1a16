package generate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"hearth/internal/sample"
	"hearth/internal/tokenizer"
)

// repeats counts, for every length n up to longest, how many tokens at the end of a reply equal the one n places before.
type repeats struct {
	longest int
	same    []int // same[n-1] counts for length n
}

// add takes the tokens of a reply so far, of which the last is new.
func (r *repeats) add(ids []int32) {
	last := len(ids) - 1
	if len(r.same) < min(r.longest, last) {
		r.same = append(r.same, 0)
	}
	for i := range r.same {
		if ids[last] == ids[last-1-i] {
			r.same[i]++
		} else {
			r.same[i] = 0
		}
	}
}

// shortest is the length of the shortest run, of from to most tokens, whose repetitions fill the last tokens(length) tokens of
// the reply; 0 if there is none.
func (r *repeats) shortest(from, most int, tokens func(length int) int) int {
	for n := from; n <= min(most, len(r.same)); n++ {
		if r.same[n-1]+n >= tokens(n) {
			return n
		}
	}
	return 0
}

// found looks at what the tokens of a reply so far repeat.
func (l Loop) found(r *repeats) bool {
	return l.MinCount > 1 && r.shortest(max(l.MinSize, 1), l.MaxSize, func(length int) int { return length * l.MinCount }) > 0
}

// circles notices that a reply goes round in them.
type circles struct {
	loop    Loop
	runaway runaway
	repeats repeats
}

// newCircles looks for those of a Loop, and with ends for a runaway.
func newCircles(loop Loop, ends bool, prompt string) circles {
	c := circles{loop, runaway{off: !ends, prompt: prompt, asked: -1}, repeats{longest: loop.MaxSize}}
	if ends {
		c.repeats.longest = max(c.repeats.longest, runawayRun)
	}
	return c
}

// found looks at the tokens of a reply so far.
func (c *circles) found(tok *tokenizer.Tokenizer, ids []int32) bool {
	return c.loop.found(&c.repeats) || c.runaway.found(tok, &c.repeats, ids)
}

const (
	runawayTokens = 1024 // tokens that repeat one run
	runawayRun    = 64   // tokens of that run, at most
)

// runaway finds greedy replies that will not end. Such a reply goes on with the likeliest token. Once it has repeated one run
// so often that it sees little else, it will repeat that run for ever, unless the prompt asks for it: then the run stands in
// the prompt. It does not look at sampled replies, which leave a loop in the end, at data (arguments, forms), or at what the
// parser holds back, which may become data.
type runaway struct {
	off    bool // such replies are let go on
	prompt string
	quiet  int // tokens since the parser last gave a piece
	asked  int // where the run begins that was found in the prompt; -1: none was
}

// greedy tells whether a loop in the reply stays one. A frequency penalty grows with each round and ends it; other penalties
// do not.
func greedy(p sample.Params) bool {
	return (p.Temperature == 0 || p.TopK == 1) && p.Numbers[sample.FrequencyPenalty] == 0 && p.Numbers[sample.XTCProbability] == 0
}

// found looks at the tokens of a reply so far.
func (w *runaway) found(tok *tokenizer.Tokenizer, r *repeats, ids []int32) bool {
	if w.off {
		return false
	}
	w.quiet++
	n := r.shortest(1, runawayRun, func(int) int { return runawayTokens })
	if n == 0 || w.quiet > runawayRun {
		return false
	}
	begins := len(ids) - r.same[n-1] - n
	if begins == w.asked {
		return false
	}
	run := make([]string, n)
	for i, id := range ids[len(ids)-n:] {
		run[i] = string(tok.Bytes(id))
	}
	if !standsIn(w.prompt, run) {
		return true
	}
	w.asked = begins
	return false
}

// standsIn tells whether a text has a run, from whichever token it is read: as words of its own, or twice in a row. A run
// without letters and digits must stand there twice, because most texts have it once; one of blanks never counts.
func standsIn(text string, run []string) bool {
	for i := range run {
		round := strings.Join(run[i:], "") + strings.Join(run[:i], "")
		once := strings.TrimSpace(round)
		switch {
		case once == "":
			return false
		case strings.Contains(text, strings.TrimSpace(round+round)), strings.ContainsFunc(once, isWord) && hasWords(text, once):
			return true
		}
	}
	return false
}

// hasWords tells whether words stand in a text and are not parts of longer ones.
func hasWords(text, words string) bool {
	first, _ := utf8.DecodeRuneInString(words)
	last, _ := utf8.DecodeLastRuneInString(words)
	for at := 0; ; {
		i := strings.Index(text[at:], words)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(words):])
		if !(isWord(first) && isWord(before)) && !(isWord(last) && isWord(after)) {
			return true
		}
		at++
	}
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

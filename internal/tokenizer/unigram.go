package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// unigram is the Unigram language model: of all ways to cut a word into tokens, the
// one with the highest sum of scores (the earliest found on ties).
type unigram struct {
	index    *tokenIndex
	trie     func() *trie // waits while it is being built
	score    []float64    // by id
	unkScore float64      // of a character that is no token
	unk      int32
	fallback bool // unknown characters become their bytes' tokens
	unit     [256]int32
	single   bool // sums are kept as float32, as the sentencepiece library does
	cache    wordCache
}

// path is the best way to cut the word up to some byte.
type path struct {
	score float64
	from  int32 // where the last token begins; -1: no way is known yet
	id    int32
}

// unkPenalty is how much worse an unknown character is than the worst token.
const unkPenalty = 10

func (m *unigram) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	return m.cache.appendWord(dst, w, sc, (*wordCutter)(m))
}

// wordCutter is unigram without the cache.
type wordCutter unigram

func (m *wordCutter) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	sc.watch.whole(len(w))
	best := (*unigram)(m).segment(sc.paths, w, sc.watch)
	sc.paths = best
	start := len(dst)
	for end := len(w); end > 0; {
		from := int(best[end].from)
		id := best[end].id
		if id == m.unk {
			for from > 0 && best[from].id == m.unk {
				from = int(best[from].from)
			}
			dst = (*unigram)(m).appendUnknown(dst, w[from:end])
		} else {
			dst = append(dst, id)
		}
		end = from
	}
	slices.Reverse(dst[start:])
	return dst
}

// segment finds the best path to every byte of w; buf is reused for the result.
func (m *unigram) segment(buf []path, w string, on *watch) []path {
	trie := m.trie()
	best := append(buf[:0], path{})
	for range len(w) {
		best = append(best, path{from: -1})
	}
	for i := 0; i < len(w); {
		_, size := utf8.DecodeRuneInString(w[i:])
		on.pass(size)
		here := best[i].score
		known := false
		node := int32(0)
		for j := i; j < len(w); {
			if node = trie.step(node, w[j]); node == 0 {
				break
			}
			j++
			if id := trie.ids[node]; id >= 0 {
				m.offer(&best[j], here+m.score[id], i, id)
				known = known || j == i+size
			}
		}
		if !known {
			sum := here + m.unkScore
			if m.single {
				sum = float64(float32(sum))
			}
			m.offer(&best[i+size], sum, i, m.unk)
		}
		i += size
	}
	return best
}

func (m *unigram) offer(p *path, score float64, from int, id int32) {
	if p.from >= 0 && score <= p.score {
		return
	}
	if m.single {
		score = float64(float32(score))
	}
	*p = path{score, int32(from), id}
}

// appendUnknown appends, last one first, what a run of unknown characters becomes.
func (m *unigram) appendUnknown(dst []int32, run string) []int32 {
	if id, ok := m.index.find(run); ok {
		return append(dst, id)
	}
	if m.fallback && !slices.ContainsFunc([]byte(run), func(b byte) bool { return m.unit[b] < 0 }) {
		for i := len(run) - 1; i >= 0; i-- {
			dst = append(dst, m.unit[run[i]])
		}
		return dst
	}
	return append(dst, m.unk)
}

// readScores reads a Unigram vocabulary, a list of pairs of text and score; an id is
// a place in the list.
func readScores(r *jsonReader) (vocabulary, []float64, error) {
	var b vocabBuilder
	var scores []float64
	err := r.array(func() error {
		parts := 0
		err := r.array(func() error {
			if parts++; parts == 1 {
				text, err := r.str()
				b.add(text, int32(len(scores)))
				return err
			}
			raw, err := r.skip()
			if err != nil {
				return err
			}
			score, err := strconv.ParseFloat(string(raw), 64)
			if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
				return fmt.Errorf("token %d has score %s", len(scores), quoted(string(raw)))
			}
			scores = append(scores, score)
			return nil
		})
		if err == nil && (parts != 2 || len(scores) != len(b.entries)) {
			err = fmt.Errorf("entry %d is not a token and its score", len(b.entries)-1)
		}
		if len(scores) > maxTokens {
			err = fmt.Errorf("there are more than %d tokens", maxTokens)
		}
		return err
	})
	if err != nil {
		return vocabulary{}, nil, err
	}
	v, err := b.build()
	return v, scores, err
}

// newUnigram makes the model of a vocabulary with scores by id.
func newUnigram(v *vocabulary, scores []float64, unk *int32, fallback bool) (*unigram, error) {
	if unk == nil {
		return nil, unsupported("model", "Unigram without unk_id")
	}
	if !v.has(*unk) {
		return nil, fmt.Errorf("model: unk_id %d is not in the vocabulary", *unk)
	}
	trie, err := trieLater(v, nil)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	m := &unigram{index: &v.index, trie: trie, score: scores, unk: *unk, fallback: fallback,
		unit: byteTokens(&v.index), cache: newWordCache()}
	lowest := math.Inf(1)
	for _, s := range scores {
		lowest = min(lowest, s)
	}
	m.unkScore = lowest - unkPenalty
	return m, nil
}

// byteTokens returns the ids of <0x00> to <0xFF>, -1 where there is none.
func byteTokens(x *tokenIndex) (unit [256]int32) {
	for b := range unit {
		unit[b], _ = x.find(fmt.Sprintf("<0x%02X>", b))
	}
	return unit
}

package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/tokenizer"
)

// segmenter takes texts and their ids apart.
//
// A text is cut before the special tokens at which encoding starts afresh (tokenizer.Anchors), so that the ids of a piece
// of it do not depend on what comes before.
type segmenter struct {
	tok     *tokenizer.Tokenizer
	guard   *Guard
	anchors *tokenizer.Anchors
	starts  [256]bool // bytes at which segment has to look closer
}

func newSegmenter(g *Guard) segmenter {
	var ids []int32
	for _, text := range g.texts {
		if id, ok := g.tok.ID(text); ok {
			ids = append(ids, id)
		}
	}
	c := segmenter{tok: g.tok, guard: g, anchors: g.tok.Anchors(ids)}
	c.starts = *c.anchors.Starts()
	c.starts[markOpen[0]] = true
	return c
}

// segment gives the places where the pieces of a text begin, and its end.
func (c *segmenter) segment(text string) []int {
	cuts := make([]int, 1, 16)
	for i := 0; i < len(text); {
		if !c.starts[text[i]] {
			i++
			continue
		}
		switch n := c.anchors.At(text[i:]); {
		case n > 0:
			if i > 0 {
				cuts = append(cuts, i)
			}
			i += n
		case strings.HasPrefix(text[i:], markOpen):
			i += len(markOpen)
			i += c.guard.quoted(text[i:])
		default:
			i++
		}
	}
	if len(text) > 0 {
		cuts = append(cuts, len(text))
	}
	return cuts
}

// divide cuts an answer's text, the first piece of which begins with head ids of the prompt; nil if text and ids do not
// fall into the same pieces.
func (c *segmenter) divide(text string, ids []int32, head int) []*piece {
	cuts := c.segment(text)
	var fresh []*piece
	for i, from := 1, 0; i < len(cuts); i++ {
		to := max(from+1, head)
		for to < len(ids) && !c.anchor(ids[to]) {
			to++
		}
		if from >= len(ids) || i == len(cuts)-1 && to < len(ids) {
			return nil // an anchor that other tokens spell across their seams
		}
		own := max(head-from, 0)
		fresh = append(fresh, &piece{edge: edge{text: text[cuts[i-1]:cuts[i]], ids: ids[from:to], said: true, head: own, generated: to - from - own}})
		from = to
	}
	return fresh
}

// anchor tells whether a token begins a piece.
func (c *segmenter) anchor(id int32) bool {
	if !c.tok.Special(id) {
		return false
	}
	name, _ := c.tok.Token(id)
	return c.guard.special[name] && c.anchors.At(name) == len(name)
}

// spell gives the text that generated ids stand for, with the guard's marks around what would otherwise read as a
// special token: the form in which a template prints it when the client sends it back.
func (c *segmenter) spell(ids []int32) string {
	var out, run strings.Builder
	flush := func() {
		out.WriteString(c.guard.wrapper.Replace(run.String()))
		run.Reset()
	}
	for _, id := range ids {
		if c.tok.Special(id) {
			flush()
			out.WriteString(c.word(id))
			continue
		}
		run.Write(c.tok.Bytes(id))
	}
	flush()
	return out.String()
}

// word is the text of one token.
func (c *segmenter) word(id int32) string {
	if c.tok.Special(id) {
		name, _ := c.tok.Token(id)
		return name
	}
	return string(c.tok.Bytes(id))
}

// splice gives the ids of the piece text, of which encoded are those that encoding gives: where an answer that was
// generated here begins with the same text, its ids, up to the last place at which a token of both ends; from there on
// the encoded ones. generated counts the ids taken that were generated.
func (c *segmenter) splice(text string, encoded []int32, answers []edge) (ids []int32, generated int) {
	var best *edge
	same := 0
	for i := range answers {
		if n := commonBytes(text, answers[i].text); n > same {
			best, same = &answers[i], n
		}
	}
	if best == nil {
		return encoded, 0
	}
	// Compared are places in the text without marks, because tokens are oblivious of them.
	for same < len(text) && same > 0 && !utf8.RuneStart(text[same]) {
		same--
	}
	same = len(Unmark(text[:same]))
	theirs := c.ends(Unmark(best.text), best.ids)
	ours := c.ends(Unmark(text), encoded)
	i, j := len(theirs)-1, len(ours)-1
	for i >= best.head && j >= 0 {
		switch a, b := theirs[i], ours[j]; {
		case a < 0 || a > same || a > b && b >= 0:
			i--
		case b < 0 || b > a:
			j--
		default:
			for i > 0 && theirs[i-1] == a { // tokens that stand for nothing stay with what follows
				i--
			}
			for j > 0 && ours[j-1] == a {
				j--
			}
			if i < best.head {
				return encoded, 0
			}
			return slices.Concat(best.ids[:i+1], encoded[j+1:]), i + 1 - best.head
		}
	}
	return encoded, 0
}

func commonBytes(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// ends tells where in text, which has no marks, each of its ids ends; -1 where that is not certain, as where normalising
// changed the text. A space that tokens have and the text lacks is one that some tokenizers put before a text.
func (c *segmenter) ends(text string, ids []int32) []int {
	out := make([]int, len(ids))
	at, lost := 0, false
	absent := map[int32]bool{} // special tokens that the rest does not have: it is searched once for each
	for i, id := range ids {
		w, rest := c.word(id), text[at:]
		switch {
		case !lost && strings.HasPrefix(rest, w):
			at += len(w)
		case !lost && strings.HasPrefix(w, " ") && strings.HasPrefix(rest, w[1:]):
			at += len(w) - 1
		default: // the next special token tells the place again; it may be this one, with white space before it that it takes along
			lost = true
			if c.tok.Special(id) && !absent[id] {
				n := strings.Index(rest, w)
				if absent[id] = n < 0; n >= 0 {
					at, lost = at+n+len(w), false
				}
			}
		}
		if out[i] = at; lost {
			out[i] = -1
		}
	}
	return out
}

// marked turns a place in a text without marks into one in the text with them.
func marked(text string, clean int) int {
	at := 0
	for at < len(text) {
		if strings.HasPrefix(text[at:], markOpen) || strings.HasPrefix(text[at:], markClose) {
			at += len(markOpen)
			continue
		}
		if clean == 0 {
			break
		}
		clean--
		at++
	}
	return at
}

package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// spell gives the text that generated ids stand for, with the guard's marks around what would otherwise read as a
// special token: the form in which a template prints it when the client sends it back.
func (h *History) spell(ids []int32) string {
	var out, run strings.Builder
	flush := func() {
		out.WriteString(h.guard.wrapper.Replace(run.String()))
		run.Reset()
	}
	for _, id := range ids {
		if h.tok.Special(id) {
			flush()
			out.WriteString(h.word(id))
			continue
		}
		run.Write(h.tok.Bytes(id))
	}
	flush()
	return out.String()
}

// word is the text of one token.
func (h *History) word(id int32) string {
	if h.tok.Special(id) {
		name, _ := h.tok.Token(id)
		return name
	}
	return string(h.tok.Bytes(id))
}

// splice gives the ids of the piece text, of which encoded are those that encoding gives: where an answer that was
// generated here begins with the same text, its ids, up to the last place at which a token of both ends; from there on
// the encoded ones. generated counts the ids taken that were generated.
func (h *History) splice(text string, encoded []int32, answers []piece) (ids []int32, generated int) {
	var best *piece
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
	theirs := h.ends(Unmark(best.text), best.ids)
	ours := h.ends(Unmark(text), encoded)
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
func (h *History) ends(text string, ids []int32) []int {
	out := make([]int, len(ids))
	at, lost := 0, false
	absent := map[int32]bool{} // special tokens that the rest does not have: it is searched once for each
	find := func(id int32, rest, w string) int {
		if absent[id] {
			return -1
		}
		n := strings.Index(rest, w)
		absent[id] = n < 0
		return n
	}
	for i, id := range ids {
		w := h.word(id)
		rest := text[at:]
		switch {
		case lost && !h.tok.Special(id):
			out[i] = -1
			continue
		case lost:
			n := find(id, rest, w)
			if n < 0 {
				out[i] = -1
				continue
			}
			at, lost = at+n+len(w), false
		case strings.HasPrefix(rest, w):
			at += len(w)
		case strings.HasPrefix(w, " ") && strings.HasPrefix(rest, w[1:]):
			at += len(w) - 1
		default:
			lost = true
			out[i] = -1
			if h.tok.Special(id) { // white space that the token takes with it
				if n := find(id, rest, w); n >= 0 {
					at, lost = at+n+len(w), false
					out[i] = at
				}
			}
			continue
		}
		out[i] = at
	}
	return out
}

package transcript

import (
	"errors"
	"strings"
)

// A template writes the mark of an image, a token, where one stands. The prompt's text has an opening mark of the guard before
// each: so it is told from the same token in an answer, which a model may generate, and from a client's text, which has a closing
// mark behind it as well.

// ImageMarks finds the marks of images that a template has written: all that are not a client's text.
func (g *Guard) ImageMarks(text string) []int {
	var all []int
	if g.image == "" {
		return nil
	}
	for at := 0; ; {
		i := strings.Index(text[at:], g.image)
		if i < 0 {
			return all
		}
		i += at
		if at = i + len(g.image); !strings.HasSuffix(text[:i], markOpen) || !strings.HasPrefix(text[at:], markClose) {
			all = append(all, i)
		}
	}
}

// ImagePlace is what stands in a draft's text for an image, in the place of the mark alone.
func (g *Guard) ImagePlace() string { return markOpen + g.image }

// errPlaces is of a tokenizer that does not read the marks of images as the one token that they are.
var errPlaces = errors.New("the places of images cannot be told in the prompt's tokens")

// Places finds the ids of t that stand for images. Those of other marks that were generated are none.
func (g *Guard) Places(t *Tokens) ([]int, error) {
	marks := g.ImageMarks(t.text)
	if len(marks) == 0 {
		return nil, nil
	}
	id, _ := g.tok.ID(g.image)
	var all []int
	n := 0
	for i, x := range t.IDs {
		if x != id {
			continue
		}
		if n == len(marks) {
			return nil, errPlaces
		}
		if strings.HasSuffix(t.text[:marks[n]], markOpen) {
			all = append(all, i)
		}
		n++
	}
	if n != len(marks) {
		return nil, errPlaces
	}
	return all, nil
}

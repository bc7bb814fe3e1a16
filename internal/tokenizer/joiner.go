package tokenizer

import "fmt"

// joiner finds the pairs that make up tokens, for vocabularies that come without a
// list of merges.
type joiner struct {
	index *tokenIndex
	seam  seam
	list  []rankedMerge
}

type rankedMerge struct {
	merge
	rank uint32
}

// add adds the merges of two usable tokens to the token id.
func (j *joiner) add(text string, id int32, rank uint32, usable func(int32) bool) error {
	if len(text) > maxJoinedBytes {
		return fmt.Errorf("token %s has %d bytes, more than %d", quoted(text), len(text), maxJoinedBytes)
	}
	for cut := range text {
		left, ok := j.index.find(text[:cut])
		if !ok || !usable(left) {
			continue
		}
		if right, ok := j.index.find(text[cut:]); ok && usable(right) {
			j.seam.merge([]byte(text[:cut]), []byte(text[cut:]))
			j.list = append(j.list, rankedMerge{merge{left, right, id}, rank})
		}
	}
	return nil
}

func (j *joiner) table() mergeTable {
	t := newMergeTable(len(j.list))
	for _, m := range j.list {
		t.set(m.left, m.right, m.rank, uint32(m.id))
	}
	return t
}

package sample

// Set is a set of token ids: bit id%64 of word id/64. Ids beyond its end are not in it. Where it restricts tokens, nil is
// no restriction, and an empty one leaves none.
type Set []uint64

// Has reports whether id is in the set.
func (s Set) Has(id int32) bool {
	at := int(id >> 6)
	return id >= 0 && at < len(s) && s[at]>>(id&63)&1 != 0
}

// Add puts in an id, for which the set must have a word.
func (s Set) Add(id int32) { s[id>>6] |= 1 << (id & 63) }

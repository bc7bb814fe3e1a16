package kernel

import "fmt"

// revisions count, by precision, how often products have got other bits.
var revisions = [...]int{Fast: 1, Floats: 1, Fine: 1, Half: 1, Outliers: 3}

// attentionRevision counts likewise how often attention has.
const attentionRevision = 4

// Revisions are the same as long as the bits of products and attention are, on one implementation: what was computed under
// others, and kept, is not to be gone on from.
func Revisions() string { return fmt.Sprint(revisions, attentionRevision) }

package grammar

// Budget bounds the work of the forms of one reply: how often a byte is taken on a way, alternatives that are begun and ways
// that are compared. A schema decides how much of that a token costs, so it is charged to who sent it. It belongs to one
// goroutine.
type Budget struct{ left int }

// What replies may cost in steps, of which a processor does some two hundred million a second. Where any value may begin, which
// is the most that most schemas ask for, a vocabulary of 150,000 tokens costs a hundred and forty thousand.
const (
	burst    = 16 << 20 // at once
	perToken = 1 << 20  // comes back with each token
)

// NewBudget is that of one of n replies to a request.
func NewBudget(n int) *Budget { return &Budget{burst / max(n, 1)} }

// Token gives back what a token brings, unless all was spent: that cannot be mended.
func (u *Budget) Token() {
	if !u.Spent() {
		u.left = min(u.left+perToken, burst)
	}
}

// Spent tells whether nothing is left. What a Matcher says then means nothing.
func (u *Budget) Spent() bool { return u.left <= 0 }

func (u *Budget) spend(n int) { u.left -= n }

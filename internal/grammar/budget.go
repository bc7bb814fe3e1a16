package grammar

// Budget bounds the work of masks for one reply: bytes taken, alternatives begun and ways compared. The form decides how much a
// token costs, so the work is charged to its sender. A Budget belongs to one goroutine.
type Budget struct{ left int }

// Bounds of a reply in steps, of which a processor does some two hundred million a second. A mask over 150,000 tokens where any
// value may begin, the most that most schemas ask for, costs 140,000.
const (
	burst    = 16 << 20 // at once
	perToken = 1 << 20  // comes back with each token
)

// NewBudget is that of one of n replies to a request.
func NewBudget(n int) *Budget { return &Budget{burst / max(n, 1)} }

// Steps is a budget of so many steps, for what a reply does not depend on.
func Steps(n int) *Budget { return &Budget{n} }

// Token adds the steps that come with a token. A budget that was spent stays spent.
func (u *Budget) Token() {
	if !u.Spent() {
		u.left = min(u.left+perToken, burst)
	}
}

// Spent tells whether nothing is left. What a matcher says then means nothing.
func (u *Budget) Spent() bool { return u.left <= 0 }

func (u *Budget) spend(n int) { u.left -= n }

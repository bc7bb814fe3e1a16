package backend

// What roundings cost published models, in a phrase each, for the lines at the start and the pages that name them. The tables
// behind the figures are in docs/formats.md and docs/cache.md, which TestRoundings holds to these phrases.
var (
	roundings = [...]string{
		Fast:     "KL to float32 1.7e-3 to 5.7e-3, 95 to 98 % of greedy tokens the same on published models in 4 and 8 bits",
		Outliers: "KL to float32 3.1e-4 to 1.0e-3, 98 to 99 % of greedy tokens the same on published models in 4 and 8 bits",
		Exact:    "KL to float32 below 1e-7, the same greedy tokens on published models in 4 and 8 bits",
		Float32:  "",
	}
	vectorRoundings = [...]string{
		Fast:     "cosine to float32 0.998 or more on a published model in 4 and 8 bits",
		Outliers: "cosine to float32 0.9998 or more on a published model in 4 and 8 bits",
		Exact:    "cosine to float32 0.9999999 or more on a published model in 4 and 8 bits",
		Float32:  "",
	}
	halfRounding       = "KL to float32 1.2e-3 on a published model"
	halfVectorRounding = "cosine to float32 0.9999 or more on a published model"

	kvRoundings = map[int]string{
		8: "KL to float32 keys and values 4e-4 to 2.2e-3 on published models",
		4: "KL to float32 keys and values 0.1 to 0.2 on published models: every fourth to fifth token changes",
	}
)

// Rounding says in a phrase what p costs generated text on a backend of such caps, "" if nothing.
func (p Precision) Rounding(c Caps) string { return p.phrase(c, roundings[p], halfRounding) }

// VectorRounding is Rounding for models that embed or rank.
func (p Precision) VectorRounding(c Caps) string {
	return p.phrase(c, vectorRoundings[p], halfVectorRounding)
}

func (p Precision) phrase(c Caps, rounds, half string) string {
	switch {
	case c.Acts == nil:
		return rounds
	case c.Acts[p] == BF16:
		return "activations in bfloat16: " + half
	}
	return "activations in float32"
}

// Rounding says in a phrase what p costs generated text, "" if little or nothing.
func (p KVPolicy) Rounding() string { return kvRoundings[p.Bits] }

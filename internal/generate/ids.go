package generate

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"

	"hearth/internal/parser"
)

// idForm is how a family writes the ids of calls. Clients keep the ids they were given; only the prompt has others, made
// from those so that they never change from one request to the next.
type idForm uint8

const (
	idsKept     idForm = iota // as the client has them
	idsNine                   // nine letters and digits: Mistral
	idsNumbered               // functions.NAME:NUMBER, counted over the conversation: Kimi
)

// idsOf is what a family of output formats calls for.
func idsOf(f *parser.Family) idForm {
	switch f.Name {
	case "mistral", "mistral_v3":
		return idsNine
	case "kimi":
		return idsNumbered
	}
	return idsKept
}

// of is the id of a call in the prompt.
func (f idForm) of(c *call) string {
	switch f {
	case idsNine:
		return nine(c.id)
	case idsNumbered:
		return fmt.Sprintf("functions.%s:%d", c.name, c.number)
	}
	return c.id
}

// nine keeps an id of nine letters and digits and makes one of any other.
func nine(id string) string {
	const n = 9
	if len(id) == n && strings.IndexFunc(id, func(r rune) bool { return !alphanumeric(r) }) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	digits := new(big.Int).SetBytes(sum[:]).Text(62)
	digits = strings.Repeat("0", n) + digits
	return digits[len(digits)-n:]
}

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

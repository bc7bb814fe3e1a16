package generate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"

	"hearth/internal/dialect"
)

// idForm is how a family writes the ids of calls. Clients keep the ids they were given; the prompt has what the model wrote
// itself, as long as that is remembered, and else ids made from the clients', so that they never change from one request to
// the next.
type idForm uint8

const (
	idsKept     idForm = iota // as the client has them
	idsNine                   // nine letters and digits: Mistral
	idsNumbered               // functions.NAME:NUMBER, counted over the conversation: Kimi
)

// idsOf is what a family of output formats calls for.
func idsOf(f *dialect.Family) idForm {
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
	if f.fits(c.said, c.name) {
		return c.said
	}
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

// fits tells whether an id that the model wrote can stand in a prompt as it is.
func (f idForm) fits(id, tool string) bool {
	const longest = 64
	if id == "" || len(id) > longest || strings.ContainsFunc(id, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.:", r) }) {
		return false
	}
	switch f {
	case idsNine:
		return nine(id) == id
	case idsNumbered:
		number, ok := strings.CutPrefix(id, "functions."+tool+":")
		return ok && strings.Trim(number, "0123456789") == ""
	}
	return true
}

// forClients tells whether an id that the model wrote can be the client's too: made of what every API allows, and long
// enough not to come again in another conversation that the client holds beside this one.
func (f idForm) forClients(id, tool string) bool {
	const shortest = 9
	return len(id) >= shortest && f.fits(id, tool) && !strings.ContainsAny(id, ".:")
}

// newCallID makes an id for a client.
func newCallID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails
	return "call_" + hex.EncodeToString(b[:])
}

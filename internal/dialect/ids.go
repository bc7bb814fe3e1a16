package dialect

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
)

// IDs is how a family writes the ids of calls. Clients keep the ids they were given; the prompt has what the model wrote
// itself, as long as that is remembered, and else ids made from the clients', so that they never change from one request
// to the next.
type IDs uint8

const (
	IDsKept     IDs = iota + 1 // as the client has them
	IDsNine                    // nine letters and digits
	IDsNumbered                // functions.NAME:NUMBER, counted over the conversation
)

// Write is the id that a call has in the prompt. Said is what the model called it, "" if that is not known; id is the client's;
// number counts the calls of the conversation, from 0.
func (f IDs) Write(said, id, tool string, number int) string {
	if f.fits(said, tool) {
		return said
	}
	switch f {
	case IDsNine:
		return nine(id)
	case IDsNumbered:
		return fmt.Sprintf("functions.%s:%d", tool, number)
	}
	return id
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
func (f IDs) fits(id, tool string) bool {
	const longest = 64
	if id == "" || len(id) > longest || strings.ContainsFunc(id, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.:", r) }) {
		return false
	}
	switch f {
	case IDsNine:
		return nine(id) == id
	case IDsNumbered:
		number, ok := strings.CutPrefix(id, "functions."+tool+":")
		return ok && strings.Trim(number, "0123456789") == ""
	}
	return true
}

// ForClients tells whether an id that the model wrote can be the client's too: made of what every API allows, and long
// enough not to come again in another conversation that the client holds beside this one.
func (f IDs) ForClients(id, tool string) bool {
	const shortest = 9
	return len(id) >= shortest && f.fits(id, tool) && !strings.ContainsAny(id, ".:")
}

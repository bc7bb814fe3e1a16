package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"hearth/internal/regular"
)

// Key is a credential that requests may show.
type Key struct {
	Name     string // for the log; "": it has none
	Operator bool   // whoever shows it may see and clear what is everybody's
	Plain    string // "": only its sum is known
	Sum      [sha256.Size]byte
	Created  string // day, as 2026-01-31; "": not told
	Limits
}

// PlainKey is a key without a name.
func PlainKey(plain string) Key { return Key{Plain: plain, Sum: sha256.Sum256([]byte(plain))} }

// prefix begins keys that are made here, so that those who look for secrets in texts find them.
const prefix = "hearth-"

// NewKey makes a key that nobody guesses: 260 bits of chance.
func NewKey() string { return prefix + strings.ToLower(rand.Text()+rand.Text()) }

// Keys are those that a server accepts. They can be replaced while it runs.
type Keys struct{ now atomic.Pointer[keySet] }

type keySet struct {
	asked bool
	list  []Key
}

// NewKeys makes the keys of a server; with none, none is asked for.
func NewKeys(list []Key) *Keys {
	k := &Keys{}
	k.now.Store(&keySet{len(list) > 0, list})
	return k
}

// Replace has list accepted in the place of what was. A server that has asked for keys goes on asking: with none left, nobody is
// let in.
func (k *Keys) Replace(list []Key) {
	k.now.Store(&keySet{k.Asked() || len(list) > 0, list})
}

// Asked reports whether requests have to show a key.
func (k *Keys) Asked() bool { return k.now.Load().asked }

// Client is the holder of a key; nil: it is none of those accepted. The candidate is compared with all of them, by digests: that
// takes the same time whatever its length and content. isolate gives each key a salt of its own.
func (k *Keys) Client(candidate string, isolation Isolation) *Client {
	list := k.now.Load().list
	sum := sha256.Sum256([]byte(candidate))
	found := -1
	for i := range list {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(list[i].Sum[:], sum[:]), i, found)
	}
	if found < 0 {
		return nil
	}
	key := &list[found]
	again := sha256.Sum256(append([]byte("hearth caller\x00"), sum[:]...)) // does not tell the key
	id := [16]byte(again[:16])
	c := &Client{Name: key.Name, Operator: key.Operator || len(list) == 1, Owner: id, Limits: key.Limits}
	if len(list) > 1 { // one key for all says nothing about who calls
		c.Caller = id
	}
	if isolation.on(len(list)) {
		c.Salt = id
	}
	return c
}

// Isolation is whether each key has a prompt cache of its own: none, key, or "", which is key once there is more than one.
type Isolation string

func (i Isolation) on(keys int) bool { return i == "key" || i == "" && keys > 1 }

// Isolated reports it for the keys that are accepted now.
func (k *Keys) Isolated(i Isolation) bool { return i.on(len(k.now.Load().list)) }

// hashed begins a key of which a file has only the sum.
const hashed = "sha256:"

// mostFile bounds a file of keys, in bytes.
const mostFile = 4 << 20

// ErrNoLines is of a file without a key.
var ErrNoLines = errors.New("has no lines")

// ReadFile reads a file of keys. Errors name lines and never what is in them.
func ReadFile(name string) ([]Key, error) {
	b, err := regular.ReadStream(name, mostFile)
	if err != nil {
		return nil, err
	}
	all, err := Parse(string(b))
	switch {
	case errors.Is(err, ErrNoLines):
		return nil, fmt.Errorf("%s %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("%s, %w", name, err)
	}
	return all, nil
}

// Parse reads the text of a file of keys, a line each; empty lines and those that start with # are skipped. A line is a key, or
// words with blanks between them: a name, operator or user, a key or its hash, and name=value for Limits.
// No two lines have one name: a request's log, limits and revoking would be of either.
func Parse(text string) ([]Key, error) {
	var all []Key
	named := map[string]int{} // line of each name
	for i, line := range strings.Split(text, "\n") {
		k, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if k == nil {
			continue
		}
		if k.Name != "" {
			if before := named[k.Name]; before > 0 {
				return nil, fmt.Errorf("line %d: another key of the name that line %d has", i+1, before)
			}
			named[k.Name] = i + 1
		}
		all = append(all, *k)
	}
	if len(all) == 0 {
		return nil, ErrNoLines
	}
	return all, nil
}

// parseLine reads a line; nil: there is no key in it.
func parseLine(line string) (*Key, error) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	if fields := strings.Fields(line); len(fields) > 1 || isSum(line) {
		return namedKey(fields)
	}
	switch solid := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }; {
	case !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl): // no header could hold it
		return nil, errors.New("want a key of letters, digits and signs; this is no text")
	case !strings.ContainsFunc(line, solid), line[0] == '[' && line[len(line)-1] == ']': // else a brace would let everybody in who guesses it
		return nil, errors.New("want a key, or a name, operator or user, and a key; a file of keys is no JSON or TOML")
	}
	k := PlainKey(line)
	return &k, nil
}

// isSum reports what can only be meant as a hash, though it could be a key.
func isSum(key string) bool {
	digits, ok := strings.CutPrefix(key, hashed)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == sha256.Size
}

// CheckName says what is wrong with the name of a key.
func CheckName(name string) error {
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.@", r)
	}
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, odd) {
		return errors.New("want a name of at most 64 letters, digits and -_.@")
	}
	return nil
}

// namedKey reads the fields name, role, key or hash, and limits.
func namedKey(fields []string) (*Key, error) {
	if len(fields) < 3 {
		return nil, fmt.Errorf("want a key, or a name, operator or user, and a key or sha256: and its hash, with blanks between them; there are %d words", len(fields))
	}
	name, role, key := fields[0], fields[1], fields[2]
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if role != "operator" && role != "user" {
		return nil, errors.New("want operator or user after the name")
	}
	k := PlainKey(key)
	if digits, ok := strings.CutPrefix(key, hashed); ok {
		if !isSum(key) {
			return nil, fmt.Errorf("want %d hexadecimal digits after %s", 2*sha256.Size, hashed)
		}
		k.Plain = ""
		_, _ = hex.Decode(k.Sum[:], []byte(digits)) // isSum has
	}
	k.Name, k.Operator = name, role == "operator"
	for i, field := range fields[3:] {
		if err := k.set(field); err != nil {
			return nil, fmt.Errorf("word %d: %w", i+4, err)
		}
	}
	return &k, nil
}

// Names of what may stand behind a key.
const (
	wordModels    = "models"
	wordRate      = "rate-limit"
	wordRequests  = "max-requests"
	wordPriority  = "priority"
	wordCreated   = "created"
	wordsThereAre = wordModels + ", " + wordRate + ", " + wordRequests + ", " + wordPriority + " or " + wordCreated
)

// set reads a word of the form name=value.
func (k *Key) set(word string) error {
	name, value, ok := strings.Cut(word, "=")
	if !ok || value == "" {
		return errors.New("want " + wordsThereAre + ", = and a value behind the key")
	}
	switch name {
	case wordModels:
		for _, m := range strings.Split(value, ",") {
			if m == "" || strings.Count(m, "*") > 1 {
				return errors.New(wordModels + ": want names of models with commas between them, each with at most one *")
			}
			k.Models = append(k.Models, m)
		}
	case wordRate, wordRequests:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > mostRate {
			return fmt.Errorf("%s: want a whole number from 1 to %d", name, mostRate)
		}
		if name == wordRate {
			k.PerMinute = n
		} else {
			k.MaxRequests = n
		}
	case wordPriority:
		if value != "background" && value != "interactive" {
			return errors.New(wordPriority + ": want interactive or background")
		}
		k.Background = value == "background"
	case wordCreated:
		if _, err := time.Parse(time.DateOnly, value); err != nil {
			return errors.New(wordCreated + ": want a day such as 2026-01-31")
		}
		k.Created = value
	default:
		return errors.New("want " + wordsThereAre + " before the =")
	}
	return nil
}

// Line is the line of a file that says all of a key with a name but the key itself, of which it has the hash.
func (k *Key) Line() string {
	words := []string{k.Name, k.Role(), hashed + hex.EncodeToString(k.Sum[:])}
	if len(k.Models) > 0 {
		words = append(words, wordModels+"="+strings.Join(k.Models, ","))
	}
	if k.PerMinute > 0 {
		words = append(words, fmt.Sprintf("%s=%d", wordRate, k.PerMinute))
	}
	if k.MaxRequests > 0 {
		words = append(words, fmt.Sprintf("%s=%d", wordRequests, k.MaxRequests))
	}
	if k.Background {
		words = append(words, wordPriority+"=background")
	}
	if k.Created != "" {
		words = append(words, wordCreated+"="+k.Created)
	}
	return strings.Join(words, " ")
}

// Role is operator or user.
func (k *Key) Role() string {
	if k.Operator {
		return "operator"
	}
	return "user"
}

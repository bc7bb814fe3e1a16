// Package jsonref follows the references of a JSON Schema into its own document.
package jsonref

import (
	"net/url"
	"strconv"
	"strings"
)

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// Local returns what a reference leads to in the document that json.Unmarshal read into root: a JSON Pointer as the
// fragment of a URI (RFC 6901, section 6), as in #/$defs/Node or #/anyOf/0/items; # is root itself. It reports false for
// a reference into another document, to an anchor or to what is not there.
func Local(root any, ref string) (any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if fragment == "" {
		return root, true
	}
	if p, err := url.PathUnescape(fragment); err == nil { // some write a key with a % in it as it is
		fragment = p
	}
	path, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return nil, false
	}
	at := root
	for token := range strings.SplitSeq(path, "/") {
		if at, ok = member(at, unescape.Replace(token)); !ok {
			return nil, false
		}
	}
	return at, true
}

// member is an object's member, or an array's element by its number.
func member(of any, key string) (any, bool) {
	switch of := of.(type) {
	case map[string]any:
		v, ok := of[key]
		return v, ok
	case []any:
		i, err := strconv.ParseUint(key, 10, 31)
		if err == nil && i < uint64(len(of)) && (key[0] != '0' || key == "0") { // no leading zeros
			return of[i], true
		}
	}
	return nil, false
}

package model

import "strings"

// harmlessKeys are keys that change no number of any architecture here, and why. A key that is on no list and that no architecture reads is
// told of by name.
var harmlessKeys = map[string]string{}

// harmlessEnds are ends of such keys.
var harmlessEnds = map[string]string{}

// harmless is why a key of the config changes no number; "": it may.
func harmless(key string) string {
	if why, ok := harmlessKeys[key]; ok {
		return why
	}
	for end, why := range harmlessEnds {
		if strings.HasSuffix(key, end) {
			return why
		}
	}
	return ""
}

// expected are keys that would change numbers, with the only values that are done where an architecture does not read them.
var expected = map[string][]string{}

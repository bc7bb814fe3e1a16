package program

import (
	"regexp"
	"strings"
)

var seen = regexp.MustCompile(` msg=decided .* seen="\[(.*?)\]"`)

// Seen is what a log of a server with --log-level debug tells of the images of prompts: an entry for each prompt that has some.
func Seen(log string) (all []string) {
	for line := range strings.Lines(log) {
		if m := seen.FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

package generate

import "strings"

// stopper finds stop strings in a stream of text. What may be the start of one is held back, so no part of a stop string
// ever gets out. The first to be complete wins; of several that end together, the one that began first.
type stopper struct {
	stops []string
	held  string
}

func newStopper(stops []string) *stopper {
	s := &stopper{}
	for _, t := range stops {
		if t != "" {
			s.stops = append(s.stops, t)
		}
	}
	return s
}

// feed takes the next text and returns what is certain not to be part of a stop string; hit is the stop string that
// was found, after which nothing may be fed.
func (s *stopper) feed(text string) (out, hit string) {
	if len(s.stops) == 0 {
		return text, ""
	}
	text = s.held + text
	end, start := len(text)+1, 0
	for _, t := range s.stops {
		if i := strings.Index(text, t); i >= 0 && (i+len(t) < end || i+len(t) == end && i < start) {
			start, end, hit = i, i+len(t), t
		}
	}
	if hit != "" {
		s.held = ""
		return text[:start], hit
	}
	keep := 0
	for _, t := range s.stops {
		for n := min(len(t)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, t[:n]) {
				keep = n
				break
			}
		}
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], ""
}

// flush returns what was held back: the text ended, or something else than text follows.
func (s *stopper) flush() string {
	out := s.held
	s.held = ""
	return out
}

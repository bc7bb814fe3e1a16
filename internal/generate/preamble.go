package generate

import (
	"cmp"
	"slices"
	"strings"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

// preambleField of a message is text beside its calls that the template does not know of.
const preambleField = "preamble"

// preambles puts the texts in preambleField into what a template has written, each before the calls of its message.
func preambles(f *dialect.Family, text string, spans []jinja.Span, messages *jinja.List) (string, []jinja.Span) {
	said := map[int]string{} // by the tags of their messages
	if messages != nil {
		for _, item := range messages.Items {
			if m, ok := item.(*jinja.Dict); ok {
				if v, _ := m.Get(preambleField); v != nil {
					said[m.Tag], _ = v.(string)
				}
			}
		}
	}
	if len(said) == 0 {
		return text, spans
	}
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b jinja.Span) int { return cmp.Or(a.From-b.From, b.To-a.To) })
	var out strings.Builder
	var places, grown []int // in text, and by how much what stands behind each moves
	done := 0
	for _, s := range spans {
		if said[s.Tag] == "" || s.From < done {
			continue
		}
		i, written := f.Preamble(text[s.From:s.To], said[s.Tag])
		if i < 0 {
			continue
		}
		delete(said, s.Tag)
		out.WriteString(text[done : s.From+i])
		out.WriteString(written)
		done = s.From + i
		places, grown = append(places, done), append(grown, out.Len()-done)
	}
	out.WriteString(text[done:])
	moved := func(place int) int { // what begins where a text was put begins with it
		if i, _ := slices.BinarySearch(places, place); i > 0 {
			place += grown[i-1]
		}
		return place
	}
	for i, s := range spans {
		spans[i].From, spans[i].To = moved(s.From), moved(s.To)
	}
	return out.String(), spans
}

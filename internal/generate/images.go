package generate

import (
	"slices"
	"strings"

	"hearth/internal/jinja"
)

// imagePart is an image as the template wants it.
func (f form) imagePart() *jinja.Dict {
	if f.imageURL {
		return object("type", "image_url", "image_url", object("url", ""))
	}
	return object("type", "image")
}

// elsewhere is what stands in a text for an image that the next turn has, since the template prints none here.
const elsewhere = "[The image is in the next message.]"

// placeImages puts images where the template prints them: those of results of tools, of system messages and of answers into the
// user's turn that follows, which is there for that alone if no other is. Where there can be none behind a tool's result, a note
// stands for its images.
func (f form) placeImages(turns []turn) []turn {
	if !slices.ContainsFunc(turns, func(t turn) bool { return f.seen.in(t.text) }) {
		return turns
	}
	out := make([]turn, 0, len(turns)+1)
	var waiting string
	for _, t := range turns {
		if waiting != "" && t.role != roleTool && t.role != roleSystem {
			if t.role == roleUser && !t.reminder {
				t.text = paragraphs(waiting, t.text)
			} else {
				out = append(out, turn{from: out[len(out)-1].from, role: roleUser, text: waiting})
			}
			waiting = ""
		}
		if f.seen.in(t.text) && !f.printsImages(t.role) {
			here := f.has(imagesPrinted) && (t.role != roleTool || f.has(userAfterTool))
			t.text = f.seen.replace(t.text, func(p *picture) string {
				if !here {
					return note(p.media, "this model cannot see it here")
				}
				waiting += f.seen.holder(p.media)
				return elsewhere
			})
		}
		out = append(out, t)
	}
	if waiting != "" {
		out = append(out, turn{from: out[len(out)-1].from, role: roleUser, text: waiting})
	}
	return out
}

// printsImages tells whether the template prints images in turns of a role.
func (f form) printsImages(role string) bool {
	switch role {
	case roleUser:
		return f.has(imagesPrinted)
	case roleSystem:
		return f.has(imagesInSystem)
	case roleTool:
		return f.has(imagesInResults)
	}
	return false
}

// blind says why a model with a tower cannot see: what its chat template or its vocabulary lacks; "" where it can, or has none.
func (c *Config) blind(p *prober) string {
	s := c.places()
	if s == nil {
		return ""
	}
	switch missing := missingTokens(s, c.Tokenizer); {
	case p == nil:
		return "it has no chat template"
	case len(missing) > 0:
		return "its vocabulary has no " + strings.Join(missing, ", ")
	case !p.form.has(imagesPrinted):
		return "its chat template prints no " + s.Mark + " for an image"
	}
	return ""
}

// trialPictures are those of trial conversations.
var trialPictures = &pictures{all: []*picture{{}}, edge: holderMark + "trial."}

// findImages tries where the template prints images, for which it writes a mark.
func (p *prober) findImages(mark string) {
	const image = holderMark + "trial.0" + holderMark
	f := &p.form
	f.seen = trialPictures
	defer func() { f.seen = nil }()
	shows := func(images int, turns ...turn) bool {
		out := p.render(turns)
		for _, t := range turns {
			for text, pic := t.text, f.seen.all[0]; pic != nil; {
				var before string
				before, pic, text = f.seen.cut(text)
				if !strings.Contains(out, before) {
					return false
				}
			}
		}
		return strings.Count(out, mark) == images
	}
	user, said, sys := trial(roleUser), trial(roleAssistant), trial(roleSystem)
	for _, f.imageURL = range []bool{false, true} {
		if f.set(imagesPrinted, shows(1, user(probeA+image+probeB)) && shows(3, user(image+probeA+image), said(probeB), user(probeC+image))); f.has(imagesPrinted) {
			break
		}
	}
	if !f.has(imagesPrinted) {
		return
	}
	f.set(imagesInSystem, f.has(systemFirst) && shows(1, sys(probeA+image), user(probeB)))
	if f.has(toolResults) {
		k := probeCall("call00001")
		f.set(imagesInResults, shows(2, user(probeA), turn{role: roleAssistant, calls: []*call{k}}, turn{role: roleTool, text: probeB + image + probeC + image, answers: k}))
	}
}

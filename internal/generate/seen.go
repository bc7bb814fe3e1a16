package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/jinja"
	"hearth/internal/transcript"
	"hearth/internal/vision"
)

// block is a part of an image in a prompt: one id of the encoded text stands for it, which becomes its tokens.
type block struct {
	pic   *picture
	ids   []int32
	tiles []tilePlace
	from  int // index among the encoded ids
	at    int // of its first token in the prompt
}

// place marks the places of images in a rendered text, of which all must be there, and writes what the family writes around them.
func (m *prompter) place(out *rendering, order []*picture) error {
	if len(order) == 0 {
		return nil
	}
	marks := m.guard.ImageMarks(out.text)
	if len(marks) != len(order) {
		return &chat.Error{Kind: chat.Invalid, Param: "messages", Code: "template_images", Msg: fmt.Sprintf(
			"the model's chat template prints %d of the %d images of this conversation; leave them out, or send them in other messages", len(marks), len(order))}
	}
	s := m.cfg.places()
	var text strings.Builder
	var grown []int // by how much what stands behind each mark moves
	done := 0
	for i, pic := range order {
		parts := s.Parts(&pic.plan)
		text.WriteString(out.text[done:marks[i]])
		done = marks[i] + len(s.Mark)
		for k, around := range s.Around(&pic.plan, len(parts)) {
			text.WriteString(around)
			if k == len(parts) {
				break
			}
			text.WriteString(m.guard.ImagePlace())
			b := block{pic: pic}
			b.ids, b.tiles = partTokens(s, m.tok, parts[k])
			out.blocks = append(out.blocks, b)
		}
		grown = append(grown, text.Len()-done)
	}
	text.WriteString(out.text[done:])
	moved := func(place int) int {
		if i, _ := slices.BinarySearch(marks, place); i > 0 {
			place += grown[i-1]
		}
		return place
	}
	out.text, out.spans = text.String(), slices.Clone(out.spans)
	for i, s := range out.spans {
		out.spans[i] = jinja.Span{Tag: s.Tag, From: moved(s.From), To: moved(s.To)}
	}
	return nil
}

// grow makes the prompt's tokens of the encoded ids: what images become, in the places of their marks.
func (p *prompt) grow(g *transcript.Guard) error {
	p.tokens = p.encoded.IDs
	if len(p.encoded.blocks) == 0 {
		return nil
	}
	at, err := g.Places(&p.encoded.Tokens)
	if err == nil && len(at) != len(p.encoded.blocks) {
		err = fmt.Errorf("the prompt has %d places for %d parts of images", len(at), len(p.encoded.blocks))
	}
	if err != nil {
		return &chat.Error{Kind: chat.Internal, Msg: err.Error(), Err: err}
	}
	n := len(p.encoded.IDs)
	for i := range p.encoded.blocks {
		n += len(p.encoded.blocks[i].ids) - 1
	}
	p.tokens = make([]int32, 0, n)
	done := 0
	for i := range p.encoded.blocks {
		b := &p.encoded.blocks[i]
		p.tokens = append(p.tokens, p.encoded.IDs[done:at[i]]...)
		b.from, b.at, done = at[i], len(p.tokens), at[i]+1
		p.tokens = append(p.tokens, b.ids...)
	}
	p.tokens = append(p.tokens, p.encoded.IDs[done:]...)
	return nil
}

// token is the index in the prompt of an encoded id, or of the end of them.
func (p *prompt) token(encoded int) int {
	for i := len(p.encoded.blocks) - 1; i >= 0; i-- {
		if b := &p.encoded.blocks[i]; b.from < encoded {
			return b.at + len(b.ids) + encoded - b.from - 1
		}
	}
	return encoded
}

// id is the index among the encoded ids of a token of the prompt.
func (p *prompt) id(token int) int {
	for i := len(p.encoded.blocks) - 1; i >= 0; i-- {
		if b := &p.encoded.blocks[i]; b.at <= token {
			return b.from + max(0, token-b.at-len(b.ids)+1)
		}
	}
	return token
}

// prepare prepares the prompt's images, each once. Those that became notes instead are to go from the prompt: it is not whole.
func (m *prompter) prepare(ctx context.Context, p *prompt) (whole bool, err error) {
	whole = true
	for i := range p.encoded.blocks {
		pic := p.encoded.blocks[i].pic
		if p.seen.made[pic.key] != nil || p.seen.faults[pic.media] != nil {
			continue
		}
		v, err := m.sight.prepare(ctx, pic, p.salt, p.draft.Plain)
		switch {
		case err == nil:
			p.seen.made[pic.key] = v
		case pic.ofTool && errors.As(err, new(*vision.Error)):
			p.seen.faulty(pic.media, err)
			whole = false
		default:
			return false, imageError(pic.media, err)
		}
	}
	return whole, nil
}

// images are those of a prompt, for the engine.
func (p *prompt) images() (all []engine.Image) {
	for i := range p.encoded.blocks {
		b := &p.encoded.blocks[i]
		v := p.seen.made[b.pic.key]
		b.pic.digest = v.digest
		for _, t := range b.tiles {
			img := engine.Image{At: b.at + t.at, Digest: b.pic.plan.TileDigest(v.digest, t.tile), Each: b.pic.with.PatchLen()}
			img.Grid = b.pic.plan.Tiles[t.tile].Grid
			img.Open = func(ctx context.Context) (engine.Patches, error) { return v.open(ctx, t.tile) }
			all = append(all, img)
		}
	}
	return all
}

// release lets go of the files and of what was made of them: the engine has what it needs.
func (p *pictures) release() {
	for _, pic := range p.all {
		pic.file = nil
	}
	clear(p.made)
}

// seenImages are the images of the prompt for who asked for it. What is cached is not known yet.
func (p *prompt) seenImages() (all []chat.Seen) {
	for i := range p.encoded.blocks {
		b := &p.encoded.blocks[i]
		if i > 0 && b.pic == p.encoded.blocks[i-1].pic {
			continue
		}
		seen := chat.Seen{Width: b.pic.size[0], Height: b.pic.size[1], Positions: b.pic.plan.Positions(), Digest: b.pic.digest}
		for _, t := range b.pic.plan.Tiles {
			seen.Prepared = append(seen.Prepared, t.Size())
		}
		all = append(all, seen)
	}
	return all
}

// seenCached fills in how much of each image is among the cached tokens.
func (p *prompt) seenCached(all []chat.Seen, cached int) {
	if len(all) == 0 {
		return
	}
	n := -1
	for i := range p.encoded.blocks {
		b := &p.encoded.blocks[i]
		if i == 0 || b.pic != p.encoded.blocks[i-1].pic {
			n++
			all[n].Cached = 0
		}
		for _, t := range b.tiles {
			rows := b.pic.plan.Tiles[t.tile].Positions
			before := max(0, cached-b.at-t.at)
			if t.line > 0 {
				before -= before / (t.line + 1)
			}
			all[n].Cached += min(rows, before)
		}
	}
}

// imageOf is what a client called the image that an engine numbers.
func (p *prompt) imageOf(number int) *chat.Media {
	for i := range p.encoded.blocks {
		if number -= len(p.encoded.blocks[i].tiles); number < 0 {
			return p.encoded.blocks[i].pic.media
		}
	}
	return &chat.Media{Path: "messages"}
}

// imageRefusal is an engine's refusal of an image in the client's terms; other errors stay as they are.
func imageRefusal(p *prompt, err error) error {
	var refused *engine.ImageError
	if !errors.As(err, &refused) {
		return err
	}
	return &chat.Error{Kind: chat.Invalid, Param: p.imageOf(refused.Image).Path, Msg: "the image cannot be shown to the model: " + refused.Err.Error(), Err: err}
}

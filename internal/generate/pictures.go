package generate

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/vision"
)

// Sight is how a model sees: what makes pictures of files, for which there is one gate for all models.
type Sight struct {
	Processor *vision.Processor
	Gate      *vision.Gate
}

// places is what stands for images in the model's prompts; nil: it cannot see.
func (c *Config) places() *vision.Places {
	if c.Sight == nil {
		return nil
	}
	return c.Sight.Processor.Places()
}

// picture is an image of a request as its header tells, before anything is decoded.
type picture struct {
	media  *chat.Media
	file   []byte
	with   *vision.Processor
	ofTool bool   // in a result of a tool
	size   [2]int // width and height of the file
	plan   vision.Plan
	key    [sha256.Size]byte // of the file and how it is looked at

	digest [sha256.Size]byte // of the prepared picture, once there is one
}

// pictures are the images of a request that the model is to see. In a turn's text a holder stands for one, which nobody can
// write who has not seen the request's nonce. All methods work on nil, which is a model that cannot see.
type pictures struct {
	all    []*picture
	of     map[*chat.Media]int
	faults map[*chat.Media]error // why one in a result of a tool cannot be seen
	edge   string                // of holders

	made map[[sha256.Size]byte]*prepared // by their files
}

// picturesOf reads the headers of a request's images. The error is the client's; a file in a result of a tool that is none, or is
// over a limit, becomes a note: it stays in the conversation, which an error would end for good.
func (s *Sight) picturesOf(messages []chat.Message) (*pictures, error) {
	p := &pictures{of: map[*chat.Media]int{}, faults: map[*chat.Media]error{}, made: map[[sha256.Size]byte]*prepared{}}
	for i := range messages {
		if err := s.take(p, messages[i].Parts, false); err != nil {
			return nil, err
		}
	}
	if len(p.all) == 0 {
		return p, nil
	}
	if err := s.Gate.Limits().Count(len(p.all)); err != nil {
		return nil, imageError(p.all[len(p.all)-1].media, err)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	p.edge = holderMark + hex.EncodeToString(nonce[:]) + "."
	return p, nil
}

func (s *Sight) take(p *pictures, parts []chat.Part, ofTool bool) error {
	for i := range parts {
		switch part := &parts[i]; {
		case part.Kind == chat.PartToolResult:
			if err := s.take(p, part.Result.Parts, true); err != nil {
				return err
			}
		case part.Kind == chat.PartMedia && part.Media.Kind == chat.Image && (part.Media.Base64 != nil || part.Media.File != nil):
			pic, err := s.inspect(part.Media)
			if err != nil && ofTool && errors.As(err, new(*vision.Error)) {
				p.faulty(part.Media, err)
				continue
			}
			if err != nil {
				return imageError(part.Media, err)
			}
			pic.ofTool = ofTool
			p.of[part.Media] = len(p.all)
			p.all = append(p.all, pic)
		}
	}
	return nil
}

// faulty has a note say what is wrong with an image.
func (p *pictures) faulty(m *chat.Media, err error) {
	p.faults[m] = err
	delete(p.of, m)
}

// inspect reads the header of an image.
func (s *Sight) inspect(m *chat.Media) (*picture, error) {
	low := m.Detail == "low"
	p := &picture{media: m, file: m.File, with: s.Processor}
	if low {
		p.with = s.Processor.Low()
	}
	if p.file == nil {
		text := bytes.TrimRight(m.Base64, "=\r\n") // it may be without padding
		p.file = make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
		n, err := base64.RawStdEncoding.Decode(p.file, text)
		if err != nil {
			return nil, chat.Invalidf(m.Path, "the image is not valid base64: %v", err)
		}
		p.file = p.file[:n]
	}
	h, err := vision.Inspect(p.file, s.Gate.Limits())
	if err != nil {
		return nil, err
	}
	if p.plan, err = p.with.Plan(h.Width, h.Height); err != nil {
		return nil, err
	}
	p.size, p.key = [2]int{h.Width, h.Height}, sha256.Sum256(p.file)
	if low {
		p.key = sha256.Sum256(append(p.key[:], "low"...))
	}
	return p, nil
}

// recipe names the file and all that decides what it is prepared to.
func (p *picture) recipe() [sha256.Size]byte {
	return sha256.Sum256(append(p.key[:], p.with.Recipe(&p.plan)...))
}

// imageError is that of an image, in the client's terms.
func imageError(m *chat.Media, err error) error {
	var v *vision.Error
	if !errors.As(err, &v) {
		return chat.AsError(err)
	}
	e := &chat.Error{Kind: chat.Invalid, Param: m.Path, Code: string(v.Cause), Err: err, Msg: "the image " + v.Error()}
	if v.Limit() {
		e.Bound = chat.BoundImages
	}
	return e
}

// holderMark is a private-use character at both ends of a holder.
const holderMark = "\uE012"

// holder is what stands for an image in a turn's text; "": it is none that the model sees.
func (p *pictures) holder(m *chat.Media) string {
	if p == nil {
		return ""
	}
	i, ok := p.of[m]
	if !ok {
		return ""
	}
	return p.edge + strconv.Itoa(i) + holderMark
}

// cut finds the first holder of a text; the picture is nil if there is none.
func (p *pictures) cut(text string) (before string, pic *picture, after string) {
	if p == nil || p.edge == "" {
		return text, nil, ""
	}
	before, rest, ok := strings.Cut(text, p.edge)
	if !ok {
		return text, nil, ""
	}
	number, after, _ := strings.Cut(rest, holderMark)
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(p.all) {
		panic(fmt.Sprintf("picture %q of %d", number, len(p.all))) // nobody else can have written it
	}
	return before, p.all[i], after
}

// in tells whether a text has a holder.
func (p *pictures) in(text string) bool {
	return p != nil && p.edge != "" && strings.Contains(text, p.edge)
}

// replace has what with says in the place of every holder.
func (p *pictures) replace(text string, with func(*picture) string) string {
	if !p.in(text) {
		return text
	}
	var b strings.Builder
	for {
		before, pic, after := p.cut(text)
		b.WriteString(before)
		if pic == nil {
			return b.String()
		}
		b.WriteString(with(pic))
		text = after
	}
}

// named has digests of the files in the place of holders, for what is remembered of a conversation.
func (p *pictures) named(text string) string {
	return p.replace(text, func(pic *picture) string { return holderMark + string(pic.key[:]) })
}

// order lists the pictures of turns as they stand in them.
func (p *pictures) order(turns []turn) (all []*picture) {
	if p == nil || p.edge == "" {
		return nil
	}
	for i := range turns {
		for text := turns[i].text; ; {
			_, pic, after := p.cut(text)
			if pic == nil {
				break
			}
			all, text = append(all, pic), after
		}
	}
	return all
}

package tokenizer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// modelFile holds a SentencePiece model: a protobuf of pieces with scores, how to
// normalise, and whether the pieces are merged (BPE) or chosen (Unigram). The
// reference for it is the PyPI package sentencepiece.
const modelFile = "tokenizer.model"

// Kinds of pieces and of models, as the protobuf numbers them.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceUnused      = 5
	pieceByte        = 6

	kindUnigram = 1
	kindBPE     = 2
)

// spModel is the protobuf, as far as it is used.
type spModel struct {
	pieces       []spPiece
	kind         uint64
	byteFallback bool
	suffixSpace  bool // the dummy space goes after the text
	unkSurface   string
	norm         spNormalizer
}

type spPiece struct {
	text  string
	score float32
	kind  uint64
}

func parseSentencePiece(data []byte, c *config) (*Tokenizer, error) {
	if len(data) > 0 && data[0] != '\n' {
		// Some models keep tiktoken's form under this name. A SentencePiece file begins
		// with the tag of a piece.
		return parseTiktoken(data, c)
	}
	m, err := readSentencePiece(data)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", modelFile, err)
	}
	t := newTokenizer()
	added, err := m.build(t, c)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", modelFile, err)
	}
	return t.finishBare(modelFile, added, c)
}

func readSentencePiece(data []byte) (*spModel, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("the file has %d bytes, more than %d", len(data), maxFileBytes)
	}
	m := &spModel{kind: kindUnigram, unkSurface: " \u2047 "}
	m.norm = spNormalizer{chars: &charsMap{}, dummy: true, trim: true, mark: true}
	err := protoFields(data, func(f protoField) error {
		switch f.number {
		case 1:
			p := spPiece{kind: pieceNormal}
			err := p.read(f.data)
			if m.pieces = append(m.pieces, p); err == nil && (p.text == "" || !utf8.ValidString(p.text)) {
				err = fmt.Errorf("piece %d is %s", len(m.pieces)-1, quoted(p.text))
			}
			if len(m.pieces) > maxTokens {
				err = fmt.Errorf("there are more than %d pieces", maxTokens)
			}
			return err
		case 2:
			return m.readTrainer(f.data)
		case 3:
			return m.norm.read(f.data)
		case 5:
			return protoFields(f.data, func(f protoField) error {
				if f.number == 2 && len(f.data) > 0 {
					return unsupported("denormalizer_spec", "a character map")
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && len(m.pieces) == 0 {
		err = fmt.Errorf("it has no pieces")
	}
	m.norm.suffix = m.suffixSpace
	return m, err
}

func (p *spPiece) read(msg []byte) error {
	return protoFields(msg, func(f protoField) error {
		switch f.number {
		case 1:
			p.text = string(f.data)
		case 2:
			if p.score = f.float(); math.IsNaN(float64(p.score)) {
				return fmt.Errorf("piece %s has no score", quoted(p.text))
			}
		case 3:
			p.kind = f.value
		}
		return nil
	})
}

func (m *spModel) readTrainer(msg []byte) error {
	return protoFields(msg, func(f protoField) error {
		switch f.number {
		case 3:
			m.kind = f.value
		case 24:
			m.suffixSpace = f.value != 0
		case 35:
			m.byteFallback = f.value != 0
		case 44:
			m.unkSurface = string(f.data)
		}
		return nil
	})
}

// build fills in t and returns the pieces that act as added tokens: the control
// pieces, which the library never finds in a text.
func (m *spModel) build(t *Tokenizer, c *config) ([]addedToken, error) {
	var b vocabBuilder
	var added []addedToken
	unk := int32(-1)
	var user []addedToken
	for i, p := range m.pieces {
		id := int32(i)
		b.add([]byte(p.text), id)
		switch p.kind {
		case pieceUnknown:
			unk = id
		case pieceControl:
			added = append(added, addedToken{ID: id, Content: p.text, Special: true})
		case pieceUserDefined:
			user = append(user, addedToken{ID: id, Content: p.text})
		}
	}
	if unk < 0 {
		return nil, fmt.Errorf("no piece is of type UNKNOWN")
	}
	var err error
	if t.vocab, err = b.build(); err != nil {
		return nil, err
	}
	for i := range user {
		if len(user[i].Content) > maxAddedBytes {
			return nil, fmt.Errorf("piece %s has more than %d bytes", quoted(user[i].Content), maxAddedBytes)
		}
		m.norm.user.add(user[i].Content, &user[i])
	}
	switch m.kind {
	case kindUnigram:
		t.model, err = m.unigram(&t.vocab, unk)
	case kindBPE:
		t.model, err = m.bpe(&t.vocab, unk)
	default:
		err = unsupported("trainer_spec", fmt.Sprintf("model_type %d", m.kind))
	}
	t.stages = []stage{&m.norm}
	t.deco = decoding{
		maps:     []tokenMap{metaspace{mark: spaceMark}.unmark},
		fallback: m.byteFallback, bytewise: true,
		lead: lead{content: []byte(" "), pieces: true, all: m.norm.trim},
		unk:  unk,
	}
	if m.norm.dummy || m.norm.trim {
		t.deco.lead.left = 1
	}
	t.deco.maps = append(t.deco.maps, m.unkMap(unk))
	if c.BOS == "" && c.EOS == "" {
		c.BOS, c.EOS = m.roles()
	}
	return added, err
}

// unkMap shows the unknown piece as the model says.
func (m *spModel) unkMap(unk int32) tokenMap {
	text := m.pieces[unk].text
	return func(s string, _ bool) string {
		if s == text {
			return m.unkSurface
		}
		return s
	}
}

// roles returns the control pieces with the customary names, where the
// configuration names none.
func (m *spModel) roles() (bos, eos tokenName) {
	for _, p := range m.pieces {
		switch {
		case p.kind == pieceControl && p.text == "<s>":
			bos = "<s>"
		case p.kind == pieceControl && p.text == "</s>":
			eos = "</s>"
		}
	}
	return bos, eos
}

// unigram makes a Unigram model with the library's arithmetic, float32.
func (m *spModel) unigram(v *vocabulary, unk int32) (model, error) {
	trie, err := trieLater(v, func(id int32) bool {
		kind := m.pieces[id].kind
		return kind == pieceNormal || kind == pieceUserDefined
	})
	if err != nil {
		return nil, err
	}
	u := &unigram{index: &v.index, trie: trie, score: make([]float64, len(m.pieces)), unk: unk,
		fallback: m.byteFallback, unit: byteTokens(&v.index), single: true, cache: newWordCache()}
	lowest, highest := float32(math.MaxFloat32), float32(0x1p-126)
	for _, p := range m.pieces {
		if p.kind == pieceNormal {
			lowest, highest = min(lowest, p.score), max(highest, p.score)
		}
	}
	u.unkScore = float64(lowest - unkPenalty)
	for id, p := range m.pieces {
		switch p.kind {
		case pieceNormal:
			u.score[id] = float64(p.score)
		case pieceUserDefined:
			// They always win.
			u.score[id] = float64(float32(len(p.text))*highest) - 0.1
		}
	}
	return u, nil
}

// bpe makes a BPE model: two neighbours merge when together they are a piece, the
// pair with the highest score first.
func (m *spModel) bpe(v *vocabulary, unk int32) (model, error) {
	order := make([]int32, 0, len(m.pieces))
	for id, p := range m.pieces {
		switch p.kind {
		case pieceNormal:
			order = append(order, int32(id))
		case pieceUnused:
			return nil, unsupported("pieces", "a BPE model with the unused piece "+quoted(p.text))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(m.pieces[b].score, m.pieces[a].score) })
	j := joiner{index: &v.index}
	rank := uint32(0)
	for i, id := range order {
		if i > 0 && m.pieces[id].score != m.pieces[order[i-1]].score {
			rank++
		}
		if err := j.add(m.pieces[id].text, id, rank, m.mergeable); err != nil {
			return nil, err
		}
	}
	b := &bpe{index: &v.index, merges: j.table(), seam: j.seam, fallback: m.byteFallback, fuseUnk: true, unk: unk, cache: newWordCache()}
	b.fill(v)
	if len(m.norm.user.nodes) == 0 {
		return b, nil
	}
	return &frozenWords{m.norm.user, b}, nil
}

// mergeable reports whether a piece can be part of a merge.
func (m *spModel) mergeable(id int32) bool { return m.pieces[id].kind == pieceNormal }

// frozenWords keeps user-defined pieces whole, whatever is around them.
type frozenWords struct {
	user matcher
	rest model
}

func (m *frozenWords) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	m.user.split(w, false, func(id int32) { dst = append(dst, id) }, func(text string) { dst = m.rest.appendWord(dst, text, sc) })
	return dst
}

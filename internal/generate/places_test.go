package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/vision"
	"hearth/internal/vision/visiontest"
)

// seeing is a generator with the demo's vocabulary, in which some tokens have other names, and a template that prints a mark.
func seeing(t testing.TB, files vision.Files, tokens []string, mark string) *Generator {
	t.Helper()
	fsys := fstest.MapFS{"chat_template.jinja": {Data: []byte(visiontest.ChatML(mark))}}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(demoFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, token := range tokens {
			quoted, _ := json.Marshal(token)
			b = bytes.ReplaceAll(b, fmt.Appendf(nil, `"<|reserved_%d|>"`, i), quoted)
		}
		fsys[name] = &fstest.MapFile{Data: b}
	}
	cfg, err := Load(fsys, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := vision.NewProcessor(files)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Engine, cfg.Sight = &script{context: 1 << 20, finish: engine.Stop}, &Sight{Processor: p, Gate: vision.NewGate(1, vision.DefaultLimits())}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Warnings()) > 0 || !g.Model().Sees {
		t.Fatalf("it cannot see: %q", g.Warnings())
	}
	return g
}

func blank(t testing.TB, w, h int) chat.Part {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return chat.Part{Kind: chat.PartMedia, Media: &chat.Media{Kind: chat.Image, File: b.Bytes(), Path: "here"}}
}

// placesGolden is what transformers' processors make of prompts with images.
type placesGolden struct {
	Sizes [][2]int
	Cases map[string]struct {
		Files struct {
			Config       json.RawMessage
			Preprocessor json.RawMessage
		}
		Tokens []string
		Mark   string
		Talks  []struct {
			Parts []any
			Runs  [][2]int
		}
	}
}

func readPlaces(t testing.TB) (g placesGolden) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "places.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPlaces: prompts with images have the ids that transformers' processors make.
func TestPlaces(t *testing.T) {
	g := readPlaces(t)
	for name, c := range g.Cases {
		t.Run(name, func(t *testing.T) {
			gen := seeing(t, vision.Files{Config: c.Files.Config, Preprocessor: c.Files.Preprocessor}, c.Tokens, c.Mark)
			for _, talk := range c.Talks {
				m := chat.Message{Role: chat.User}
				for _, part := range talk.Parts {
					if s, ok := part.(string); ok {
						m.Parts = append(m.Parts, chat.Part{Text: s})
					} else {
						size := g.Sizes[int(part.(float64))]
						m.Parts = append(m.Parts, blank(t, size[0], size[1]))
					}
				}
				p, err := gen.prompt(t.Context(), &chat.Request{Messages: []chat.Message{m}})
				if err != nil {
					t.Fatal(err)
				}
				var runs [][2]int
				for _, id := range p.tokens {
					if n := len(runs); n > 0 && runs[n-1][0] == int(id) {
						runs[n-1][1]++
					} else {
						runs = append(runs, [2]int{int(id), 1})
					}
				}
				if d := cmp.Diff(talk.Runs, runs); d != "" {
					t.Errorf("%v: -want +got\n%s", talk.Parts, d)
				}
				if n, err := gen.Count(t.Context(), &chat.Request{Messages: []chat.Message{m}}); err != nil || n != len(p.tokens) {
					t.Errorf("%d tokens counted, %d there, error %v", n, len(p.tokens), err)
				}
				for at := range p.encoded.IDs {
					if id := p.id(p.token(at)); id != at {
						t.Errorf("id %d is token %d, which is id %d", at, p.token(at), id)
					}
				}
			}
		})
	}
}

// TestSeenAtTheEnd: what was cached of each image is told with the reply's end, too, where a busy engine said nothing before.
func TestSeenAtTheEnd(t *testing.T) {
	gen := seeing(t, vision.Files{Config: []byte(`{"model_type": "mistral3", "spatial_merge_size": 2, "vision_config": {"patch_size": 14}}`),
		Preprocessor: []byte(`{"size": {"longest_edge": 1540}}`)}, []string{"[IMG]", "[IMG_BREAK]", "[IMG_END]"}, "[IMG]")
	m := chat.Message{Role: chat.User, Parts: []chat.Part{blank(t, 56, 84), {Text: "and"}, blank(t, 56, 84)}} // 3 lines of 2 rows
	r := &chat.Request{Messages: []chat.Message{m}}
	p, err := gen.prompt(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s := gen.cfg.Engine.(*script)
	for cached, want := range map[int][2]int{
		0:                           {0, 0},
		p.encoded.blocks[0].at + 3:  {2, 0}, // two rows and the token behind them
		p.encoded.blocks[1].at + 1:  {6, 1},
		p.encoded.blocks[1].at + 99: {6, 6},
	} {
		s.cached = cached
		events, err := gen.Generate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		for e, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind != chat.EventStart && e.Kind != chat.EventFinish {
				continue
			}
			told++
			if seen := e.Usage.Images; len(seen) != 2 || seen[0].Cached != want[0] || seen[1].Cached != want[1] {
				t.Errorf("%d tokens cached, event %d: %+v, want %v", cached, e.Kind, seen, want)
			}
		}
		if told != 2 {
			t.Errorf("%d events tell of images", told)
		}
	}
}

// family is one that sees, and the tokens that its images are made of.
type family struct {
	gen    *Generator
	tokens []string
}

// families are those of the golden, in the order of their names.
func families(t testing.TB) (all []family) {
	g := readPlaces(t)
	for _, name := range slices.Sorted(maps.Keys(g.Cases)) {
		c := g.Cases[name]
		all = append(all, family{seeing(t, vision.Files{Config: c.Files.Config, Preprocessor: c.Files.Preprocessor}, c.Tokens, c.Mark), c.Tokens})
	}
	return all
}

// checkPlaces: of an image between two texts the prompt has as many rows as its plan, in the places that the engine is told, and
// no text adds to the tokens that images are made of.
func (f family) checkPlaces(t *testing.T, text string, w, h int) {
	counts := func(text string) (map[string]int, *prompt) {
		m := chat.Message{Role: chat.User, Parts: []chat.Part{{Text: text}, blank(t, w, h), {Text: text}}}
		p, err := f.gen.prompt(t.Context(), &chat.Request{Messages: []chat.Message{
			{Role: chat.System, Parts: []chat.Part{{Text: "s" + text}}}, {Role: chat.User, Parts: []chat.Part{{Text: "u" + text}}},
			{Role: chat.Assistant, Parts: []chat.Part{{Text: "a" + text}}}, m}})
		if e := (*chat.Error)(nil); errors.As(err, &e) && e.Kind == chat.Invalid {
			return nil, nil // a shape or a text that is refused
		}
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, name := range f.tokens {
			id, _ := f.gen.tok.ID(name)
			for _, x := range p.tokens {
				if x == id {
					n[name]++
				}
			}
		}
		return n, p
	}
	want, _ := counts("-")
	got, p := counts(text)
	if want == nil || got == nil {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%q and an image of %d by %d: -as with another text +got\n%s", text, w, h, d)
	}
	soft, _ := f.gen.tok.ID(f.gen.cfg.places().Soft)
	rows, positions := 0, 0
	for _, b := range p.encoded.blocks {
		positions = b.pic.plan.Positions()
		for _, tile := range b.tiles {
			n := b.pic.plan.Tiles[tile.tile].Positions
			rows += n
			for at, left := b.at+tile.at, n; left > 0; at++ {
				if p.tokens[at] == soft {
					left--
				} else if tile.line == 0 {
					t.Fatalf("token %d of the prompt is %d, in a tile", at, p.tokens[at])
				}
			}
		}
	}
	if all := got[f.gen.cfg.places().Soft]; rows != positions || all != positions {
		t.Errorf("an image of %d by %d: %d rows of tiles and %d tokens for them, %d planned", w, h, rows, all, positions)
	}
}

// TestSpelledMarks: a text that spells what images are made of is no image's place, whoever sent it.
func TestSpelledMarks(t *testing.T) {
	for _, f := range families(t) {
		all := strings.Join(f.tokens, "")
		for _, text := range []string{all, " " + all + "\n", strings.Repeat(f.gen.cfg.places().Mark, 3), "\uE012trial.0\uE012" + all} {
			f.checkPlaces(t, text, 300, 200)
		}
	}
}

// FuzzPlaces: images of all sizes beside all texts, in all families.
func FuzzPlaces(f *testing.F) {
	all := families(f)
	for i, k := range all {
		f.Add(uint8(i), "Look: ", uint16(640), uint16(480))
		f.Add(uint8(i), strings.Join(k.tokens, "\n"), uint16(1), uint16(90))
		f.Add(uint8(i), "\uE000"+k.tokens[0]+"\uE001\uE012", uint16(500), uint16(31))
	}
	f.Fuzz(func(t *testing.T, i uint8, text string, w, h uint16) {
		if w%2048 == 0 || h%2048 == 0 || len(text) > 1<<12 {
			return
		}
		all[int(i)%len(all)].checkPlaces(t, text, int(w%2048), int(h%2048))
	})
}

package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is what tools/golden/tokenizer.py wrote.
type golden struct {
	MadeBy     string                 `json:"made_by"`
	Texts      []string               `json:"texts"`
	Tokenizers map[string]goldenCases `json:"tokenizers"`
}

// goldenCases are indexed by text. A nil row equals the one in IDs; a text that is
// not listed decodes to itself. Special covers the first texts only.
type goldenCases struct {
	IDs     [][]int32         `json:"ids"`
	Special [][]int32         `json:"special"`
	Plain   [][]int32         `json:"plain"`
	Text    map[int]string    `json:"text"`
	Skipped map[int]string    `json:"skipped"`
	Random  []json.RawMessage `json:"random"`
}

func readGolden(t testing.TB, name string) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return g
}

func mustParse(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestGolden(t *testing.T) {
	g := readGolden(t, "golden.json")
	for name, cases := range g.Tokenizers {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, g, cases, mustParse(t, filepath.Join("testdata", name+".json")))
		})
	}
}

func TestGoldenDemo(t *testing.T) {
	g := readGolden(t, "golden_demo.json")
	checkGolden(t, g, g.Tokenizers["demo"], mustParse(t, filepath.Join("..", "demo", "model", "tokenizer.json")))
}

// row is one way to encode a text and the ids that it gives.
type row struct {
	o    EncodeOptions
	want []int32
}

func checkGolden(t *testing.T, g golden, cases goldenCases, tok *Tokenizer) {
	if len(cases.IDs) != len(g.Texts) || len(g.Texts) == 0 {
		t.Fatalf("%d cases for %d texts", len(cases.IDs), len(g.Texts))
	}
	for i, text := range g.Texts {
		want := cases.IDs[i]
		rows := []row{
			{EncodeOptions{ParseSpecial: true}, want},
			{EncodeOptions{}, cases.Plain[i]},
		}
		if i < len(cases.Special) {
			rows = append(rows, row{EncodeOptions{ParseSpecial: true, AddSpecial: true}, cases.Special[i]})
		}
		for _, row := range rows {
			if row.want == nil {
				row.want = want
			}
			if got := tok.Encode(text, row.o); !slices.Equal(got, row.want) {
				t.Errorf("Encode(%q, %+v)\n got %v\nwant %v (%s)", text, row.o, got, row.want, g.MadeBy)
			}
		}
		whole, ok := cases.Text[i]
		if !ok {
			whole = text
		}
		skipped, ok := cases.Skipped[i]
		if !ok {
			skipped = whole
		}
		checkDecode(t, tok, want, false, whole)
		checkDecode(t, tok, want, true, skipped)
	}
	for _, raw := range cases.Random {
		var ids []int32
		var want string
		if err := json.Unmarshal(raw, &[]any{&ids, &want}); err != nil {
			t.Fatal(err)
		}
		checkDecode(t, tok, ids, false, want)
	}
}

// checkDecode checks the whole decode and the stream against want.
func checkDecode(t *testing.T, tok *Tokenizer, ids []int32, skip bool, want string) {
	t.Helper()
	if got := tok.Decode(ids, skip); got != want {
		t.Errorf("Decode(%v, %v)\n got %q\nwant %q", ids, skip, got, want)
	}
	if got := stream(t, tok.NewDecoder(skip), ids); got != want {
		t.Errorf("stream of %v, %v\n got %q\nwant %q", ids, skip, got, want)
	}
}

// stream puts together what a Decoder emits, checking each piece.
func stream(t *testing.T, d *Decoder, ids []int32) string {
	t.Helper()
	var out strings.Builder
	for _, id := range ids {
		piece := d.Add(id)
		if strings.ToValidUTF8(piece, "") != piece {
			t.Errorf("Add(%d) returned %q, which is not valid UTF-8", id, piece)
		}
		if d.t.deco.byteLevel && len(d.held) > 3 {
			t.Errorf("%d bytes held back", len(d.held))
		}
		out.WriteString(piece)
	}
	out.WriteString(d.Flush())
	return out.String()
}

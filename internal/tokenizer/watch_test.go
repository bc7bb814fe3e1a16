package tokenizer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// looked is a context that ends after so many looks.
type looked struct {
	context.Context
	left int
}

func (l *looked) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// watched are tokenizers of all kinds of models and stages, by folder.
func watched(t *testing.T) map[string]*Tokenizer {
	t.Helper()
	all := map[string]*Tokenizer{}
	for _, name := range []string{"gpt2", "qwen2", "llama3", "unknown", "unigram", "unigram_bytes", "sentencepiece", "metaspace_words", "bert"} {
		all[name] = mustParse(t, filepath.Join("testdata", name+".json"))
	}
	demo, err := Load(os.DirFS("../demo/model"))
	if err != nil {
		t.Fatal(err)
	}
	all["demo"] = demo
	return all
}

// TestEncodeContext: whoever encodes gives the same ids with a context, looks at it every so many bytes, and gives up when it
// ends.
func TestEncodeContext(t *testing.T) {
	for name, tok := range watched(t) {
		for kind, text := range map[string]string{
			"words": strings.Repeat("some words, 12 of them;\n", 12_000), "a word": strings.Repeat("abcdefgh", 40_000), "spaces": strings.Repeat(" ", 150_000),
			"others": strings.Repeat("中文字符", 25_000), "signs": strings.Repeat("}{", 150_000),
		} {
			want := tok.Encode(text, EncodeOptions{})
			l := &looked{t.Context(), 1 << 30}
			got, err := tok.EncodeContext(l, text, EncodeOptions{})
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s, %s: other ids, %v", name, kind, err)
			}
			looks := 1<<30 - l.left
			if looks < len(text)/lookEvery/2 && len(want) > 1000 { // else it was no work
				t.Errorf("%s, %s: %d looks for %d bytes", name, kind, looks, len(text))
			}
			if _, err := tok.EncodeContext(&looked{t.Context(), looks / 2}, text, EncodeOptions{}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v after half the looks", name, kind, err)
			}
			if got, err := tok.EncodeContext(t.Context(), text, EncodeOptions{}); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %s: other ids after one that was stopped, %v", name, kind, err)
			}
		}
	}
}

// TestWholeIsBounded: a stretch that nobody may cut is refused where it would take much memory, and what can be cut is not.
func TestWholeIsBounded(t *testing.T) {
	refused := 0
	for name, tok := range watched(t) {
		long := strings.Repeat("abcdefgh", MaxWhole/8+1)
		var whole *WholeError
		if _, err := tok.EncodeContext(t.Context(), long, EncodeOptions{}); errors.As(err, &whole) {
			if refused++; whole.Bytes <= MaxWhole {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tok.EncodeContext(t.Context(), strings.Repeat("abcdefg ", MaxWhole/8+1), EncodeOptions{}); err != nil {
			t.Errorf("%s, words: %v", name, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

//go:build unix

package tokenizer

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The corpus is what tools/golden/tokenizer_table.py builds: real vocabularies and
// hard texts, too large to keep here.
var (
	corpusDir  = flag.String("corpus", "", "folder made by tools/golden/tokenizer_table.py")
	corpusName = flag.String("vocabulary", "", "the vocabulary in it to run")
	corpusAll  = flag.Bool("compare", true, "compare and not only measure")
)

// corpusResult is one line for the table.
type corpusResult struct {
	Texts  int     `json:"texts"`
	IDs    int     `json:"ids"`
	Decode int     `json:"decode"`
	Stream int     `json:"stream"`
	LoadMS float64 `json:"load_ms"` // CPU time
	Cold   float64 `json:"cold"`    // MB per CPU second, with an empty word cache
	Warm   float64 `json:"warm"`
}

// TestCorpus compares one vocabulary with the reference's answers and measures it.
func TestCorpus(t *testing.T) {
	if *corpusDir == "" {
		t.Skip("no -corpus")
	}
	var texts []string
	readJSON(t, "texts.json", &texts)
	var want struct {
		IDs  [][]int32 `json:"ids"`
		Text []string  `json:"text"`
	}
	readJSON(t, *corpusName+".want.json", &want)
	data, err := os.ReadFile(filepath.Join(*corpusDir, *corpusName+".json"))
	if err != nil {
		t.Fatal(err)
	}
	res := corpusResult{Texts: len(texts)}
	before := cpuTime()
	tok, err := Parse(data, nil)
	res.LoadMS = float64((cpuTime() - before).Microseconds()) / 1000
	if err != nil {
		t.Fatal(err)
	}
	res.Cold, res.Warm = encodeRates(t, tok)
	for i, text := range texts {
		if !*corpusAll {
			break
		}
		if slices.Equal(tok.Encode(text, EncodeOptions{ParseSpecial: true}), want.IDs[i]) {
			res.IDs++
		}
		if tok.Decode(want.IDs[i], false) == want.Text[i] {
			res.Decode++
		}
		if streams(tok, want.IDs[i], want.Text[i]) {
			res.Stream++
		}
	}
	line, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("result %s\n", line)
	if *corpusAll && (res.IDs < len(texts) || res.Decode < len(texts) || res.Stream < len(texts)) {
		t.Errorf("%s differs", *corpusName)
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*corpusDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// streams reports whether a stream gives the text, and so does one that ends after
// any of the first tokens.
func streams(tok *Tokenizer, ids []int32, want string) bool {
	const ends = 40
	d := tok.NewDecoder(false)
	var out strings.Builder
	for i, id := range ids {
		if i < ends {
			part := tok.NewDecoder(false)
			var start strings.Builder
			for _, id := range ids[:i] {
				start.WriteString(part.Add(id))
			}
			start.WriteString(part.Flush())
			if start.String() != tok.Decode(ids[:i], false) {
				return false
			}
		}
		out.WriteString(d.Add(id))
	}
	out.WriteString(d.Flush())
	return out.String() == want
}

// encodeRates encodes a text in pieces of 4 KB twice.
func encodeRates(t *testing.T, tok *Tokenizer) (cold, warm float64) {
	text, err := os.ReadFile(filepath.Join(*corpusDir, "speed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var rates [2]float64
	var ids []int32
	for pass := range rates {
		before := cpuTime()
		for i := 0; i < len(text); i += 4096 {
			ids = tok.Encode(string(text[i:min(i+4096, len(text))]), EncodeOptions{ParseSpecial: true})
		}
		rates[pass] = float64(len(text)) / 1e6 / (cpuTime() - before).Seconds()
	}
	if len(ids) == 0 {
		t.Error("no ids")
	}
	return rates[0], rates[1]
}

// cpuTime is what this process has used of the processor, the garbage collector
// included.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

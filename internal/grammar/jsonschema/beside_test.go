package jsonschema

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

var (
	beside     = flag.String("beside", "", "a Python with llguidance and jsonschema, which are asked about random schemas and those of -suite")
	besideFor  = flag.Duration("beside-for", time.Minute, "processor time of that")
	besideSeed = flag.Uint64("beside-seed", 1, "what is drawn for it")
)

// peer is tools/schemas/beside.py.
type peer struct {
	in  *json.Encoder
	out *bufio.Reader
	cpu float64 // seconds
}

type question struct {
	Schema json.RawMessage `json:"schema,omitempty"` // else that of the question before
	Texts  []string        `json:"texts,omitempty"`  // are they taken?
	Write  int             `json:"write,omitempty"`
	Seed   uint64          `json:"seed"`
	Judge  []string        `json:"judge,omitempty"` // are they valid?
}

type reply struct {
	Error   string
	Written []string
	Takes   []bool
	Valid   []*bool // by Python's jsonschema; nil: not known
	// Bare is the schema without formats, Formless tells which texts are taken then.
	Bare      json.RawMessage
	Formless  []bool
	Reordered []bool // those that are taken with their members in some other order
	CPU       float64
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	cmd := exec.Command(*beside, "../../../tools/schemas/beside.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, told.String())
		}
	})
	return &peer{in: json.NewEncoder(in), out: bufio.NewReader(out)}
}

func (p *peer) ask(t *testing.T, q question) (r reply) {
	t.Helper()
	err := p.in.Encode(q)
	if err == nil {
		var line []byte
		if line, err = p.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &r)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", q.Schema, err)
	}
	p.cpu = r.CPU
	return r
}

// TestBeside compares what grammars take with what llguidance takes, of texts that both write, of instances and of changed ones.
// Every difference has an explanation, or the test fails.
func TestBeside(t *testing.T) {
	if *beside == "" {
		t.Skip("-beside has no Python")
	}
	c := &comparison{peer: newPeer(t), r: rand.New(rand.NewPCG(*besideSeed, 6)), w: newTypist(*besideSeed), why: map[string]int{}, shown: map[string]int{}}
	var cases []suiteCase
	if *suite != "" {
		cases, _ = suiteCases(t)
		c.r.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
	}
	var before syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	used := func() time.Duration {
		var now syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Utime.Nano()+now.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano()) + time.Duration(c.peer.cpu*float64(time.Second))
	}
	random := schemas{c.r}
	for i := 0; used() < *besideFor; i++ {
		if i%2 == 0 && i/2 < len(cases) {
			k := cases[i/2]
			var of []string
			for _, one := range k.Tests {
				of = append(of, string(one.Data))
			}
			c.schema(t, k.Schema, of)
			continue
		}
		of := make([]string, 20)
		for k := range of {
			of[k] = random.value(2)
		}
		text := random.schema(3)
		for k := 0; k < 8 && notThere.MatchString(text); k++ {
			text = random.schema(3)
		}
		c.schema(t, json.RawMessage(text), of)
	}
	t.Logf("%v of processor time: %d schemas, of which %d compiled here alone, %d there alone, %d nowhere; %d texts, %d of them taken by both, %d by one",
		used().Round(time.Second), c.schemas, c.here, c.there, c.nowhere, c.texts, c.both, c.differ)
	for _, why := range slices.Sorted(maps.Keys(c.why)) {
		t.Logf("%6d %s", c.why[why], why)
	}
}

// notThere is what llguidance has not, of which few schemas are enough.
var notThere = regexp.MustCompile(`"(not|if|contains|m..Contains|oneOf|propertyNames|dependent\w+)": `)

type comparison struct {
	peer                          *peer
	r                             *rand.Rand
	w                             *typist
	schemas, here, there, nowhere int
	texts, both, differ           int
	why                           map[string]int
	shown                         map[string]int
}

func (c *comparison) schema(t *testing.T, raw json.RawMessage, instances []string) {
	c.schemas++
	root, err := schema.Parse(raw)
	if err != nil {
		return
	}
	var g *grammar.Grammar
	var unheld []Unheld
	s, err := Read(t.Context(), root)
	if err == nil {
		g, unheld, err = s.Grammar(t.Context(), Options{})
	}
	var texts []string
	if err == nil || errors.Is(err, grammar.ErrNothing) {
		for _, v := range instances {
			n, err := schema.Parse([]byte(v))
			if err != nil {
				continue
			}
			if text, err := s.spelledOut(n, Options{}); err == nil {
				texts = append(texts, text)
			}
		}
	}
	for range 10 {
		if g != nil {
			if text, ok := c.w.text(g, 300); ok {
				texts = append(texts, text)
			}
		}
	}
	theirs := c.peer.ask(t, question{Schema: raw, Texts: texts, Write: 10, Seed: c.r.Uint64() >> 12})
	nothing := errors.Is(err, grammar.ErrNothing)
	switch {
	case err != nil && !nothing && theirs.Error != "":
		c.nowhere++
		return
	case err != nil && !nothing:
		c.there++
		return
	case theirs.Error != "":
		c.here++
		what, _, _ := strings.Cut(theirs.Error, ":")
		c.why["not compiled there: "+what]++
		return
	}
	takes := theirs.Takes
	texts = append(texts, theirs.Written...)
	for range theirs.Written {
		takes = append(takes, true)
	}
	changed := make([]string, 0, 2*len(texts))
	for _, text := range texts {
		changed = append(changed, c.change(text, texts), c.change(text, texts))
	}
	takes = append(takes, c.peer.ask(t, question{Texts: changed}).Takes...)
	var odd []int
	texts = append(texts, changed...)
	for i, text := range texts {
		c.texts++
		ok := g != nil && follows(g, text)
		switch {
		case ok && takes[i]:
			c.both++
		case ok != takes[i]:
			c.differ++
			odd = append(odd, i)
		}
	}
	if len(odd) == 0 {
		return
	}
	var judge []string
	for _, i := range odd {
		judge = append(judge, texts[i])
	}
	told := c.peer.ask(t, question{Judge: judge})
	for k, i := range odd {
		valid := told.Valid[k]
		why, ok := explain(s, g, unheld, texts[i], takes[i], told.Formless[k], valid)
		switch {
		case why == "there: valid" && c.bare(told.Bare, texts[i]):
			why, ok = "there: of a format that has less here", true
		case why == "here: valid" && told.Reordered[k]:
			why, ok = "here: a value of an enum in the order of the enum", true
		}
		c.why[why]++
		switch {
		case !ok:
			t.Errorf("%s: %s\n%s\n%q", why, judged(valid), raw, texts[i])
		case c.shown[why] < 3:
			c.shown[why]++
			t.Logf("%s: %s\n%.400s\n%.400q", why, judged(valid), raw, texts[i])
		}
	}
}

// bare tells whether a text is taken here by a schema without formats.
func (c *comparison) bare(raw json.RawMessage, text string) bool {
	root, err := schema.Parse(raw)
	if err != nil {
		return false
	}
	s, err := Read(context.Background(), root)
	if err != nil {
		return false
	}
	g, _, err := s.Grammar(context.Background(), Options{})
	return err == nil && follows(g, text)
}

func judged(valid *bool) string {
	if valid == nil {
		return "jsonschema can't tell"
	}
	return fmt.Sprint("valid for jsonschema: ", *valid)
}

// change is a text with a small change, or a part of another one in it.
func (c *comparison) change(text string, others []string) string {
	if text == "" {
		return " "
	}
	runes := []rune(text)
	at := c.r.IntN(len(runes))
	switch c.r.IntN(5) {
	case 0:
		return string(slices.Delete(runes, at, min(at+1+c.r.IntN(3), len(runes))))
	case 1:
		runes[at] = []rune(`019-.eE"\/{}[],: abnurft`)[c.r.IntN(24)]
		return string(runes)
	case 2:
		return string(slices.Insert(runes, at, []rune(`019-.eE"\/{}[],: abnurft`)[c.r.IntN(24)]))
	case 3:
		to := min(at+1+c.r.IntN(8), len(runes))
		return string(slices.Insert(runes, to, slices.Clone(runes[at:to])...))
	}
	other := []rune(others[c.r.IntN(len(others))])
	if len(other) == 0 {
		return text + ","
	}
	from := c.r.IntN(len(other))
	to := min(from+1+c.r.IntN(8), len(other))
	return string(slices.Replace(runes, at, min(at+to-from, len(runes)), other[from:to]...))
}

var (
	zeros     = regexp.MustCompile(`\.[0-9]*0\b`)
	exponents = regexp.MustCompile(`[0-9][eE][-+]?[0-9]{3}`)
	long      = regexp.MustCompile(`[0-9]{65}`)
)

// explain says why a text is taken here alone or there alone. Not ok is what nothing explains.
func explain(s *Schema, g *grammar.Grammar, unheld []Unheld, text string, theirs, formless bool, valid *bool) (why string, ok bool) {
	bare := quotedText.ReplaceAllString(text, "")
	v, err := schema.Parse([]byte(text))
	switch {
	case err != nil && theirs && (exponents.MatchString(bare) || long.MatchString(bare)):
		return "there: a number that float64 has not", true
	case err != nil:
		return "no JSON", theirs && (valid == nil || !*valid)
	}
	verdict := s.Checker(true).Check(context.Background(), v)
	agreed := valid == nil || *valid == (verdict == Valid)
	if !agreed && (strings.ContainsAny(text, "\ufeff\u0085\u2028\u2029") || strings.Contains(text, `\r`)) {
		return "a blank or line end for ECMA-262 alone, or for all others", true
	}
	if !theirs {
		switch {
		case verdict == Invalid && len(unheld) > 0:
			return "here: a keyword is not held, which is told", true
		case verdict != Valid:
			return "here: not valid", false
		case !agreed:
			return "here: valid for the check alone", false
		case strings.Contains(text, "\x7f"):
			return "here: U+007F as it is", true
		case zeros.MatchString(bare):
			return "here: zeros at the end of a decimal within bounds", true
		case formless:
			return "here: of a format that has less there", true
		}
		return "here: valid", false
	}
	switch {
	case verdict == Invalid && s.Checker(false).Check(context.Background(), v) == Valid:
		return "there: of a format that has more there", true
	case verdict == Invalid:
		return "there: not valid", agreed
	}
	again, err := s.spelledOut(v, Options{})
	switch {
	case err != nil:
		return "there: " + err.Error(), false
	case g != nil && again != text && follows(g, again):
		return "there: another spelling or order of what is written here", true
	case long.MatchString(again):
		return "there: a number of more than 64 digits", true
	}
	return "there: valid", false
}

package generate

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/tokenizer"
)

// TestRunaway: a greedy reply of one short run ends as at its max tokens and is counted; a run that was asked for, a draw, a
// call, a form, and whatever is not yet so long or short go on.
func TestRunaway(t *testing.T) {
	const call = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \""
	zero, hot, one, some := 0., 0.7, 1., 0.5
	greedy := chat.Sampling{Temperature: &zero}
	g, s := newTest(t, "")
	g.cfg.RunawayStop = true
	word := g.guard.Plain(" sorry")
	if len(word) != 1 {
		word = word[:1]
	}
	long := func(n int) (ids []int32) { // a run of n tokens, none twice
		for i := range n {
			ids = append(ids, int32(1000+i))
		}
		return ids
	}
	sorry := g.cfg.Tokenizer.Decode(word, false)
	for _, tt := range []struct {
		name   string
		before string
		run    []int32
		times  int
		change func(r *chat.Request)
		cut    int // tokens generated before; 0: it is not
	}{
		{"a word", "I am", word, 3000, nil, 1024}, {"a word, one too few", "I am", word, 1023, nil, 0},
		{"64 tokens", "So:", long(64), 40, nil, 1024}, {"65 tokens", "So:", long(65), 40, nil, 0},
		{"thinking", "<think>\nSo", word, 3000, nil, 1024},
		{"top_k 1", "", word, 3000, func(r *chat.Request) { r.Sampling = chat.Sampling{Temperature: &hot, TopK: &one} }, 1024},
		{"other penalties", "", word, 3000, func(r *chat.Request) { r.Sampling.PresencePenalty = &some }, 1024},
		{"drawn", "", word, 3000, func(r *chat.Request) { r.Sampling = chat.Sampling{Temperature: &hot} }, 0},
		{"a penalty that grows", "", word, 3000, func(r *chat.Request) { r.Sampling.FrequencyPenalty = &some }, 0},
		{"a form", "", word, 3000, func(r *chat.Request) { r.Form = &chat.Form{} }, 0},
		{"arguments", call, word, 3000, func(r *chat.Request) { r.Tools = weather() }, 0},
		{"arguments before the name", "<tool_call>\n{\"arguments\": {\"city\": \"", word, 3000, func(r *chat.Request) { r.Tools = weather() }, 0},
		{"after a call", call + "Paris\"}}\n</tool_call>\nI am", word, 3000, func(r *chat.Request) { r.Tools = weather() }, 1024},
		{"asked for", "I am", word, 3000, func(r *chat.Request) { r.Messages[0] = textOf("Say '" + strings.TrimSpace(sorry) + "' 3000 times") }, 0},
		{"asked for as part of another word", "I am", word, 3000, func(r *chat.Request) { r.Messages[0] = textOf("Say x" + strings.TrimSpace(sorry) + "x") }, 1024},
		{"asked for, and read from the middle", "", g.guard.Plain(" one two three,"), 400, func(r *chat.Request) { r.Messages[0] = textOf("three, one two: go on") }, 0},
		{"a completion", "", word, 3000, func(r *chat.Request) { r.Messages, r.Prompt = nil, &chat.Prompt{Text: "I am"} }, 1024},
		{"a completion of such a text", "", word, 3000, func(r *chat.Request) {
			r.Messages, r.Prompt = nil, &chat.Prompt{Text: strings.Repeat(sorry, 9)}
		}, 0},
		{"blanks", "a", g.guard.Plain("\n"), 3000, nil, 1024},
		{"a rule that is not in the prompt", "a", g.guard.Plain("-=*"), 3000, func(r *chat.Request) { r.Messages[0] = textOf("a - = * -=* b") }, 1024},
		{"one that is", "a", g.guard.Plain("-=*"), 3000, func(r *chat.Request) { r.Messages[0] = textOf("a -=*-=* b") }, 0},
		{"off", "I am", word, 3000, func(*chat.Request) { g.cfg.RunawayStop = false }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() { g.cfg.RunawayStop = true }()
			s.context = 1 << 20
			lead := g.guard.Plain(tt.before)
			s.reply, s.finish = append(slices.Clone(lead), slices.Repeat(tt.run, tt.times)...), engine.Stop
			r := &chat.Request{Messages: []chat.Message{textOf("Hi")}, Sampling: greedy}
			if tt.change != nil {
				tt.change(r)
			}
			var end chat.Event
			collect(t, g, r, func(e *chat.Event) {
				if e.Kind == chat.EventFinish {
					end = *e
				}
			})
			met := slices.Contains(end.Usage.Bounds, chat.BoundRunaway)
			if tt.cut == 0 {
				if met || end.Usage.Output != len(s.reply)+1 {
					t.Errorf("cut after %d of %d tokens: %+v", end.Usage.Output, len(s.reply), end)
				}
				return
			}
			if n := end.Usage.Output - len(lead); !met || end.Finish != chat.FinishLength || n < tt.cut || n > tt.cut+runawayRun+1 {
				t.Errorf("ended after %d of %d tokens: %+v", n, len(s.reply)-len(lead), end)
			}
		})
	}
}

// honest are texts that repeat themselves as people's and programs' texts do: tables, rules, data, code, verse. Each has more
// than what is taken for a runaway would have, but for those that are one run from beginning to end, which are shorter than that.
func honest(n int) (texts []string) {
	r := rand.New(rand.NewPCG(39, 14))
	words := strings.Fields("north south east west red blue green apple pear plum alpha beta gamma delta one two three four open closed left right")
	pick := func() string { return words[r.IntN(len(words))] }
	lines := func(most int, line func(i int) string) string {
		var b strings.Builder
		for i := range most {
			b.WriteString(line(i))
			b.WriteByte('\n')
		}
		return b.String()
	}
	kinds := []func() string{
		func() string { // a table of zeros with its rows numbered
			zeros := strings.Repeat(" 0 |", 3+r.IntN(12))
			return lines(200+r.IntN(300), func(i int) string { return fmt.Sprintf("| row %d |%s", i, zeros) })
		},
		func() string { // a small bare one
			row := strings.Repeat("0,", 4+r.IntN(6)) + "0"
			return lines(20+r.IntN(20), func(int) string { return row })
		},
		func() string { // rules between entries
			rule := strings.Repeat([]string{"-", "=", "*", "~", "#", "_"}[r.IntN(6)], 40+r.IntN(60))
			return lines(150, func(i int) string { return fmt.Sprintf("%s\n%s %s %d", rule, pick(), pick(), i) })
		},
		func() string { return strings.Repeat([]string{"-", "=", "0", "."}[r.IntN(4)], 200+r.IntN(700)) },
		func() string { // data that hardly changes
			return "time,value,state\n" + lines(400, func(i int) string { return fmt.Sprintf("2026-01-01T%02d:%02d:00Z,0.0,ok", i/60, i%60) })
		},
		func() string { // a hex dump of zeros
			return lines(400, func(i int) string { return fmt.Sprintf("%08x  %s |................|", i*16, strings.Repeat("00 ", 16)) })
		},
		func() string { // a file of zeros, a header before it and a check behind it
			b := make([]byte, 400+r.IntN(200))
			for i := 0; i < len(b); i += 90 {
				b[i] = byte(r.Uint32())
			}
			return "data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(b)
		},
		func() string { // the unit matrix
			n := 24 + r.IntN(20)
			return lines(n, func(i int) string {
				row := make([]string, n)
				for k := range row {
					row[k] = "0"
				}
				row[i] = "1"
				return strings.Join(row, " ")
			})
		},
		func() string { // verses with a refrain
			return lines(60, func(i int) string {
				return fmt.Sprintf("%d %s on the wall, %d %s\n%s", 99-i, pick(), 99-i, pick(), strings.Repeat("la la la la la\n", 4))
			})
		},
		func() string { // code that was written by a program
			return lines(200, func(i int) string {
				return fmt.Sprintf("\tif err := check(%d); err != nil {\n\t\treturn err\n\t}", i)
			})
		},
		func() string { // a drawing
			return lines(60, func(i int) string { return strings.Repeat(" ", 60-i) + strings.Repeat("*", 2*i+1) })
		},
		func() string { // a list that is to be filled in
			return lines(300, func(i int) string { return fmt.Sprintf("%d. [ ] %s: ______", i+1, pick()) })
		},
		func() string { // a log of one message
			return lines(200, func(i int) string {
				return fmt.Sprintf("Jan  1 00:%02d:%02d host daemon[4711]: connection refused, trying again", i/60, i%60)
			})
		},
		func() string { // JSON of defaults
			return "[" + strings.TrimSuffix(lines(250, func(i int) string { return fmt.Sprintf(`{"id": %d, "x": 0, "y": 0, "z": 0, "on": false},`, i) }), ",\n") + "]"
		},
		func() string { // a pixel font
			return lines(300, func(int) string {
				row := []byte(strings.Repeat("0x00, ", 8))
				row[6*r.IntN(8)+3] = "0123456789abcdef"[r.IntN(16)]
				return string(row)
			})
		},
		func() string { // a chessboard, and the moves on it
			return lines(40, func(i int) string {
				return strings.Repeat("+---", 8) + "+\n" + strings.Repeat("| "+string(rune('a'+i%26))+" ", 8) + "|"
			})
		},
	}
	for i := range n {
		texts = append(texts, kinds[i%len(kinds)]())
	}
	return texts
}

// TestHonestTexts: no text of the corpus is cut, in this vocabulary or byte by byte, which makes runs as long as they get.
func TestHonestTexts(t *testing.T) {
	cfg, err := Load(os.DirFS(demoFolder), "")
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	for i, text := range honest(200) {
		demo := cfg.Tokenizer.Encode(text, tokenizer.EncodeOptions{})
		ids := map[string][]int32{"demo": demo}
		for _, c := range []byte(text) {
			ids["bytes"] = append(ids["bytes"], int32(c))
		}
		for name, ids := range ids {
			w, r := &runaway{asked: -1}, &repeats{longest: runawayRun}
			for n := range ids {
				r.add(ids[:n+1])
				w.quiet = 0
				if w.found(cfg.Tokenizer, r, ids[:n+1]) {
					t.Errorf("text %d is cut after %d of %d tokens (%s): %.200q", i, n, len(ids), name, text)
					break
				}
			}
		}
		if len(demo) > runawayTokens {
			long++
		}
	}
	if long < 100 {
		t.Errorf("only %d texts are long enough to be cut", long)
	}
}

package generate

import (
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// TestStops: stop strings are found whatever tokens they come in, in the answer's text alone.
func TestStops(t *testing.T) {
	const callText = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"STOP\"}}\n</tool_call>"
	for _, c := range []struct {
		name, reply string
		stops       []string
		want        string
	}{
		{"many bytes", "日本語を話す", []string{"語を"}, "start\ntext: 日本\nfinish stop_text \"語を\""},
		{"begins like one", "a日曜b日本", []string{"日本"}, "start\ntext: a日曜b\nfinish stop_text \"日本\""},
		{"nothing else", "STOP", []string{"STOP"}, "start\nfinish stop_text \"STOP\""},
		{"newlines", "one\n\ntwo\n\n\nthree", []string{"\n\n\n"}, "start\ntext: one\\n\\ntwo\nfinish stop_text \"\\n\\n\\n\""},
		{"the first to end wins", "abcdef", []string{"bcde", "cd"}, "start\ntext: ab\nfinish stop_text \"cd\""},
		{"of two that end together the longer", "abcdef", []string{"cd", "bcd"}, "start\ntext: a\nfinish stop_text \"bcd\""},
		{"not in a call", "Look: " + callText, []string{"STOP", "tool_call", "}"}, "start\ntext: Look: \ncall 0: get_weather\nargs: {\"city\": \"STOP\"}\nend 0: {\"city\": \"STOP\"}\nfinish tool_calls"},
		{"not across a call", "ST" + callText + "OP", []string{"STOP"}, "start\ntext: ST\ncall 0: get_weather\nargs: {\"city\": \"STOP\"}\nend 0: {\"city\": \"STOP\"}\ntext: OP\nfinish tool_calls"},
		{"not in reasoning, nor from there on", "<think>\nSTOP ST\n</think>\n\nOP and STOP", []string{"STOP"}, "start\nreasoning: STOP ST\ntext: OP and \nfinish stop_text \"STOP\""},
		{"before a call", "STOP " + callText, []string{"STOP"}, "start\nfinish stop_text \"STOP\""},
		{"a tag is no text", "<think>\nx\n</think>\n\ny", []string{"think", "<"}, "start\nreasoning: x\ntext: y\nfinish stop"},
		{"special tokens between", "ST<|im_start|>OP", []string{"STOP"}, "start\nfinish stop_text \"STOP\""},
		{"empty ones", "text", []string{"", "\x00"}, "start\ntext: text\nfinish stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, bytes := range []bool{false, true} {
				g, s := newTest(t, c.reply)
				if bytes && !strings.Contains(c.reply, "<") { // tokens of one byte: every cut there is
					s.reply = nil
					for i := range len(c.reply) {
						s.reply = append(s.reply, byteToken(t, g, c.reply[i]))
					}
				}
				r := &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather(), Stop: c.stops}
				if got := events(t, g, r); got != c.want {
					t.Errorf("got %s\nwant %s", got, c.want)
				}
				if s.closed != len(s.prompts) {
					t.Error("the stream stays open")
				}
			}
		})
	}
}

// byteToken is the token that stands for one byte.
func byteToken(t *testing.T, g *Generator, b byte) int32 {
	t.Helper()
	for id := range int32(g.cfg.Tokenizer.Size()) {
		if got := g.cfg.Tokenizer.Bytes(id); len(got) == 1 && got[0] == b && !g.cfg.Tokenizer.Special(id) {
			return id
		}
	}
	t.Fatalf("no token for byte %#x", b)
	return 0
}

// TestCutCall: a call that is cut short is no reason to call tools.
func TestCutCall(t *testing.T) {
	g, s := newTest(t, "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Os")
	s.finish = engine.Length
	got := events(t, g, &chat.Request{Messages: []chat.Message{text(chat.User, "Hi")}, Tools: weather()})
	if want := "start\ncall 0: get_weather\nargs: {\"city\": \"Os\nfinish length"; got != want {
		t.Errorf("got %s", got)
	}
}

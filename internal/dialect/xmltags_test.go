package dialect

import (
	"strings"
	"testing"
)

// TestDoubt: what follows a doubtful end of a value is held so long and no longer: then another parameter is one, and what would
// end the call is a part of the value.
func TestDoubt(t *testing.T) {
	const open = "<tool_call>\n<function=f>\n<parameter=s>\na\n"
	for _, more := range []int{0, 10} {
		long := strings.Repeat("x", maxDoubt+more-len("\n<parameter=path>\n\n</parameter>\n"))
		for end, want := range map[string]string{
			"<parameter=path>\n" + long + "\n</parameter>\nb\n</parameter>\n": `{"s": "a\n<parameter=path>\n` + long + `\n</parameter>\nb"}`,
			"</function>\n" + long + "\n</parameter>\n":                       `{"s": "a\n</function>\n` + long + `"}`,
		} {
			if more > 0 && strings.HasPrefix(end, "<parameter") {
				want = `{"s": "a", "path": "` + long + `\n</parameter>\nb"}`
			}
			got := parse(qwen3Coder.New(Options{Tools: declared("f")}), eachByte(open+end+"</function>\n</tool_call>")...)
			if len(got) != 3 || got[1].Text != want || got[2].Kind != ToolEnd {
				t.Errorf("%d bytes: %s, want %s", more, format(got), want)
			}
		}
	}
	p := qwen3Coder.New(Options{Tools: declared("f")})
	text := ""
	for _, piece := range p.Feed(nil, open+"</function>\n"+strings.Repeat("x", maxDoubt)) {
		text += piece.Text
	}
	if !strings.Contains(text, "xxx") {
		t.Errorf("held: %s", text)
	}
}

// TestTagBlanks: a tag may have a few blanks; with more it is a part of the value.
func TestTagBlanks(t *testing.T) {
	for n, want := range map[int]string{maxTagBlanks: `{"s": "a"}`, 3 * maxTagBlanks: `{"s": "a\n</` + strings.Repeat(" ", 3*maxTagBlanks) + `parameter>"`} {
		args := ""
		for _, p := range parse(qwen3Coder.New(Options{Tools: declared("f")}),
			"<tool_call>\n<function=f>\n<parameter=s>\na\n</"+strings.Repeat(" ", n)+"parameter>\n</function>\n</tool_call>") {
			if p.Kind == ToolArgs {
				args += p.Text
			}
		}
		if !strings.HasPrefix(args, want) {
			t.Errorf("%d blanks: %s, want %s", n, args, want)
		}
	}
}

// TestNearly: texts that differ by one character at most are nearly the same.
func TestNearly(t *testing.T) {
	const tag = "</parameter>"
	for _, s := range []string{tag, "/parameter>", "<parameter>", "</parameter", "</parmeter>", "</parammeter>", "</paraneter>", "</praameter>", "</parameter>>"} {
		if !nearly(s, tag) || !nearly(tag, s) {
			t.Errorf("%s is not nearly %s", s, tag)
		}
	}
	for _, s := range []string{"", "</param>", "</parameters/>", "<param>", "</metaparer>", "parameter>"} {
		if nearly(s, tag) {
			t.Errorf("%s is nearly %s", s, tag)
		}
	}
}

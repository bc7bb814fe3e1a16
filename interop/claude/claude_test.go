// Package claude runs the real Claude Code, headless and in a clean home, against hearth with a script in the model's
// place: `make interop` installs it and runs this. What it shows stands in docs/claude-code.md.
package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFile: Claude Code writes a file through its Write tool and reads it back, each turn building on the cache of the
// one before.
func TestFile(t *testing.T) {
	s := serve(t,
		line{Turn: 1, IfTool: "^Write$", Raw: "I will write it.\n" + toolCall(`Write`, `{"file_path": "hello.txt", "content": "Hello from hearth.\n"}`)},
		line{Turn: 2, IfTool: "^Read$", Raw: toolCall(`Read`, `{"file_path": "hello.txt"}`)},
		line{Turn: 3, Raw: `The file says: {{find "Hello.*" .Last}}`})
	r := s.claude(t, "-p", "Write hello.txt and read it back")
	r.says(t, "The file says: Hello from hearth.")
	r.wrote(t, "hello.txt", "Hello from hearth.\n")
	if window := r.result().ModelUsage["demo"].ContextWindow; window != 200_000 {
		t.Errorf("Claude Code takes the context for %d tokens", window)
	}
	calls := s.requests(t, 3)
	for i := 1; i < len(calls); i++ {
		if whole := calls[i-1].prompt + calls[i-1].output - 1; calls[i].cached < whole {
			t.Errorf("turn %d reuses %d tokens, the turn before had %d", i+1, calls[i].cached, whole)
		}
	}
	s.show(t, r)
}

// TestLaunch: hearth launch claude serves by itself and passes arguments on.
func TestLaunch(t *testing.T) {
	hearth := hearthBinary(t)
	s := &server{dir: t.TempDir()}
	file := s.write(t, line{Raw: "Hello through launch."})
	r := s.runIn(t, s.home(t), hearth, "launch", "claude", "--demo", "--script", file, "--", "-p", "Hi", "--output-format", "stream-json", "--verbose")
	r.says(t, "Hello through launch.")
}

// TestSubAgent: a sub-agent starts as soon as its call is complete, while the reply that called it still streams.
func TestSubAgent(t *testing.T) {
	agent := toolCall("{{.Tool}}", `{"description": "search", "prompt": "find the needle", "subagent_type": "general-purpose", "run_in_background": false}`)
	notes := toolCall("Write", `{"file_path": "notes.txt", "content": "{{repeat 25 "nothing yet, "}}"}`)
	s := serve(t,
		line{Turn: 1, IfLast: "find the needle", Raw: "The needle is in the hay."},
		line{Turn: 1, IfTool: "^(Task|Agent)$", Raw: agent + "\n" + notes, TokensPerSec: 80},
		line{Turn: 2, Raw: `The agent says: {{find "needle is in the \\w+" .Last}}`})
	r := s.claude(t, "-p", "Send an agent for it")
	r.says(t, "The agent says: needle is in the hay")
	r.wrote(t, "notes.txt", strings.TrimSpace(strings.Repeat("nothing yet, ", 25))) // Write takes blanks off the ends of lines
	calls := s.requests(t, 3)
	main, sub := calls[0], calls[1] // in the order they began
	if !sub.began.Before(main.ended) {
		t.Errorf("the agent's request began %v after the main reply had ended", sub.began.Sub(main.ended))
	}
	if sub.prompt >= main.prompt {
		t.Errorf("the second request has %d tokens, the main one %d: that is no agent's", sub.prompt, main.prompt)
	}
	s.show(t, r)
}

// TestCompact: /compact asks for a summary on the conversation's own prefix, and the conversation goes on from it.
func TestCompact(t *testing.T) {
	s := serve(t,
		line{IfLast: "detailed summary of the conversation", Raw: "<analysis>It was short.</analysis>\n<summary>They said that blue is nice.</summary>"},
		line{IfLast: "which colour", Raw: `The summary says: {{find "blue is nice" .Last}}`},
		line{Raw: "Blue is nice."})
	first := s.claude(t, "-p", "Say which one is nice")
	first.says(t, "Blue is nice.")
	compact := s.claudeIn(t, first.home, "-p", "/compact", "--continue")
	calls := s.requests(t, 2)
	if calls[1].cached < calls[0].prompt {
		t.Errorf("/compact reuses %d tokens of %d", calls[1].cached, calls[0].prompt)
	}
	after := s.claudeIn(t, first.home, "-p", "which colour was it?", "--continue")
	after.says(t, "The summary says: blue is nice")
	s.show(t, first, compact, after)
}

// TestContextFills: Claude Code knows how long the context is, and compacts the conversation before it is full.
func TestContextFills(t *testing.T) {
	const context = 60_000
	s := serveWith(t, []string{"--context-length", strconv.Itoa(context)},
		line{IfLast: "detailed summary of the conversation", Raw: "<summary>Six files were read.</summary>"},
		line{Times: 9, IfTool: "^Read$", Raw: toolCall("Read", `{"file_path": "big{{.Turn}}.txt"}`)},
		line{Raw: "All was read."})
	home := s.home(t)
	bigFiles(t, home, 10, 500)
	r := s.claudeIn(t, home, "-p", "Read the files")
	r.says(t, "All was read.")
	if r.compactions() == 0 {
		t.Error("the conversation was not compacted")
	}
	for _, c := range s.parse(t) {
		if c.status != "200" {
			t.Errorf("a request got %s", c.status)
		}
	}
	s.show(t, r)
}

// TestSmallContexts: from the least context that launch accepts on, a session that outgrows it is compacted again and again and
// goes on to its end. Files of 430 lines are the largest that are shown again after a compaction, which asks most of a context;
// much longer ones are not read at once.
func TestSmallContexts(t *testing.T) {
	const files = 25
	for _, tt := range []struct {
		context, lines int // of a file; 0: what a command prints
	}{
		{40_960, 150}, {40_960, 1200}, {40_960, 0}, {50_000, 200}, {65_536, 300}, {81_920, 430}, {81_920, 5000}, {100_000, 430},
	} {
		t.Run(fmt.Sprintf("%d tokens, %d lines", tt.context, tt.lines), func(t *testing.T) {
			t.Parallel()
			tool, call := "^Read$", toolCall("Read", `{"file_path": "big{{.Turn}}.txt"}`)
			if tt.lines == 0 {
				tool, call = "^Bash$", toolCall("Bash", `{"command": "seq 1 6000 | tr '\\n' ' ' | fold -w 200; echo {{.Turn}}"}`)
			}
			s := serveWith(t, []string{"--context-length", strconv.Itoa(tt.context)},
				line{IfLast: "detailed summary of the conversation", Raw: "<analysis>" + facts(60) + "</analysis>\n<summary>" + facts(120) + "</summary>"},
				line{Times: files, IfTool: tool, Raw: call},
				line{Raw: "All was read."})
			home := s.home(t)
			bigFiles(t, home, files+1, tt.lines)
			r := s.claudeIn(t, home, "-p", "Read the files")
			r.says(t, "All was read.")
			if r.compactions() == 0 {
				t.Error("the conversation was not compacted")
			}
			if few := "tokens of context are few for Claude Code"; strings.Contains(r.notes.String(), few) != (tt.context < 81_920) {
				t.Errorf("launch says: %s", r.notes)
			}
			if strings.Contains(r.notes.String(), "CLAUDE_CODE_AUTO_COMPACT_WINDOW") {
				t.Errorf("Claude Code grumbles: %s", r.notes)
			}
			last := 0
			for _, c := range s.parse(t) {
				last = max(last, c.prompt)
			}
			t.Logf("%d compactions, statuses %s, longest prompt %d", r.compactions(), s.statuses(t), last)
		})
	}
}

// facts is a text that says nothing twice, n times 10 tokens or so.
func facts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "fact %d of %d; ", i*7919%10007, i)
	}
	return b.String()
}

// TestLaunchRefuses: where the context is too small, launch says so, with the numbers, and Claude Code is not run; --force is
// obeyed where the prompt fits.
func TestLaunchRefuses(t *testing.T) {
	hearth := hearthBinary(t)
	for _, tt := range []struct {
		context, force, want string // want: "" runs
	}{
		{"8192", "", "Claude Code's prompt of some 14000 tokens does not fit into its context of 8192"},
		{"8192", "--force", "Claude Code's prompt of some 14000 tokens does not fit into its context of 8192"},
		{"32768", "", "a context of 32768 tokens is too small for Claude Code"},
		{"32768", "--force", ""},
		{"40960", "", ""},
	} {
		s := serveWith(t, []string{"--context-length", tt.context}, line{Raw: "Here I am."})
		args := s.args("-p", "Hi")
		if tt.force != "" {
			args = slices.Insert(args, 2, tt.force)
		}
		if tt.want == "" {
			s.runIn(t, s.home(t), hearth, args...).says(t, "Here I am.")
			continue
		}
		cmd, r := s.command(t, s.home(t), hearth, args...)
		if err := cmd.Run(); err == nil || !strings.Contains(r.notes.String(), tt.want) || r.out.String() != "" {
			t.Errorf("%s %s: %v: %s%s", tt.context, tt.force, err, r.out, r.notes)
		}
		s.requests(t, 0)
	}
}

// TestDiscovery: Claude Code asks for the models and keeps those it will offer; their names open the model, of which it then
// knows the context all the same.
func TestDiscovery(t *testing.T) {
	s := serveWith(t, []string{"--context-length", "131072", "--served-model-name", "org/My Model"}, line{Raw: "Here I am."})
	home := s.home(t)
	s.claudeIn(t, home, "-p", "Hi").says(t, "Here I am.")
	var kept struct {
		BaseURL string
		Models  []struct {
			ID   string
			Name string `json:"display_name"`
		}
	}
	text, err := os.ReadFile(filepath.Join(home, ".claude", "cache", "gateway-models.json"))
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	const id, name = "claude-org-My-Model", "org/My Model"
	if err != nil || kept.BaseURL != s.url || len(kept.Models) != 1 || kept.Models[0].ID != id || kept.Models[0].Name != name {
		t.Fatalf("%v: %s", err, text)
	}
	for _, model := range []string{id, "default", "opus", "haiku"} {
		r := s.claudeIn(t, home, "-p", "Hi", "--model", model)
		r.says(t, "Here I am.")
		for name, m := range r.result().ModelUsage {
			if m.ContextWindow != 131_072 || model == id && name != id {
				t.Errorf("--model %s is %s, of which Claude Code takes the context for %d tokens", model, name, m.ContextWindow)
			}
		}
	}
	if got := s.statuses(t); got != "200 200 200 200 200" {
		t.Errorf("statuses %s", got)
	}
}

// TestPromptTooLong: a Claude Code that was not told how long the context is learns it from the error, whose words it reads,
// and compacts then.
func TestPromptTooLong(t *testing.T) {
	s := serveWith(t, []string{"--context-length", "60000"},
		line{IfLast: "detailed summary of the conversation", Raw: "<summary>Nine files were read.</summary>"},
		line{Times: 9, IfTool: "^Read$", Raw: toolCall("Read", `{"file_path": "big{{.Turn}}.txt"}`)},
		line{Raw: "All was read."})
	home := s.home(t)
	bigFiles(t, home, 10, 440)
	r := s.untold(t, home, "-p", "Read the files")
	r.says(t, "All was read.")
	if got := s.statuses(t); got != strings.Repeat("200 ", 8)+"400 200 200" { // refused, summary, answer
		t.Errorf("statuses %s", got)
	}
}

// TestMaxTokensTooLarge: a strict server refuses a max_tokens that does not fit, in the words from which Claude Code takes
// one that does.
func TestMaxTokensTooLarge(t *testing.T) {
	s := serveWith(t, []string{"--context-length", "40000", "--strict-anthropic"}, line{Raw: "Here I am."})
	s.untold(t, s.home(t), "-p", "Hi").says(t, "Here I am.")
	if got := s.statuses(t); got != "400 200" {
		t.Errorf("statuses %s", got)
	}
}

// TestInterrupt: when Claude Code goes, its generation ends at once.
func TestInterrupt(t *testing.T) {
	s := serve(t, line{Raw: `{{repeat 2000 "on and on "}}`, TokensPerSec: 20})
	cmd, r := s.command(t, s.home(t), hearthBinary(t), s.args("-p", "Talk", "--include-partial-messages")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal does, so that a signal reaches all of it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.out.waitFor(t, "the first words", func(out string) bool { return strings.Contains(out, "text_delta") })
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	s.stderr.waitFor(t, "the end of the reply", func(log string) bool {
		return strings.Contains(log, "the client closed the connection")
	})
	_ = cmd.Wait() // with a status that says it was interrupted
	if took := s.requests(t, 1)[0].ended.Sub(sent); took > 2*time.Second {
		t.Errorf("generation went on for %v", took)
	} else {
		t.Logf("generation ended %v after Ctrl-C", took.Round(time.Millisecond))
	}
}

// TestRecovery: Claude Code gets its answer through every way a reply can fail.
func TestRecovery(t *testing.T) {
	const words = "one two three four"
	for name, tt := range map[string]struct {
		line     line
		statuses string // of the requests in order
	}{
		"overloaded":   {line{Times: 2, Fault: &fault{Kind: "overloaded"}}, "529 529 200"},
		"rate limited": {line{Times: 1, Fault: &fault{Kind: "rate_limited"}}, "429 200"},
		"failed":       {line{Times: 1, Fault: &fault{Kind: "error"}}, "500 200"},
		"refused":      {line{Times: 1, Fault: &fault{Kind: "cut"}}, "200 200"},
		"cut":          {line{Times: 1, Raw: words, Fault: &fault{Kind: "cut", After: 3}}, "200 200"},
		"broken off":   {line{Times: 1, Raw: words, Fault: &fault{Kind: "error", After: 3}}, "200 200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.line, line{Raw: "Here I am."})
			s.claude(t, "-p", "Hi").says(t, "Here I am.")
			if got := s.statuses(t); got != tt.statuses {
				t.Errorf("statuses %s, want %s", got, tt.statuses)
			}
		})
	}
}

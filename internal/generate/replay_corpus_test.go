package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// TestReplayByTemplate measures, over published templates, how many tokens of an agent's loop of six turns are computed where
// its client keeps the reasoning, where it keeps none and nothing is put back, and where it is. With -v it prints them, behind
// whether the template prints reasoning in the loop and when the user speaks again. What is put back makes the same prompts.
func TestReplayByTemplate(t *testing.T) {
	parts := []chat.Part{thought("Let me see."), callPart("call00001", "get_weather", `{"city": "Oslo"}`)}
	rows := map[string]string{}
	for name, src := range published(t) {
		newTalk := func() *talk {
			k := talkOver(t, name, src, false)
			k.r.Thinking.Mode = chat.On
			return k
		}
		k := newTalk()
		family := k.g.family
		if family.Open == "" || !k.g.forms[0].has(toolsDeclared) {
			continue
		}
		r := k.r
		r.Messages = slices.Concat(k.r.Messages, []chat.Message{says(parts...), answers(resultPart("call00001", "RESULT"))})
		prints := func(r *chat.Request) bool {
			out, err := k.g.Render(t.Context(), r)
			return err == nil && strings.Contains(out, "Let me see.")
		}
		loop := prints(&r)
		r.Messages = append(r.Messages, text(chat.Assistant, "Yes."), text(chat.User, "And then?"))
		later := prints(&r)
		if family.Replay == dialect.ReplayNever && (loop || later) {
			t.Errorf("%s: the template prints reasoning, in the loop %t, later %t, and %s puts none back", name, loop, later, family.Name)
		}
		rows[name] = fmt.Sprintf("%s | %t | %t", family.Name, loop, later)
		said, ok := k.utterance(parts)
		if !ok {
			continue
		}
		var prompts [3][]string
		var talks [3]*talk
		for i := range prompts {
			k := newTalk()
			talks[i] = k
			k.g.cfg.NoReplay = i == 1
			computed := 0
			for turn := range 6 {
				common, _ := k.say(strings.ReplaceAll(said, "call00001", fmt.Sprint("call1000", turn)))
				computed += len(k.m.prompt) - common
				if i > 0 {
					k.r.Messages = forgetful(k.r.Messages)
				}
				k.results("RESULT")
				prompts[i] = append(prompts[i], k.rendered(&k.r))
			}
			rows[name] += fmt.Sprintf(" | %d", computed)
		}
		if talks[0].calls == 0 { // the trial has not found out what the model would write
			delete(rows, name)
			continue
		}
		for i, want := range prompts[0] {
			if got := prompts[2][i]; got != want && loop && family.Replay != dialect.ReplayNever {
				n := max(0, commonBytes(got, want)-20)
				t.Errorf("%s: the prompt has %.100q, that of a client that keeps reasoning %.100q", name, got[min(n, len(got)):], want[min(n, len(want)):])
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		t.Logf("%s | %s", name, rows[name])
	}
}

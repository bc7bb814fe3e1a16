package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// everyTemplate gives a generator for each in-tree template, with each family's form of calls where the template has none, and
// for each of the published ones.
func everyTemplate(t *testing.T) map[string]*Generator {
	t.Helper()
	sources := builtIn(t)
	for name, src := range map[string]string{"all": printAll, "mistral": printMistral, "odd": printOdd, "plain": printPlain} {
		sources["print "+name] = src
	}
	if *templatesDir != "" {
		for name, src := range published(t) {
			sources[name] = src
		}
	}
	all := map[string]*Generator{}
	for name, src := range sources {
		g, err := withTemplate(t, src)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = g
	}
	for family := range everyFamily(t) {
		if dialect.CheckNames(family, "") != nil {
			continue // a variant that only a template can ask for
		}
		for name, src := range map[string]string{"all": printAll, "plain": printPlain, "chatml": toolless["chatml"], "calls but no tools": toolless["calls but no tools"]} {
			all[name+" for "+family], _ = withConfig(t, src, func(c *Config) { c.ToolParser = family })
		}
	}
	return all
}

// Calls and results of conversations; ids and words differ by city.
func asked(cities ...string) chat.Message {
	m := chat.Message{Role: chat.Assistant}
	for _, c := range cities {
		m.Parts = append(m.Parts, callPart("call_"+c, "f", fmt.Sprintf(`{"k": "to %s"}`, c)))
	}
	return m
}

func told(cities ...string) []chat.Message {
	var all []chat.Message
	for _, c := range cities {
		all = append(all, answers(resultPart("call_"+c, "in "+c)))
	}
	return all
}

// inOne puts what several messages say into one, as Anthropic's clients do.
func inOne(messages []chat.Message, more ...chat.Part) chat.Message {
	m := chat.Message{Role: chat.User}
	for _, k := range messages {
		m.Parts = append(m.Parts, k.Parts...)
	}
	m.Parts = append(m.Parts, more...)
	return m
}

func talkOf(parts ...any) []chat.Message {
	all := []chat.Message{text(chat.User, "Where?")}
	for _, p := range parts {
		switch p := p.(type) {
		case chat.Message:
			all = append(all, p)
		case []chat.Message:
			all = append(all, p...)
		}
	}
	return all
}

// TestResultsInOrder: every template prints results in the order of their calls, whatever order they came in, as if they had come
// in that order, and says of one that is missing that there is none where it would stand.
func TestResultsInOrder(t *testing.T) {
	templates := everyTemplate(t)
	user, said := text(chat.User, "Well?"), text(chat.Assistant, "Hm.")
	none := answers(resultPart("call_Oslo", "[no result]"))
	for _, c := range []struct {
		name      string
		got, want []chat.Message
	}{
		{"two", talkOf(asked("Paris", "Oslo"), told("Oslo", "Paris")), talkOf(asked("Paris", "Oslo"), told("Paris", "Oslo"))},
		{"three", talkOf(asked("Paris", "Oslo", "Rome"), told("Rome", "Paris", "Oslo"), said, user), talkOf(asked("Paris", "Oslo", "Rome"), told("Paris", "Oslo", "Rome"), said, user)},
		{"in one message with text", talkOf(asked("Paris", "Oslo"), inOne(told("Oslo", "Paris"), chat.Part{Text: "Well?"})),
			talkOf(asked("Paris", "Oslo"), inOne(told("Paris", "Oslo"), chat.Part{Text: "Well?"}))},
		{"around text", talkOf(asked("Paris", "Oslo"), told("Oslo"), user, told("Paris")), talkOf(asked("Paris", "Oslo"), told("Paris"), user, told("Oslo"))},
		{"in two turns", talkOf(asked("Paris", "Oslo"), told("Oslo", "Paris"), asked("Rome", "Bonn"), told("Bonn", "Rome")),
			talkOf(asked("Paris", "Oslo"), told("Paris", "Oslo"), asked("Rome", "Bonn"), told("Rome", "Bonn"))},
		{"one missing", talkOf(asked("Paris", "Oslo", "Rome"), told("Rome", "Paris"), user), talkOf(asked("Paris", "Oslo", "Rome"), told("Paris"), none, told("Rome"), user)},
		{"the first missing", talkOf(asked("Oslo", "Rome"), told("Rome"), said, user), talkOf(asked("Oslo", "Rome"), none, told("Rome"), said, user)},
		{"a stranger among them", talkOf(asked("Paris", "Oslo"), told("Bonn", "Oslo", "Paris")), talkOf(asked("Paris", "Oslo"), told("Paris", "Oslo", "Bonn"))},
		{"a late one among them", talkOf(asked("Bonn", "Wien"), told("Bonn"), said, asked("Paris", "Oslo"), told("Oslo", "Wien", "Paris")),
			talkOf(asked("Bonn", "Wien"), told("Bonn"), said, asked("Paris", "Oslo"), told("Paris", "Oslo", "Wien"))},
		{"an id of the client's own", talkOf(asked("Paris", "Oslo"), answers(resultPart("1", "in Oslo")), told("Paris")), talkOf(asked("Paris", "Oslo"), told("Paris", "Oslo"))},
		{"two for one", talkOf(asked("Paris", "Oslo"), told("Oslo", "Paris", "Paris")), talkOf(asked("Paris", "Oslo"), told("Paris", "Paris", "Oslo"))},
	} {
		for name, g := range templates {
			for _, tools := range [][]chat.Tool{nil, shapeTools} {
				got, err := g.Render(t.Context(), &chat.Request{Messages: c.got, Tools: tools})
				if err != nil {
					t.Fatal(name, err)
				}
				want, err := g.Render(t.Context(), &chat.Request{Messages: c.want, Tools: tools})
				if err != nil {
					t.Fatal(name, err)
				}
				if got != want {
					t.Errorf("%s, %s: got\n%s\nwant\n%s", name, c.name, got, want)
				}
			}
		}
	}
}

// TestRepeatedIDs: a client that gives ids again means the call that is nearest, and among those of a turn the next.
func TestRepeatedIDs(t *testing.T) {
	ask := func(ids string) chat.Message {
		m := chat.Message{Role: chat.Assistant}
		for _, id := range strings.Fields(ids) {
			m.Parts = append(m.Parts, callPart(id, "f", `{}`))
		}
		return m
	}
	tell := func(pairs string) []chat.Message {
		var all []chat.Message
		for _, p := range strings.Fields(pairs) {
			id, word, _ := strings.Cut(p, "=")
			all = append(all, answers(resultPart(id, word)))
		}
		return all
	}
	user, said := text(chat.User, "u"), text(chat.Assistant, "a")
	for _, c := range []struct {
		name string
		in   []chat.Message
		want string // the results, each with the number of its call; * answers none
	}{
		{"in every turn", talkOf(ask("0 1"), tell("0=a 1=b"), ask("0 1"), tell("1=d 0=c"), said, user, ask("0"), tell("0=e")), "a0 b1 c2 d3 e4"},
		{"within a turn", talkOf(ask("x x y"), tell("y=c x=a x=b")), "a0 b1 c2"},
		{"within a turn and again", talkOf(ask("x x"), tell("x=a x=b"), ask("x x"), tell("x=c x=d")), "a0 b1 c2 d3"},
		{"within a turn, around an answer", talkOf(ask("x x"), tell("x=a"), said, tell("x=b")), "a0 b1"},
		{"more results than calls", talkOf(ask("x x"), tell("x=a x=b x=c")), "a0 b1 c1"},
		{"turns in a row", talkOf(ask("x"), ask("x"), tell("x=a x=b")), "a0 b1"},
		{"turns in a row, of which the first has lost its result", talkOf(ask("x"), ask("x"), tell("x=b")), "b1"},
		{"late, under an id of its own", talkOf(ask("x y"), tell("x=a"), said, ask("x"), tell("y=b x=c")), "a0 c2 b1"},
		{"after the user", talkOf(ask("x"), tell("x=a"), ask("x"), user, tell("x=b")), "a0 b1"},
		{"ids of results alone", talkOf(ask("p q"), tell("0=a 1=b"), ask("r s"), tell("0=c 1=d")), "a0 b1 c2 d3"},
		{"some ids of results alone", talkOf(ask("p q r"), tell("0=a r=c 1=b")), "a0 b1 c2"},
		{"no ids", talkOf(says(callPart("", "f", ""), callPart("", "f", "")), tell("=a =b"), says(callPart("", "f", "")), tell("=c")), "a0 b1 c2"},
		{"no id, and another's name for it", talkOf(says(callPart("", "f", ""), callPart("call_0", "f", "")), tell("call_0=b =a")), "a0 b1"},
		{"rewritten, turns in a row", talkOf(ask("x"), ask("y"), tell("p=a")), "a1"},
		{"rewritten, several turns in a row", talkOf(ask("x"), ask("y"), tell("p=a q=b")), "a0 b1"},
		{"too many", talkOf(ask("x"), tell("x=a p=b q=c")), "a0 b* c*"},
		{"before any call", talkOf(tell("x=a"), ask("x"), tell("x=b")), "a* b0"},
		{"long after", talkOf(ask("x"), said, user, said, tell("x=a")), "a0"},
		{"nothing in the place of the first", talkOf(ask("x y z"), tell("z=c y=b")), "[no result]0 b1 c2"},
		{"in turns in a row", talkOf(ask("x y"), ask("z"), tell("z=c y=b")), "[no result]0 b1 c2"},
		{"history that has lost results", talkOf(ask("x"), ask("y"), ask("z"), tell("z=c")), "c2"},
		{"nothing twice", talkOf(ask("x y"), tell("y=b"), said, tell("x=a")), "[no result]0 b1 a0"},
	} {
		turns, err := turnsOf(c.in, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, turn := range turns {
			if turn.role != roleTool {
				continue
			}
			number := "*"
			if turn.answers.name != "" {
				number = fmt.Sprint(turn.answers.number)
			}
			got = append(got, turn.text+number)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRepeatedIDsLookedUp: a template that looks for the call of a result by its id finds that call, and what stands in the
// prompt does not change as the conversation goes on.
func TestRepeatedIDsLookedUp(t *testing.T) {
	g, err := withTemplate(t, `{% for m in messages %}{% if m.role == "tool" %}{% for a in messages %}{% for c in a.tool_calls %}{% if c.id == m.tool_call_id %}`+
		`[{{ c.function.name }}:{{ m.content }}]{% endif %}{% endfor %}{% endfor %}{% elif m.tool_calls %}{% for c in m.tool_calls %}({{ c.function.name }} {{ c.function.arguments | tojson }}){% endfor %}`+
		`{% else %}{{ m.content }}{% endif %}{% endfor %}{% for t in tools %}{{ t.function.name }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	messages := []chat.Message{text(chat.User, "q")}
	before := ""
	for _, c := range []struct {
		more []chat.Message
		want string
	}{
		{[]chat.Message{says(callPart("0", "f", ""), callPart("0", "g", "")), answers(resultPart("0", "a")), answers(resultPart("0", "b"))}, "(f {})(g {})[f:a][g:b]"},
		{[]chat.Message{says(callPart("0", "h", ""), callPart("0_3", "i", "")), answers(resultPart("0_3", "d")), answers(resultPart("0", "c"))}, "(h {})(i {})[h:c][i:d]"},
		{[]chat.Message{says(callPart("0", "j", ""), callPart("", "k", "")), answers(resultPart("", "f")), answers(resultPart("0", "e"))}, "(j {})(k {})[j:e][k:f]"},
		{[]chat.Message{says(callPart("call_5", "l", "")), answers(resultPart("call_5", "g"))}, "(l {})[l:g]"},
	} {
		messages = append(messages, c.more...)
		got, err := g.Render(t.Context(), &chat.Request{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		more, ok := strings.CutPrefix(got, before)
		if !ok || strings.TrimPrefix(more, "q") != c.want {
			t.Errorf("got %s behind %s, want %s", got, before, c.want)
		}
		before = got
	}
}

// TestManyResults: ten thousand results in any order find their calls.
func TestManyResults(t *testing.T) {
	const n = 10_000
	call, order := make([]chat.Part, n), rand.New(rand.NewPCG(1, 2)).Perm(n)
	for i := range call {
		call[i] = callPart(fmt.Sprint(i), "f", "{}")
	}
	messages := []chat.Message{text(chat.User, "u"), says(call...)}
	for _, i := range order {
		messages = append(messages, answers(resultPart(fmt.Sprint(i), fmt.Sprint(i))))
	}
	turns, err := turnsOf(messages, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, turn := range turns[2:] {
		if turn.text != fmt.Sprint(i) || turn.answers.number != i {
			t.Fatalf("result %d is %s, of call %d", i, turn.text, turn.answers.number)
		}
	}
}

// TestReorderedReuses: a conversation whose results come in another order than the calls takes up all that ran, in every turn.
func TestReorderedReuses(t *testing.T) {
	k := newTalk(t, true)
	const two = "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call><tool_call>{\"arguments\": {\"city\": \"Bø\"}, \"name\": \"get_weather\"}</tool_call>"
	for turn := range 6 {
		if common, ran := k.say(two); common != ran {
			t.Errorf("turn %d: %d of %d tokens had run", turn, common, ran)
		}
		k.results(strings.Repeat("sunny\n", turn+1))
		m := &k.r.Messages[len(k.r.Messages)-1]
		m.Parts[0], m.Parts[1] = m.Parts[1], m.Parts[0]
		m.Parts[0].Result.Parts[0].Text = "rainy"
	}
	in := k.r
	in.Messages = append([]chat.Message(nil), k.r.Messages...)
	for i, m := range in.Messages {
		if m.Role == chat.User && len(m.Parts) == 2 {
			in.Messages[i].Parts = []chat.Part{m.Parts[1], m.Parts[0]}
		}
	}
	got, err := k.g.Render(t.Context(), &k.r)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := k.g.Render(t.Context(), &in); err != nil || got != want {
		t.Errorf("got\n%s\nwant\n%s, %v", got, want, err)
	}
}

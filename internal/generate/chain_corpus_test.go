package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/responses"
)

// chain is a conversation over /v1/responses with a template's model. The user asks, the model thinks and calls a tool, gets the
// result, thinks and answers, and so on.
type chain struct {
	*talk
	name, src string
	thinking  bool
	calling   bool
	dir       string // of the store
	store     *store.Store
	http      http.Handler
	ids       int

	previous string           // id of the last response
	output   []map[string]any // of it
	items    []any            // all that was said, as a client tells it that builds on nothing and keeps no reasoning
	ran      []string         // what ran, in words
	turns    []chainTurn
	bad      string // why the model does not say what it should
}

// chainTurn is what a turn takes: tokens of its prompt, those that ran before, those whose text ran before; of the turn before
// it, the tokens of its prompt, and those with its answer.
type chainTurn struct{ prompt, common, told, prompted, ran int }

func (u chainTurn) computed() int { return u.prompt - u.common }

const (
	chainTurns = 20
	chainStop  = 10 // the turn before which a server restarts
	thinks     = "Let me see."
)

func newChain(t *testing.T, name, src string) *chain {
	c := &chain{name: name, src: src, dir: t.TempDir()}
	c.begin(t)
	c.thinking, c.calling = c.g.Model().Thinking, c.g.forms[0].has(toolsDeclared) && !callsUnshown[name]
	c.serve()
	return c
}

// callsUnshown are the templates of which the calls that a model writes cannot be told.
var callsUnshown = map[string]bool{"GigaChat3-10B-A1.8B": true, "Kimi-K3": true}

// begin makes the model. Some templates print the time of day: it stays.
func (c *chain) begin(t *testing.T) {
	c.talk = talkOver(t, c.name, c.src, false)
	c.g.cfg.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
}

// serve begins a server over the model and the store.
func (c *chain) serve() {
	c.store = store.New(store.Options{Mode: store.Disk, Dir: c.dir})
	mux := http.NewServeMux()
	newID := func(prefix string) string { c.ids++; return fmt.Sprintf("%s%08d", prefix, c.ids) }
	responses.Protocol{Store: c.store}.Mount(mux, wire.Options{Models: chainModel{c}, NewID: newID})
	c.http = mux
}

// restart ends the server and begins another over the same store, and over the prefix cache with what belongs to it where that is
// on disk.
func (c *chain) restart(disk bool) {
	c.store.Close()
	old := c.talk
	c.begin(c.t.(*testing.T))
	if disk {
		c.m.seen = old.m.seen
		if err := c.g.Recall(old.g.Remembered()); err != nil {
			c.t.Fatal(err)
		}
	} else {
		c.ran = nil
	}
	c.serve()
}

// chainModel is the model of a chain.
type chainModel struct{ *chain }

func (m chainModel) List(context.Context) []chat.Model                    { return []chat.Model{m.Model()} }
func (m chainModel) Open(context.Context, string) (chat.Generator, error) { return m, nil }
func (m chainModel) Model() chat.Model                                    { return m.g.Model() }

func (m chainModel) Count(ctx context.Context, r *chat.Request) (int, error) {
	return m.g.Count(ctx, r)
}

// Generate says what the template would write of the turn.
func (m chainModel) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	prompt, err := m.g.prompt(ctx, r)
	if err != nil {
		return nil, err
	}
	m.r = *r
	m.r.Messages = r.Messages[:1] // what the template leaves out of earlier turns is none of this one's
	said, ok := m.saying(m.says(len(m.turns)), prompt.options.InReasoning)
	for _, after := range afterTurns {
		said, _, _ = strings.Cut(said, after)
	}
	if !ok {
		m.bad, said = "the template does not show how the model says it", "-"
	}
	m.m.reply = uttered(m.rand, m.g.cfg.Tokenizer, 0, said)
	events, err := m.g.Generate(ctx, r)
	if err != nil {
		return nil, err
	}
	tok := m.g.cfg.Tokenizer
	u := chainTurn{prompt: len(m.m.prompt), common: m.m.common}
	if n := len(m.turns); n > 0 {
		u.prompted, u.ran = m.turns[n-1].prompt, m.last
	}
	text, common := tok.Decode(m.m.prompt, false), 0
	for _, ran := range m.ran {
		common = max(common, commonBytes(ran, text))
	}
	u.told = sort.Search(len(m.m.prompt), func(n int) bool { return len(tok.Decode(m.m.prompt[:n+1], false)) > common })
	m.ran = append(m.ran, text+tok.Decode(m.m.reply, false))
	m.turns, m.last = append(m.turns, u), len(m.m.prompt)+len(m.m.reply)
	return events, nil
}

// afterTurns are what some templates write behind a turn that is not known to end one.
var afterTurns = []string{"<｜hy_eos:", "<|START_OF_TURN_TOKEN|>"}

// says is what the model says in a turn.
func (c *chain) says(turn int) (parts []chat.Part) {
	if c.thinking {
		parts = append(parts, thought(thinks))
	}
	if turn%2 == 0 && c.calling {
		return append(parts, callPart(fmt.Sprintf("call%05d", 10000+turn), "get_weather", `{"city": "Oslo"}`))
	}
	return append(parts, chat.Part{Text: "It is sunny in Oslo."})
}

// saying is a turn as the model generates it. Where the template would leave its thought out of what follows, it stands as the
// family has it, before what the template writes.
func (c *chain) saying(parts []chat.Part, within bool) (string, bool) {
	if said, ok := c.utterance(parts); ok || !c.thinking {
		return said, ok
	}
	said, ok := c.utterance(parts[1:])
	f := c.g.family
	said = strings.TrimPrefix(said, f.Open)
	if none, rest, ok := strings.Cut(said, f.Close); ok && strings.TrimSpace(none) == "" {
		said = strings.TrimLeft(rest, "\n")
	}
	said = thinks + "\n" + f.Close + "\n\n" + said
	if !within {
		said = f.Open + "\n" + said
	}
	return said, ok
}

// turn takes the next turn: built on the one before, or with all that was said but for reasoning.
func (c *chain) turn(dropped bool) {
	c.t.Helper()
	var input []any
	for _, i := range c.output {
		if i["type"] == "function_call" {
			input = append(input, map[string]any{"type": "function_call_output", "call_id": i["call_id"], "output": "It is raining."})
		}
	}
	if input == nil {
		input = []any{map[string]any{"role": "user", "content": "What is the weather like?"}}
	}
	c.items = append(c.items, input...)
	body := map[string]any{"input": input, "enable_thinking": c.thinking}
	if c.calling {
		var tools []any
		for _, t := range spokenTools {
			tools = append(tools, map[string]any{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Parameters})
		}
		body["tools"] = tools
	}
	switch {
	case dropped:
		body["input"], body["store"] = c.items, false
	case c.previous != "":
		body["previous_response_id"] = c.previous
	}
	b, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/v1/responses", strings.NewReader(string(b)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.http.ServeHTTP(w, r)
	var got struct {
		ID     string
		Output []map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
		c.t.Fatalf("%s: %d %s %v", c.name, w.Code, w.Body, err)
	}
	c.previous, c.output = got.ID, got.Output
	kinds := map[chat.PartKind]bool{}
	for _, i := range got.Output {
		switch i["type"] {
		case "reasoning":
			kinds[chat.PartReasoning] = true
			continue
		case "message":
			kinds[chat.PartText] = true
		case "function_call":
			kinds[chat.PartToolCall] = true
		}
		delete(i, "id")
		c.items = append(c.items, i)
	}
	for _, p := range c.says(len(c.turns) - 1) {
		if !kinds[p.Kind] {
			c.bad += fmt.Sprintf("%q is read as another thing", c.g.cfg.Tokenizer.Decode(c.m.reply, false))
		}
	}
}

// run takes all turns of a conversation.
func (c *chain) run(w chainWay) {
	for turn := range chainTurns {
		if turn == chainStop && w.restart {
			c.restart(w.disk)
		}
		if c.turn(w.dropped); c.bad != "" {
			break
		}
	}
	c.store.Close()
}

// chainWay is how a conversation goes on.
type chainWay struct {
	name                   string
	restart, disk, dropped bool
}

var chainWays = []chainWay{
	{name: "chain"}, {name: "restart", restart: true, disk: true}, {name: "restart without a cache on disk", restart: true},
	{name: "reasoning dropped", dropped: true},
}

// rewritten is the most that a prompt computes again of what ran, in words.
func rewritten(turns []chainTurn) string {
	what := "nothing"
	for _, u := range turns {
		switch {
		case u.common >= u.ran-1:
		case u.common >= u.prompted-chainOpening:
			what = "the answer"
		default:
			return "more"
		}
	}
	return what
}

// chainOpening is how many tokens at the end of a prompt may be those that open the answer.
const chainOpening = 16

// chainRow is a row of the table: templates of a family that write the same again.
type chainRow struct {
	family, result, question string // what is written again in a turn with a result, and with a question
	templates, prompt        int
	computed                 [2]int // at most, with a result and with a question
	disk, memory             int    // in the first turn after a restart, at most
	dropped                  int    // how much more there is to a turn whose client keeps no reasoning, at most
}

// TestChainByTemplate measures, over the demo's template and published ones, what each of 20 turns computes that build on each
// other by previous_response_id: no token of a text that ran before, also after a restart, also where a client sends all of it
// again without reasoning. With -update it writes the table of docs/responses.md, in which ids of calls that are drawn anew move
// a figure by a few tokens.
func TestChainByTemplate(t *testing.T) {
	demo, err := os.ReadFile(demoFolder + "/chat_template.jinja")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"demo": string(demo)}
	if *templatesDir != "" {
		maps.Copy(all, published(t))
	}
	rows := map[string]*chainRow{}
	for name, src := range all {
		var ways [][]chainTurn
		var row *chainRow
		calling := false
		for _, way := range chainWays {
			c := newChain(t, name, src)
			c.run(way)
			if c.bad != "" {
				t.Fatalf("%s, %s: %s", name, way.name, c.bad)
			}
			for i, u := range c.turns {
				if told := u.prompt - u.told; u.computed() > told+2 {
					t.Errorf("%s, %s: turn %d computes %d tokens, of which %d are of texts that had not run", name, way.name, i, u.computed(), told)
				}
			}
			if ways = append(ways, c.turns); row != nil {
				continue
			}
			row = &chainRow{family: c.g.family.Name, result: "-", question: rewritten(every(c.turns, 0))}
			if calling = c.calling; calling {
				row.result = rewritten(every(c.turns, 1))
			}
			key := row.family + row.result + row.question
			if rows[key] != nil {
				row = rows[key]
			}
			rows[key] = row
		}
		row.templates++
		row.prompt = max(row.prompt, ways[0][chainTurns-1].prompt)
		for i := 1; i < chainTurns; i++ {
			chain, restart, dropped := ways[0][i].computed(), ways[1][i].computed(), ways[3][i].computed()
			kind := 1
			if calling && i%2 == 1 {
				kind = 0
			}
			row.computed[kind] = max(row.computed[kind], chain)
			row.dropped = max(row.dropped, dropped-chain)
			if restart != chain {
				t.Errorf("%s: turn %d computes %d tokens, after a restart %d", name, i, chain, restart)
			}
		}
		row.disk, row.memory = max(row.disk, ways[1][chainStop].computed()), max(row.memory, ways[2][chainStop].computed())
	}
	if !*update || len(all) == 1 {
		return
	}
	table := "| family | templates | written again with a result | with a question | last prompt | computed with a result | with a question | restarted | without disk | reasoning left out |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n"
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		r := rows[key]
		table += fmt.Sprintf("| %s | %d | %s | %s | %d | %s | %d | %d | %d | %+d |\n", r.family, r.templates, r.result, r.question, r.prompt,
			strings.Replace(fmt.Sprint(r.computed[0]), "0", "-", 1-min(r.computed[0], 1)), r.computed[1], r.disk, r.memory, r.dropped)
	}
	const file, open, end = "../../docs/responses.md", "<!-- chains: go test ./internal/generate -run TestChainByTemplate -templates DIR -update -->\n", "<!-- /chains -->"
	_, write := docPart(t, file, open, end)
	write(table)
}

// every gives the turns with a result (1) or with a question (0), but for the first of all.
func every(turns []chainTurn, odd int) (some []chainTurn) {
	for i, u := range turns {
		if i > 0 && i%2 == odd {
			some = append(some, u)
		}
	}
	return some
}

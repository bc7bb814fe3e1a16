package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/chart"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
)

// serveFlags are what "bench serve" sends.
type serveFlags struct {
	url     string
	api     string
	model   string
	key     string
	keyEnv  string
	name    string
	agents  int
	turns   int
	seconds int
	system  int64 // bytes
	result  int64 // bytes
	answer  int   // tokens
	tools   int
	seed    uint64
	json    bool
	beside  []string // files
	draw    drawFlags

	version, commit string
}

func newServeCmd(version, commit string) *cobra.Command {
	f := serveFlags{version: version, commit: commit, system: 8 << 10, result: 3 << 10}
	cmd := &cobra.Command{
		Use:   "serve URL",
		Short: "Measure any server with conversations like those of agents",
		Long: `serve has several agents talk to a server at once, over OpenAI's Chat Completions or Anthropic's Messages: a long system prompt with tools, the
same for all, then turns that send everything again, with what was answered and a new file of some KB, as agents do with results of their tools.
A call of a tool gets its result; where the answer has none, the file comes as a user's message. Texts are made by --seed, the same for every
server; answers are the server's own, at temperature 0. A turn begins when the one before has ended; every reply is a stream.

It prints for each turn the time to the first token, the tokens per second of a stream, the time between two events of it, and what the server
tells of tokens that were cached. Where a server is too busy (429, 503, 529) it waits and tries again, which is counted. It ends after --turns or --seconds;
Ctrl-C ends it at once, with what was measured until then.

Results that --json printed earlier are drawn and listed beside this one by --beside, to compare servers.`,
		Example: `  hearth bench serve http://127.0.0.1:8080
  hearth bench serve http://127.0.0.1:8080 --agents 8 --turns 20 --json > hearth.json
  hearth bench serve http://127.0.0.1:9000 --agents 8 --turns 20 --name other --beside hearth.json --html both.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Hintf(errors.New("which server?"), "name its address: %s http://127.0.0.1:8080", cmd.CommandPath())
			}
			return console.MaxArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.url = args[0]
			earlier, err := f.check()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program
			cmd.SetContext(ctx)
			var r *serveResult
			bar := console.NewBar(cmd.ErrOrStderr())
			if err := tell(cmd, f.json, func(ctx context.Context, progress func(string)) (*serveResult, error) {
				var err error
				r, err = f.run(ctx, progress, bar)
				if err == nil {
					r.beside = earlier
				}
				return r, err
			}); err != nil {
				return err
			}
			return f.draw.write(r.page(commandLine(cmd, args)))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.api, "api", "auto", "openai, anthropic, or auto: the first of them that the server speaks")
	fl.StringVar(&f.model, "model", "", "model to ask for (default: the first that the server lists)")
	fl.StringVar(&f.key, "api-key", "", "key to show to the server (default: what the variable has)")
	fl.StringVar(&f.keyEnv, "api-key-env", "HEARTH_API_KEY", "`variable` of the environment that has the key")
	fl.StringVar(&f.name, "name", "", "what results call the server (default: its address)")
	fl.IntVar(&f.agents, "agents", 4, "conversations at once")
	fl.IntVar(&f.turns, "turns", 8, "turns of each")
	fl.IntVar(&f.seconds, "seconds", 300, "when to end although turns are left; 0: never")
	fl.Var(config.Bytes(&f.system), "system", "`bytes` of the system prompt, beside the tools")
	fl.Var(config.Bytes(&f.result), "result", "`bytes` of the result of a tool")
	fl.IntVar(&f.answer, "answer", 64, "tokens of an answer at most")
	fl.IntVar(&f.tools, "tools", len(tools), "tools that requests declare; 0: none, files come from the user alone")
	fl.Uint64Var(&f.seed, "seed", 1, "of the texts")
	fl.StringSliceVar(&f.beside, "beside", nil, "`files` with earlier results, as --json prints them")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	f.draw.register(fl)
	return cmd
}

const (
	mostAgents   = 1024
	mostTurns    = 10_000
	mostText     = 4 << 20  // bytes of a system prompt, or of a result
	mostBeside   = 16 << 20 // bytes of a file of earlier results
	mostCompared = 8        // results that are compared
)

// check refuses what cannot be sent, and reads the results to compare with.
func (f *serveFlags) check() (earlier []*serveResult, err error) {
	switch {
	case f.agents < 1 || f.agents > mostAgents:
		return nil, fmt.Errorf("--agents takes numbers from 1 to %d", mostAgents)
	case f.turns < 1 || f.turns > mostTurns:
		return nil, fmt.Errorf("--turns takes numbers from 1 to %d", mostTurns)
	case f.seconds < 0:
		return nil, errors.New("--seconds must be at least 0")
	case f.answer < 1:
		return nil, errors.New("--answer must be at least 1")
	case f.tools < 0 || f.tools > len(tools):
		return nil, fmt.Errorf("--tools takes numbers from 0 to %d", len(tools))
	case f.system > mostText || f.result > mostText:
		return nil, fmt.Errorf("--system and --result take %d MiB at most", mostText>>20)
	case f.api != "auto" && !slices.ContainsFunc(apis, func(a *api) bool { return a.name == f.api }):
		return nil, console.Hintf(fmt.Errorf("unknown API %s", regular.Quote(f.api)), "--api takes auto, openai or anthropic")
	case len(f.beside) >= mostCompared:
		return nil, fmt.Errorf("--beside takes %d files at most", mostCompared-1)
	}
	for _, file := range f.beside {
		data, err := regular.Read(file, mostBeside)
		if err != nil {
			return nil, fmt.Errorf("--beside: %w", err)
		}
		r, err := readResult(data)
		if err != nil {
			return nil, console.Hintf(fmt.Errorf("--beside: %s: %w", regular.Clip(file), err), "it takes what hearth bench serve --json printed")
		}
		earlier = append(earlier, r)
	}
	return earlier, f.draw.check()
}

// readResult reads what --json printed.
func readResult(data []byte) (*serveResult, error) {
	r := &serveResult{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if r.Name == "" || len(r.PerTurn) == 0 {
		return nil, errors.New("it is no result")
	}
	return r, nil
}

// turn is one of an agent's, as it went.
type turn struct {
	number  int // from 1
	reply   *reply
	refused int
	err     error
}

// run drives the server until all turns are done, the time is over, or ctx ends.
func (f *serveFlags) run(ctx context.Context, progress func(string), bar *console.Bar) (*serveResult, error) {
	key := f.key
	if key == "" {
		key, _ = config.Environ(f.keyEnv) // none is a key, too
	}
	c, err := newClient(f.url, key, f.agents)
	if err != nil {
		return nil, err
	}
	defer c.http.CloseIdleConnections()
	if err := c.discover(ctx, f.api, f.model); err != nil {
		return nil, err
	}
	shared, err := newWriter(f.seed, 0)
	if err != nil {
		return nil, err
	}
	system := shared.system(f.system)
	r := f.result0(c)
	progress(fmt.Sprintf("%s speaks %s; %s of %s, model %s", c.base, c.api.title, count(f.agents, "agent"), count(f.turns, "turn"), c.model))

	outer := ctx
	if f.seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.seconds)*time.Second)
		defer cancel()
	}
	turns := make(chan turn)
	var agents sync.WaitGroup
	start := time.Now()
	for i := range f.agents {
		w, err := newWriter(f.seed, uint64(i)+1)
		if err != nil {
			return nil, err
		}
		agents.Go(func() {
			c.agent(ctx, &conversation{w: w, result: f.result, system: system, tools: tools[:f.tools]}, f.turns, f.answer, turns)
		})
	}
	go func() { agents.Wait(); close(turns) }()
	var g gathered
	for t := range turns {
		g.add(t, ctx.Err() != nil)
		bar.Note(int64(len(g.all)), int64(f.agents*f.turns), fmt.Sprintf("%d of %d turns, %d errors", len(g.all), f.agents*f.turns, g.errors))
	}
	bar.End()
	r.Seconds = round3(time.Since(start).Seconds())
	switch {
	case outer.Err() != nil:
		r.Ended = "by hand"
	case ctx.Err() != nil:
		r.Ended = "by --seconds"
	}
	if err := r.fill(&g); err != nil {
		return nil, err
	}
	return r, nil
}

// agent has a conversation, and tells of each turn. An error ends it: nobody knows how it would have gone on.
func (c *client) agent(ctx context.Context, conv *conversation, turns, answer int, tell chan<- turn) {
	conv.begin()
	for n := 1; n <= turns && ctx.Err() == nil; n++ {
		r, refused, err := c.ask(ctx, conv, answer)
		tell <- turn{n, r, refused, err}
		if err != nil {
			return
		}
		conv.goOn(r)
	}
}

// gathered is what came of all turns.
type gathered struct {
	all     []turn // that were answered
	errors  int
	cut     int // under way when the end came
	refused int
	first   error
	texts   []problem
}

// problem is an error and how often it came.
type problem struct {
	Count int    `json:"count"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// mostProblems is how many different ones are told.
const mostProblems = 8

// add counts a turn. ended says that the end had come when it was told.
func (g *gathered) add(t turn, ended bool) {
	g.refused += t.refused
	switch {
	case t.err == nil:
		g.all = append(g.all, t)
		return
	case ended:
		g.cut++
		return
	}
	g.errors++
	if g.first == nil {
		g.first = t.err
	}
	p := problem{1, t.err.Error(), ""}
	var h interface{ Hint() string }
	if errors.As(t.err, &h) {
		p.Hint = h.Hint()
	}
	if i := slices.IndexFunc(g.texts, func(o problem) bool { return o.Text == p.Text }); i >= 0 {
		g.texts[i].Count++
	} else if len(g.texts) < mostProblems {
		g.texts = append(g.texts, p)
	}
}

// serveResult is what --json prints.
type serveResult struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	CPU     string `json:"cpu"` // of the machine that asked
	Name    string `json:"name"`
	URL     string `json:"url"`
	Server  string `json:"server,omitempty"` // what it calls itself
	API     string `json:"api"`
	Model   string `json:"model"`

	Agents      int    `json:"agents"`
	Turns       int    `json:"turns"`
	SystemBytes int64  `json:"system_bytes"`
	ResultBytes int64  `json:"result_bytes"`
	Answer      int    `json:"answer_tokens"`
	Tools       int    `json:"tools"`
	Seed        uint64 `json:"seed"`

	Seconds  float64   `json:"seconds"`
	Ended    string    `json:"ended,omitempty"` // before all turns were done: by what
	Refused  int       `json:"refused"`         // requests that were tried again
	Cut      int       `json:"cut"`             // requests under way at the end
	Errors   int       `json:"errors"`
	Problems []problem `json:"problems,omitempty"`

	TPS     float64       `json:"tps"` // tokens that were generated, of all agents together
	All     turnFigures   `json:"all"`
	PerTurn []turnFigures `json:"per_turn"`

	beside []*serveResult
}

// turnFigures are of one turn of all agents, or of all turns.
type turnFigures struct {
	Turn     int          `json:"turn,omitempty"`
	Requests int          `json:"requests"`         // that were answered
	Prompt   int64        `json:"prompt_tokens"`    // of all requests; 0: the server does not tell
	Cached   *int64       `json:"cached_tokens"`    // of them; null: likewise
	Output   int64        `json:"output_tokens"`    // events with tokens, where the server does not tell
	First    *percentiles `json:"first_token_ms"`   // null: there was no token
	TPS      *percentiles `json:"tokens_per_s"`     // of a stream, from its first token to its last
	Between  *percentiles `json:"between_event_ms"` // from one event with tokens to the next
}

// result0 is the result before anything was measured.
func (f *serveFlags) result0(c *client) *serveResult {
	name := f.name
	if name == "" {
		name = c.base[strings.Index(c.base, "://")+3:]
	}
	return &serveResult{Version: f.version, Commit: f.commit, CPU: cpuName(), Name: name, URL: c.base, Server: regular.Clip(c.server), API: c.api.title, Model: c.model,
		Agents: f.agents, Turns: f.turns, SystemBytes: f.system, ResultBytes: f.result, Answer: f.answer, Tools: f.tools, Seed: f.seed}
}

// fill takes the figures of what was gathered. Without a single answer there is no result but the first error.
func (r *serveResult) fill(g *gathered) error {
	if len(g.all) == 0 {
		switch {
		case g.first != nil:
			return g.first
		case r.Ended == "by --seconds":
			return console.Hintf(fmt.Errorf("%s answered nothing in %.0f seconds", r.URL, r.Seconds), "give it more --seconds, or less to do: fewer --agents, a smaller --system")
		}
		return errors.New("it was ended before anything was answered")
	}
	r.Errors, r.Cut, r.Refused, r.Problems = g.errors, g.cut, g.refused, g.texts
	r.All = figuresOf(g.all)
	r.TPS = round3(float64(r.All.Output) / r.Seconds)
	for n := 1; n <= r.Turns; n++ {
		var of []turn
		for _, t := range g.all {
			if t.number == n {
				of = append(of, t)
			}
		}
		if len(of) > 0 {
			f := figuresOf(of)
			f.Turn = n
			r.PerTurn = append(r.PerTurn, f)
		}
	}
	return nil
}

func figuresOf(turns []turn) turnFigures {
	f := turnFigures{Requests: len(turns)}
	var first, rates, between []float64
	for _, t := range turns {
		r := t.reply
		f.Prompt += int64(r.prompt)
		f.Output += int64(r.tokens())
		if r.tellsCached {
			if f.Cached == nil {
				f.Cached = new(int64)
			}
			*f.Cached += int64(r.cached)
		}
		if r.grown > 0 {
			first = append(first, 1e3*r.first.Seconds())
		}
		if x := r.rate(); x > 0 {
			rates = append(rates, x)
		}
		between = append(between, r.gaps...)
	}
	f.First, f.TPS, f.Between = percentilesOf(first), percentilesOf(rates), percentilesOf(between)
	return f
}

// share is the part of the prompt that was cached, in percent; negative if that is not known.
func (f *turnFigures) share() float64 {
	if f.Cached == nil || f.Prompt <= 0 {
		return -1
	}
	return 100 * float64(*f.Cached) / float64(f.Prompt)
}

// traffic says in words what was sent.
func (r *serveResult) traffic() string {
	return fmt.Sprintf("%s at once, %s each, system prompt of %s bytes with %s, results of %s bytes, answers of %s at most, seed %d",
		count(r.Agents, "agent"), count(r.Turns, "turn"), chart.Number(float64(r.SystemBytes)), count(r.Tools, "tool"), chart.Number(float64(r.ResultBytes)), count(r.Answer, "token"), r.Seed)
}

// total says what all of it was.
func (r *serveResult) total() string {
	cached := ""
	if s := r.All.share(); s >= 0 {
		cached = fmt.Sprintf(", %.0f %% of them cached", s)
	}
	s := fmt.Sprintf("%s in %s s, %s, %d tried again because it was busy; %s prompt tokens%s, %s generated, %s a second of all together",
		count(r.All.Requests, "request"), chart.Number(r.Seconds), count(r.Errors, "error"), r.Refused, chart.Number(float64(r.All.Prompt)), cached,
		chart.Number(float64(r.All.Output)), chart.Number(r.TPS))
	if r.Ended != "" {
		s += fmt.Sprintf("; ended %s, with %s under way", r.Ended, count(r.Cut, "request"))
	}
	return s
}

func (r *serveResult) about() string {
	server := ""
	if r.Server != "" {
		server = ", which calls itself " + r.Server
	}
	return fmt.Sprintf("%s%s: %s, model %s", r.URL, server, r.API, regular.Clip(r.Model))
}

var turnHead = []string{"turn", "requests", "prompt", "cached", "first p50", "p90", "p99 ms", "tokens/s p50", "between p50", "p99 ms"}

// cells are the figures as text, from the number of requests on.
func (f *turnFigures) cells() []string {
	cached := ""
	if f.Cached != nil {
		cached = chart.Number(float64(*f.Cached))
	}
	prompt := ""
	if f.Prompt > 0 {
		prompt = chart.Number(float64(f.Prompt))
	}
	row := []string{chart.Number(float64(f.Requests)), prompt, cached}
	if f.First == nil {
		row = append(row, "", "", "")
	} else {
		row = append(row, chart.Number(f.First.P50), chart.Number(f.First.P90), chart.Number(f.First.P99))
	}
	for _, x := range []*percentiles{f.TPS, f.Between} {
		if x == nil {
			row = append(row, "")
		} else {
			row = append(row, chart.Number(x.P50))
		}
	}
	if f.Between == nil {
		return append(row, "")
	}
	return append(row, chart.Number(f.Between.P99))
}

// tables are a row for each turn, and one for each server if there are several.
func (r *serveResult) tables() []chart.Table {
	t := chart.Table{Title: "Turns", Head: turnHead}
	for i := range r.PerTurn {
		f := &r.PerTurn[i]
		t.Rows = append(t.Rows, append([]string{fmt.Sprint(f.Turn)}, f.cells()...))
	}
	t.Rows = append(t.Rows, append([]string{"all"}, r.All.cells()...))
	all := []chart.Table{t}
	if len(r.beside) > 0 {
		t := chart.Table{Title: "Servers", Head: append([]string{"server"}, append(slices.Clone(turnHead[1:]), "seconds", "errors")...)}
		for _, o := range append([]*serveResult{r}, r.beside...) {
			t.Rows = append(t.Rows, slices.Concat([]string{regular.Clip(o.Name)}, o.All.cells(), []string{chart.Number(o.Seconds), fmt.Sprint(o.Errors)}))
		}
		all = append(all, t)
	}
	return all
}

func (r *serveResult) print(w io.Writer) error {
	fmt.Fprintf(w, "server  %s\ntraffic %s\n", r.about(), r.traffic())
	for _, t := range r.tables() {
		fmt.Fprintln(w)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.total())
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s: %s\n", count(p.Count, "time"), p.Text)
		if p.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", p.Hint)
		}
	}
	return err
}

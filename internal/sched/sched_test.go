package sched

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/kv"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// TestScripts runs testdata/*.txt: blocks of command lines, ----, and what they print. Lines before the first command
// that start with # are comments.
//
//	config chunk=512 slots=4 pages=100 [start=PAGES, for now; see short] context=4096 [window=128] [fixed=1000] [target=MICROSECONDS] [nocache]
//	submit NAME prompt=N max=N [like=OTHER:N] [client=N] [score]
//	                        like: the prompt starts with the first N tokens of OTHER's, generated ones included
//	step [end=NAME,NAME] [fail=NAME] [forced=NAME:N,NAME:N] [unscored=NAME:N]  run one step; a sequence also ends when it
//	                        has generated its max; with the token that it generates join N more, for those of unscored
//	                        the rows before them are wanted
//	steps N                 run N steps, print the last
//	short pages=N rows=N    the memory of N pages more can be had when there is need of it, and steps of so many rows have room
//	slow NAME               what it begins with is on its way into the tree when it could be admitted
//	loaded NAME [pages=N] [again]  it has come, so many pages of it
//	cancel NAME
//	took [decodes=N] [prompt=N [depth=N]] us=N [alone=1] [at=DEPTH]  a step that ran so much took so long;
//	                        print how many tokens fit now
//	machine decode=US token=US [key=NS]  from now on steps take: so long if any decode, so long per prompt token,
//	                        and per token before that
//	state
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("output differs (-want +got):\n%s", d)
			}
		})
	}
}

// replay returns the script with the outputs its commands give now.
func replay(t *testing.T, text string) string {
	var sc script
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		var printed []string
		ran := false
		for _, line := range strings.Split(commands, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			ran = true
			printed = append(printed, sc.do(t, strings.Fields(line))...)
			if sc.s != nil {
				if err := sc.s.Check(); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
		}
		if ran {
			commands = strings.Join(append([]string{commands, "----"}, printed...), "\n")
		}
		out = append(out, commands)
	}
	return strings.Join(out, "\n\n") + "\n"
}

type script struct {
	s            *Scheduler
	alloc        *kv.Alloc
	seqs         map[string]*Seq
	names        map[ID]string
	finish, fail map[string]bool
	joined       map[string]int // tokens that join with the one generated
	unscored     map[string]bool
	slow         map[string]bool
	machine      *machine // nil: nothing is observed
	left, rows   int      // see short
}

// machine says what a step takes, in microseconds.
type machine struct {
	decode     float64 // if any sequence decodes,
	each, held float64 // for every one, and per token before it
	token, key float64 // likewise of prompt tokens
}

func (m *machine) took(items []Item) float64 {
	us, decode := 0.0, 0.0
	for i := range items {
		n := float64(items[i].Tokens)
		if items[i].Decode {
			decode = max(decode, m.decode) + m.each + m.held*float64(items[i].Seq.Table.Len)
			n--
		}
		us += n * (m.token + m.key*(float64(items[i].Seq.Table.Len)+n/2))
	}
	return us + decode
}

// token is an element that nobody else has.
func token(id ID, pos int) kv.Elem { return kv.Elem(id)<<32 | kv.Elem(pos) }

func own(q *Seq) {
	for len(q.Key) < q.Prompt {
		q.Key = append(q.Key, token(q.ID, len(q.Key)))
	}
}

func (sc *script) do(t *testing.T, words []string) []string {
	arg := func(key string, def int) int {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, key+"="); ok {
				n, err := strconv.Atoi(v)
				if err != nil {
					t.Fatalf("%v: %v", words, err)
				}
				return n
			}
		}
		return def
	}
	switch words[0] {
	case "config":
		return sc.config(arg, words[len(words)-1] == "nocache")
	case "submit":
		q := &Seq{ID: ID(len(sc.seqs) + 1), Prompt: arg("prompt", 0), Max: arg("max", 0),
			Client: uint64(arg("client", 0)), Score: words[len(words)-1] == "score", Background: words[len(words)-1] == "background",
			Owner: kv.Owner{Session: uint64(arg("session", 0))}}
		for _, w := range words {
			if like, ok := strings.CutPrefix(w, "like="); ok {
				name, n, _ := strings.Cut(like, ":")
				k, _ := strconv.Atoi(n)
				q.Key = append(q.Key, sc.seqs[name].Key[:k]...)
			}
		}
		own(q)
		sc.seqs[words[1]], sc.names[q.ID] = q, words[1]
		sc.s.Submit(q)
	case "short":
		sc.left, sc.rows = arg("pages", sc.left), arg("rows", sc.rows)
	case "slow":
		sc.slow[words[1]] = true
	case "loaded":
		q := sc.seqs[words[1]]
		for i := range arg("pages", 0) {
			if ok, err := sc.s.prefix.InsertPage(q.Key, i, 1, func(int) bool { return true }, func(int, kv.PageID) error { return nil }); !ok || err != nil {
				return []string{fmt.Sprintf("page %d: %t, %v", i, ok, err)}
			}
		}
		sc.s.Loaded(q, words[len(words)-1] == "again")
	case "cancel":
		sc.s.Cancel(sc.seqs[words[1]])
	case "step":
		sc.finish, sc.fail, sc.joined, sc.unscored = map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]bool{}
		for _, w := range words[1:] {
			set := map[string]map[string]bool{"end": sc.finish, "fail": sc.fail, "unscored": sc.unscored}
			verb, list, _ := strings.Cut(w, "=")
			for _, n := range strings.Split(list, ",") {
				name, count, joins := strings.Cut(n, ":")
				if joins {
					sc.joined[name], _ = strconv.Atoi(count)
				}
				if set[verb] != nil {
					set[verb][name] = true
				}
			}
		}
		return sc.step()
	case "steps":
		n, _ := strconv.Atoi(words[1])
		sc.finish, sc.fail, sc.joined, sc.unscored = nil, nil, nil, nil
		for range n - 1 {
			sc.step()
		}
		return sc.step()
	case "took":
		sc.s.ChunkBudget.observe(load{arg("decodes", 0), arg("prompt", 0), float64(arg("depth", 0))}, float64(arg("us", 0)))
		room, cost := sc.s.ChunkBudget.limit(sc.s.cfg.Chunk, arg("alone", 0) == 0, 0, 0, arg("at", 0), false)
		return []string{fmt.Sprintf("room %.0f", cost.fit(room, arg("at", 0)))}
	case "machine":
		sc.machine = &machine{decode: float64(arg("decode", 0)), token: float64(arg("token", 0)), key: float64(arg("key", 0)) / 1000}
	case "tick":
		sc.s.Expire(int64(arg("to", 0)))
	case "state":
		r, w := sc.s.Counts()
		pages, idle := sc.alloc.PagesInUse()
		entries := 0
		if sc.s.prefix != nil {
			entries = sc.s.prefix.Entries()
		}
		return []string{fmt.Sprintf("running %d waiting %d pages %d idle %d bytes %d entries %d", r, w, pages, idle, sc.alloc.InUse(), entries)}
	default:
		t.Fatalf("unknown command %v", words)
	}
	return nil
}

// config makes pages of 64 tokens that cost 64 bytes in group 0 and as much in a window group.
func (sc *script) config(arg func(string, int) int, nocache bool) []string {
	g := kv.Geometry{PageTokens: 64, FixedBytes: int64(arg("fixed", 0)), Groups: []kv.Group{{PageBytes: 64}}}
	if w := arg("window", 0); w > 0 {
		g.Groups = append(g.Groups, kv.Group{Window: w, PageBytes: 64})
	}
	a, err := kv.NewAlloc(g, kv.Limits{Bytes: int64(arg("pages", 0)) * 64, Slots: arg("slots", 1),
		Tokens: arg("context", 1), Span: arg("chunk", 1)})
	if err != nil {
		return []string{err.Error()}
	}
	*sc = script{s: New(Config{Chunk: arg("chunk", 1), Target: int64(arg("target", 0)), Longest: int64(arg("longest", 0)), NoCache: nocache,
		Terms: kv.Terms{TTL: int64(arg("ttl", 0)), Sessions: arg("sessions", 0), Idle: int64(arg("idle", 0))}}, a), alloc: a, seqs: map[string]*Seq{}, names: map[ID]string{}, slow: map[string]bool{}}
	if n := arg("start", 0); n > 0 {
		a.OnShort(int64(n)*64, func(least, _ int64) int64 {
			if n := (int(least) + 63) / 64; n <= sc.left {
				sc.left -= n
				return int64(n) * 64
			}
			return 0
		})
		sc.s.cfg.Room = func(rows, _, _ int) bool { return rows <= sc.rows }
	}
	sc.s.cfg.Ask = func(q *Seq, _ int) bool { return sc.slow[sc.names[q.ID]] }
	return []string{fmt.Sprintf("context %d capacity %v", a.Limits().Tokens, a.Capacity().Pages)}
}

func (sc *script) step() []string {
	var printed []string
	p := sc.s.Next()
	for _, l := range p.Preempted {
		printed = append(printed, fmt.Sprintf("preempt %s at %d, slot %d", sc.names[l.Seq.ID], l.Seq.ran, l.Slot))
	}
	out := make([]Outcome, len(p.Items))
	for i, it := range p.Items {
		q := it.Seq
		name := sc.names[q.ID]
		verb := "prefill"
		if it.Decode {
			verb = "decode"
		}
		line := fmt.Sprintf("%s %s[%d:%d]", verb, name, q.Table.Len, q.Table.Len+it.Tokens)
		if it.First {
			line += fmt.Sprintf(" slot %d", q.Slot)
			if q.Match.Kind != kv.Miss {
				line += fmt.Sprintf(" %v %d of %d", q.Match.Kind, q.Match.Tokens, q.Match.Longer)
			}
			if t := it.Tail(); t != nil {
				line += fmt.Sprintf(" copy %v to %v", q.Match.Tail, t)
			}
		}
		switch {
		case q.Score:
			line += " all"
			out[i].End = q.Table.Len+it.Tokens == q.Prompt
		case it.Rows > q.Unscored:
			q.Unscored = 0
			out[i].New = 1 + sc.joined[name]
			for range out[i].New {
				q.Key = append(q.Key, token(q.ID, len(q.Key)))
			}
			if sc.unscored[name] {
				q.Unscored = sc.joined[name]
			}
			out[i].End = q.Unscored == 0 && len(q.Key) == q.Prompt+q.Max || sc.finish[name]
		default:
			q.Unscored -= it.Rows
		}
		if it.Rows > 1 && !q.Score {
			line += fmt.Sprintf(" rows %d", it.Rows)
		}
		if sc.fail[name] {
			out[i] = Outcome{End: true, Failed: true}
			line += " failed"
		} else if out[i].End {
			line += " end"
		}
		printed = append(printed, line)
	}
	if sc.machine != nil && len(p.Items) > 0 {
		us := sc.machine.took(p.Items)
		sc.s.ChunkBudget.Observe(p.Items, int64(us))
		printed = append(printed, fmt.Sprintf("%.0f ms", us/1000))
	}
	sc.s.Done(p, out)
	if len(printed) == 0 {
		return []string{"nothing"}
	}
	return printed
}

// Planning a step of sequences that decode allocates nothing but, every 64 tokens, room in a page table.
func TestAllocs(t *testing.T) {
	g := kv.Geometry{PageTokens: 64, Groups: []kv.Group{{PageBytes: 1}}}
	a, err := kv.NewAlloc(g, kv.Limits{Bytes: 1 << 20, Slots: 8, Tokens: 4000, Span: 64})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Chunk: 64}, a)
	for i := range ID(8) {
		s.Submit(&Seq{ID: i, Prompt: 1, Max: 3000, Key: make([]kv.Elem, 1, 3001)})
	}
	out := make([]Outcome, 8)
	for i := range out {
		out[i].New = 1
	}
	step := func() {
		p := s.Next()
		for i := range p.Items {
			p.Items[i].Seq.Key = append(p.Items[i].Seq.Key, 1)
		}
		s.Done(p, out)
	}
	step()
	if n := testing.AllocsPerRun(50, step); n != 0 && !kv.Invariants {
		t.Errorf("%v allocations per step", n)
	}
}

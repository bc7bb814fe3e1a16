package catalog

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is so many seconds after noon; at(0) is no time.
func at(s float64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return noon.Add(time.Duration(s * float64(time.Second)))
}

// parseStanding reads a model as the table has it: "loaded 5 used 20" are seconds.
func parseStanding(t *testing.T, text string) (s standing) {
	t.Helper()
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word, x := words[i], 0.0
		if i+1 < len(words) {
			if _, err := fmt.Sscan(words[i+1], &x); err == nil {
				i++
			}
		}
		switch word {
		case "absent", "loads", "resides", "leaves":
			s.phase = map[string]phase{"absent": absent, "loads": loads, "resides": resides, "leaves": leaves}[word]
		case "needs":
			s.need = int64(x)
		case "spare":
			s.spare = int64(x)
		case "users":
			s.users = int(x)
		case "waiting":
			s.waiting = int(x)
		case "since":
			s.first = at(x)
		case "loaded":
			s.loaded = at(x)
		case "used":
			s.used = at(x)
		case "until":
			s.until = at(x)
		case "drains":
			s.drains = true
		default:
			t.Fatalf("what is %q?", word)
		}
	}
	return s
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		models    []string
		free      int64
		last, now float64
		want      decision
		spare     int64
	}{
		"nothing":                {[]string{"absent needs 4", "resides needs 4"}, 0, 0, 100, decision{load: -1}, 0},
		"room":                   {[]string{"absent needs 4 waiting 9 since 5"}, 4, 99, 100, decision{load: 0}, 0},
		"the first is first":     {[]string{"absent needs 4 waiting 9 since 5", "absent needs 4 waiting 1 since 4"}, 4, 0, 100, decision{load: 1}, 0},
		"one at a time":          {[]string{"absent needs 4 waiting 9 since 5", "loads needs 4 waiting 1 since 6"}, 8, 0, 100, decision{load: -1}, 0},
		"what leaves is awaited": {[]string{"absent needs 4 waiting 9 since 5", "leaves needs 4"}, 0, 0, 100, decision{load: -1}, 0},
		"never":                  {[]string{"absent needs 9 waiting 1 since 5", "resides needs 4"}, 4, 0, 100, decision{load: -1, never: []int{0}}, 0},
		"never, and another":     {[]string{"absent needs 9 waiting 1 since 5", "absent needs 4 waiting 1 since 6"}, 4, 0, 100, decision{load: 1, never: []int{0}}, 0},
		"idle goes":              {[]string{"resides needs 4 until 100"}, 4, 0, 100, decision{load: -1, unload: []int{0}}, 0},
		"idle will go":           {[]string{"resides needs 4 until 130"}, 4, 0, 100, decision{load: -1, wake: at(130)}, 0},
		"in use stays":           {[]string{"resides needs 4 until 90 users 1"}, 4, 0, 100, decision{load: -1}, 0},
		"least recently used": {[]string{"resides needs 4 used 50 until 300", "resides needs 4 used 40 until 300", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, unload: []int{1}, parts: true, wake: at(300)}, 0},
		"asked to stay, last": {[]string{"resides needs 4 used 40", "resides needs 4 used 50 until 300", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, unload: []int{1}, parts: true, wake: at(300)}, 0},
		"no more than needed": {[]string{"resides needs 1 used 40", "resides needs 4 used 50", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, unload: []int{1}, parts: true}, 0},
		"a few need not wait": {[]string{"resides needs 4 used 98", "absent needs 4 waiting 4 since 99"}, 0, 95, 100, decision{load: -1, unload: []int{0}, parts: true}, 0},
		"many do":             {[]string{"resides needs 4 used 98", "absent needs 4 waiting 5 since 99"}, 0, 95, 100, decision{load: -1, wake: at(125)}, 0},
		"and those where many run": {[]string{"resides needs 4 used 98", "absent needs 4 waiting 1 since 99", "resides users 4"}, 0, 95, 100,
			decision{load: -1, wake: at(125)}, 0},
		"many, later": {[]string{"resides needs 4 used 98", "absent needs 4 waiting 5 since 99"}, 0, 70, 100, decision{load: -1, unload: []int{0}, parts: true}, 0},
		"in use, young": {[]string{"resides needs 4 users 1 loaded 90", "resides needs 4 users 1 loaded 80", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, wake: at(110)}, 0},
		"in use, old": {[]string{"resides needs 4 users 1 loaded 60", "resides needs 4 users 1 loaded 50", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, drains: []int{1}}, 0},
		"drained": {[]string{"resides needs 4 used 10 users 1 loaded 60", "resides needs 4 drains waiting 3 since 98 used 99 loaded 50", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, unload: []int{1}, parts: true}, 0},
		"caches shrink for it": {[]string{"resides needs 6 spare 3 users 1 loaded 1", "absent needs 4 waiting 1 since 99"}, 0, 0, 100, decision{load: 1}, 1},
		"but models nobody uses go first": {[]string{"resides needs 3 users 1 loaded 1", "resides needs 3", "absent needs 4 waiting 1 since 99"}, 0, 0, 100,
			decision{load: -1, unload: []int{1}, parts: true}, 3},
		"drains for nobody": {[]string{"resides needs 4 drains users 1 waiting 3 since 98", "absent needs 4"}, 0, 0, 100, decision{load: -1}, 0},
	} {
		all := make([]standing, len(c.models))
		for i, text := range c.models {
			all[i] = parseStanding(t, text)
			all[i].free = c.free
		}
		if got := decide(all, c.spare, at(c.last), at(c.now)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// crowd is clients that ask, wait, are served and ask again, against the policy alone, with a clock of its own.
type crowd struct {
	all       []standing
	pending   [][]*asked // per model, who waits for it
	free      int64
	now, last time.Time
	wake      time.Time
	switches  int
	loads     int
	served    map[int]int
	most      int // switches that anybody has waited for
	events    []event
}

type asked struct {
	client, switches int
	since            time.Time
	then             func()
}

type event struct {
	at time.Time
	do func()
}

const loading2s, request500ms = 2 * time.Second, 500 * time.Millisecond

func (c *crowd) after(d time.Duration, do func()) {
	c.events = append(c.events, event{c.now.Add(d), do})
}

// ask has a client ask for a model; then is called when it has its answer.
func (c *crowd) ask(client, m int, then func()) {
	c.pending[m] = append(c.pending[m], &asked{client, c.switches, c.now, then})
	c.admit(m)
	c.decide()
}

func (c *crowd) admit(m int) {
	s := &c.all[m]
	for s.phase == resides && !s.drains && len(c.pending[m]) > 0 {
		a := c.pending[m][0]
		c.pending[m] = c.pending[m][1:]
		s.users++
		c.served[a.client]++
		c.most = max(c.most, c.switches-a.switches)
		c.after(request500ms, func() {
			s.users--
			s.used = c.now
			a.then()
			c.decide()
		})
	}
	if s.waiting = len(c.pending[m]); s.waiting > 0 {
		s.first = c.pending[m][0].since
	}
}

func (c *crowd) decide() {
	for i := range c.all {
		c.all[i].free = c.free
	}
	d := decide(c.all, 0, c.last, c.now)
	for i := range c.all {
		c.all[i].drains = false
	}
	for _, i := range d.drains {
		c.all[i].drains = true
	}
	for _, i := range d.unload {
		s := &c.all[i]
		if s.users > 0 {
			panic("a model in use goes")
		}
		s.phase = leaves
		c.after(100*time.Millisecond, func() {
			s.phase, s.drains = absent, false
			c.free += s.need
			c.decide()
		})
	}
	if d.parts {
		c.last = c.now
		c.switches++
	}
	for i := range c.all {
		c.admit(i)
	}
	if i := d.load; i >= 0 {
		s := &c.all[i]
		s.phase = loads
		c.free -= s.need
		c.loads++
		c.after(loading2s, func() {
			s.phase, s.loaded, s.used = resides, c.now, c.now
			c.admit(i)
			c.decide()
		})
	}
	c.wake = d.wake
}

// run goes on for so long, and then until nobody waits. It reports false if somebody waits for ever.
func (c *crowd) run() bool {
	for len(c.events) > 0 || !c.wake.IsZero() {
		next := -1
		for i := range c.events {
			if next < 0 || c.events[i].at.Before(c.events[next].at) {
				next = i
			}
		}
		if next < 0 || !c.wake.IsZero() && c.wake.Before(c.events[next].at) {
			c.now = c.wake
			c.decide()
			continue
		}
		e := c.events[next]
		c.events = append(c.events[:next], c.events[next+1:]...)
		c.now = e.at
		e.do()
	}
	for m := range c.pending {
		if len(c.pending[m]) > 0 {
			return false
		}
	}
	return true
}

// Fifty clients that ask for three models where two fit are all served; there are at most three loads and one each half minute,
// and none waits for more than three switches: whether each keeps to its model, or picks another each time, and with a pinned
// model that leaves room for one only.
func TestFiftyClients(t *testing.T) {
	for name, pick := range map[string]func(r *rand.Rand, client int) int{
		"each its own": func(_ *rand.Rand, client int) int { return client % 3 },
		"by chance":    func(r *rand.Rand, _ int) int { return r.IntN(3) },
		"mostly one":   func(r *rand.Rand, _ int) int { return max(0, r.IntN(12)-9) },
	} {
		for _, fit := range []int64{2, 1} {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 1))
				c := &crowd{all: make([]standing, 3), pending: make([][]*asked, 3), free: 10 * fit, now: noon, served: map[int]int{}}
				for i := range c.all {
					c.all[i].need = 10
				}
				end := noon.Add(5 * time.Minute)
				for client := range 50 {
					var again func()
					again = func() {
						if c.now.Before(end) {
							c.ask(client, pick(r, client), again)
						}
					}
					c.after(time.Duration(r.IntN(1000))*time.Millisecond, again)
				}
				if !c.run() || len(c.served) != 50 {
					t.Fatalf("%s, %d fit, seed %d: %d clients were served, and some wait for ever: %+v", name, fit, seed, len(c.served), c.all)
				}
				if most := 3 + int(c.now.Sub(noon)/residence); c.loads > most {
					t.Errorf("%s, %d fit, seed %d: %d loads in %v, at most %d", name, fit, seed, c.loads, c.now.Sub(noon), most)
				}
				if c.most > 3 {
					t.Errorf("%s, %d fit, seed %d: somebody waited for %d switches", name, fit, seed, c.most)
				}
			}
		}
	}
}

// One person who goes from model to model does not wait for more than the load.
func TestOnePerson(t *testing.T) {
	c := &crowd{all: make([]standing, 3), pending: make([][]*asked, 3), free: 10, now: noon, served: map[int]int{}}
	for i := range c.all {
		c.all[i].need = 10
	}
	n := 0
	var again func()
	again = func() {
		if n++; n <= 10 {
			c.ask(0, n%3, again)
		}
	}
	c.after(0, again)
	if took := 10 * (loading2s + request500ms + 200*time.Millisecond); !c.run() || c.served[0] != 10 || c.now.Sub(noon) > took {
		t.Errorf("%d answers in %v", c.served[0], c.now.Sub(noon))
	}
}

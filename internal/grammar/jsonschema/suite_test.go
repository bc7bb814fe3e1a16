package jsonschema

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

var suite = flag.String("suite", "", "a folder with copies of JSON-Schema-Test-Suite's tests/draft2020-12 or of maskbench/data, whose counts are printed")

// written writes a value as the grammar has it: members in the order of the schemas that it follows.
func (c *compiler) written(s *strings.Builder, rules []*rule, v *schema.Node) {
	check := c.checker()
	var f *form
	for _, form := range c.forms(rules) {
		if !slices.ContainsFunc(form.rules, func(s *rule) bool { return !check.own(s, v) }) {
			f = form
			break
		}
	}
	if f == nil {
		c.o.write(s, v)
		return
	}
	if values, ok := c.values(f); ok {
		for _, e := range values {
			if check.equal(e, v) {
				c.o.write(s, e)
				return
			}
		}
	}
	comma, colon := c.o.between()
	switch v.Kind() {
	case schema.Array:
		s.WriteByte('[')
		for i := range v.Items {
			if i > 0 {
				s.WriteString(comma)
			}
			c.written(s, c.elementRules(f, i), &v.Items[i])
		}
		s.WriteByte(']')
	case schema.Object:
		s.WriteByte('{')
		o := &objects{compiler: c, f: f}
		names, _ := o.declaredNames()
		var members []*schema.Node
		for _, name := range names {
			if m := v.Member(name); m != nil {
				members = append(members, m)
			}
		}
		for _, m := range v.Written() {
			if !slices.Contains(members, m) {
				members = append(members, m)
			}
		}
		for i, m := range members {
			if i > 0 {
				s.WriteString(comma)
			}
			s.WriteString(`"` + spelled(m.Key) + `"` + colon)
			c.written(s, c.memberRules(f, m.Key), m)
		}
		s.WriteByte('}')
	default:
		c.o.write(s, v)
	}
}

// spelledOut is a value as the grammar of a schema has it.
func (s *Schema) spelledOut(v *schema.Node, o Options) (text string, err error) {
	defer caught(&err)
	var b strings.Builder
	newCompiler(s.reader, grammar.NewBuilder(), o).written(&b, []*rule{s.root}, v)
	return b.String(), nil
}

// follows tells whether a whole text follows a grammar.
func follows(g *grammar.Grammar, text string) bool {
	u := grammar.NewBudget(1)
	for range 1000 {
		u.Token()
	}
	return g.Matches(text, u)
}

// suiteCase is a schema with instances.
type suiteCase struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// counts of a suite.
type counts struct {
	schemas, held, unheld, refused                     int
	valid, accepted, invalid, taken, checked, unchecks int
	misses                                             map[string]int
	times                                              []time.Duration
}

// suiteCases are the cases of the suite, with the files that they are in.
func suiteCases(t *testing.T) (all []suiteCase, paths []string) {
	t.Helper()
	err := filepath.WalkDir(*suite, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".json") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var cases []suiteCase
		if raw[0] == '{' {
			var one suiteCase
			err = json.Unmarshal(raw, &one)
			cases = []suiteCase{one}
		} else {
			err = json.Unmarshal(raw, &cases)
		}
		if err != nil {
			t.Logf("%s: %v", path, err)
			return nil
		}
		for _, c := range cases {
			if len(c.Schema) == 0 {
				c.Schema = []byte("true")
			}
			all, paths = append(all, c), append(paths, strings.TrimPrefix(path, *suite))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, paths
}

// TestSuite prints how many schemas of a suite are held, and which instances are accepted. Its files are not here.
func TestSuite(t *testing.T) {
	if *suite == "" {
		t.Skip("-suite has no folder")
	}
	all := &counts{misses: map[string]int{}}
	cases, paths := suiteCases(t)
	for i, c := range cases {
		all.run(t, paths[i], c)
	}
	t.Logf("%d schemas: %d held, %d partly, %d refused", all.schemas, all.held, all.unheld, all.refused)
	t.Logf("%d of %d valid instances accepted, %d of %d invalid ones too", all.accepted, all.valid, all.taken, all.invalid)
	t.Logf("the check differs on %d, and does not end on %d", all.checked, all.unchecks)
	for _, why := range slices.Sorted(maps.Keys(all.misses)) {
		t.Logf("%5d %s", all.misses[why], why)
	}
	if slices.Sort(all.times); len(all.times) > 0 {
		at := func(p int) time.Duration { return all.times[(len(all.times)-1)*p/100].Round(time.Microsecond) }
		t.Logf("compiled in p50 %v, p95 %v, p99 %v, at most %v", at(50), at(95), at(99), at(100))
	}
}

func (all *counts) run(t *testing.T, path string, c suiteCase) {
	all.schemas++
	fail := func(format string, args ...any) {
		t.Logf("%s: %s: %s", path, c.Description, fmt.Sprintf(format, args...))
	}
	root, err := schema.Parse(c.Schema)
	if err != nil {
		fail("%v", err)
		return
	}
	var g *grammar.Grammar
	var unheld []Unheld
	var s *Schema
	took := time.Hour
	for range 3 { // the machine may do other things too
		start := time.Now()
		if s, err = Read(context.Background(), root); err == nil {
			g, unheld, err = s.Grammar(context.Background(), Options{})
		}
		took = min(took, time.Since(start))
	}
	if all.times = append(all.times, took); took > 5*time.Millisecond {
		fail("compiled in %v", took.Round(time.Millisecond))
	}
	if errors.Is(err, grammar.ErrNothing) {
		err = nil
	}
	if err != nil {
		all.refused++
		why := err.Error()
		if e := new(Error); errors.As(err, &e) {
			why = e.Keyword + " " + e.What
		}
		all.misses["refused: "+why]++
		fail("%v", err)
		return
	}
	if len(unheld) == 0 {
		all.held++
	} else {
		all.unheld++
		met := map[string]bool{}
		for _, u := range unheld {
			if why := "not held: " + u.Keyword + ": " + u.Why; !met[why] {
				met[why] = true
				all.misses[why]++
				fail("%s", u)
			}
		}
	}
	for _, test := range c.Tests {
		v, err := schema.Parse(test.Data)
		if err != nil {
			continue
		}
		switch s.Checker(true).Check(context.Background(), v) {
		case Unchecked:
			all.unchecks++
			fail("%s: not checked", test.Description)
		case Valid:
			if !test.Valid {
				all.checked++
				fail("%s: the check takes %.200s", test.Description, test.Data)
			}
		case Invalid:
			if test.Valid {
				all.checked++
				fail("%s: the check refuses %.200s", test.Description, test.Data)
			}
		}
		text, err := s.spelledOut(v, Options{})
		if err != nil {
			fail("%s: %v", test.Description, err)
			continue
		}
		ok := g != nil && follows(g, text)
		switch {
		case test.Valid:
			if all.valid++; ok {
				all.accepted++
			} else {
				fail("%s: not accepted: %.300s", test.Description, text)
			}
		default:
			if all.invalid++; ok {
				all.taken++
				if len(unheld) == 0 {
					fail("%s: accepted, though invalid: %.300s", test.Description, text)
				}
			}
		}
	}
}

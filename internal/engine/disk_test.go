package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/sched"
	"hearth/internal/tier"
	"hearth/internal/tier/tiertest"
)

// onDisk gives an engine a tier in dir.
func onDisk(dir string, n *tiertest.Notes, more func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Disk = &tier.Options{Dir: dir, Name: "tiny", Fingerprint: "tiny", Quota: 1 << 30, Warn: n.Add}
		if more != nil {
			more(c)
		}
	}
}

func closeNow(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoredSame: what an engine answers is the same to the bit when parts of it come back from disk, after eviction
// and after restarts. Every schedule is random, and most go on from the files of one before.
func TestRestoredSame(t *testing.T) {
	schedules := uint64(12)
	if testing.Short() {
		schedules = 4
	}
	for name, h := range map[string]func() *hooked{
		"ref":        func() *hooked { return &hooked{} },
		"cpu float":  func() *hooked { return &hooked{Backend: cpu.New(), precision: backend.Float32} },
		"cpu 4 bits": func() *hooked { return &hooked{Backend: cpu.New(), config: tiny4} },
		"cpu hybrid": func() *hooked { return &hooked{Backend: cpu.New(), config: hybrid} },
	} {
		t.Run(name, func(t *testing.T) {
			all, want, page := alone(t, h())
			var dir string
			var n tiertest.Notes
			var sum tier.Stats
			for seed := range schedules {
				r := rand.New(rand.NewPCG(seed, 9))
				if seed%4 == 0 {
					dir = t.TempDir()
				}
				e := start(t, h(), onDisk(dir, &n, func(c *Config) {
					c.MaxSequences, c.PrefillChunk, c.Budget = 1+r.IntN(6), 5+r.IntN(200), int64(7+r.IntN(30))*page
					c.Disk.Quota = int64(3+r.IntN(25)) * page
				}))
				disturb(t, e, r, all, want)
				closeNow(t, e)
				s := e.Stats().Cache.Disk
				sum.Hits += s.Hits
				sum.Tokens += s.Tokens
				sum.Writes += s.Writes
				sum.Errors += s.Errors
				if s.Bytes > s.Quota {
					t.Errorf("%d bytes on disk, the quota is %d", s.Bytes, s.Quota)
				}
			}
			if sum.Hits == 0 || sum.Tokens == 0 || sum.Writes == 0 || sum.Errors != 0 {
				t.Errorf("%+v", sum)
			}
			if lines := n.Take(); lines != nil {
				t.Error(lines)
			}
			t.Logf("%d schedules of %d prompts: %+v", schedules, len(all), sum)
		})
	}
}

// TestRestart: an engine that starts where another one ended goes on from its whole pages, and counts them as cached.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	p := Prompt{Tokens: prompt(150, 1), MaxTokens: 60, Logprobs: -1}
	fresh := read(t, submit(t, start(t, &hooked{}, nil), p))

	e := start(t, &hooked{}, onDisk(dir, &n, nil))
	if got := read(t, submit(t, e, p)); !cmp.Equal(got, fresh) {
		t.Error(cmp.Diff(fresh, got))
	}
	busy := start(t, &hooked{}, onDisk(dir, &n, nil))
	if lines := n.Take(); len(lines) != 1 || !strings.Contains(lines[0], "another process") {
		t.Errorf("a second owner: %q", lines)
	}
	if got := read(t, submit(t, busy, p)); !cmp.Equal(got, fresh) || busy.Stats().Cache.Disk != (tier.Stats{}) {
		t.Errorf("a second owner: %+v", busy.Stats().Cache.Disk)
	}
	closeNow(t, e)

	e = start(t, &hooked{}, onDisk(dir, &n, nil))
	next := p
	next.Tokens = slices.Clone(p.Tokens)
	for _, tok := range fresh {
		next.Tokens = append(next.Tokens, tok.ID)
	}
	next.Tokens = append(next.Tokens, prompt(20, 5)...)
	s := submit(t, e, next)
	read(t, s)
	// 150 and 59 that ran are three whole pages.
	if u := s.Usage(); u.Cached != 192 || u.Disk != 192 || u.Hit != kv.Within {
		t.Errorf("the next turn after a restart: %d cached, %d of them from disk (%v)", u.Cached, u.Disk, u.Hit)
	}
	again := submit(t, e, next)
	read(t, again)
	if u := again.Usage(); u.Cached != len(next.Tokens)-1 || u.Disk != 0 {
		t.Errorf("and once more: %d cached, %d of them from disk", u.Cached, u.Disk)
	}
	salted := next
	salted.Salt = kv.Salt{1}
	s = submit(t, e, salted)
	read(t, s)
	if u := s.Usage(); u.Cached != 0 {
		t.Errorf("under another salt %d are cached", u.Cached)
	}
	if st := e.Stats().Cache; st.Disk.Hits != 1 || st.Disk.Tokens != 192 || st.Tokens != int64(192+len(next.Tokens)-1) {
		t.Errorf("%+v", st)
	}
	closeNow(t, e)

	e = start(t, &hooked{}, onDisk(dir, &n, nil))
	s = submit(t, e, salted)
	read(t, s)
	if u := s.Usage(); u.Disk != 192 || u.Cached != 192 {
		t.Errorf("under its own salt after a restart: %d cached, %d of them from disk", u.Cached, u.Disk)
	}
	if _, err := e.DropCache(context.Background()); err != nil {
		t.Fatal(err)
	}
	closeNow(t, e)
	if st := e.Stats().Cache.Disk; st.Entries != 0 || st.Bytes != 0 {
		t.Errorf("after dropping it: %+v", st)
	}
	if lines := n.Take(); lines != nil {
		t.Error(lines)
	}
}

// What nobody has used again is written when there is nothing else to do for a while, unless the quota is used up; so it
// survives a process that is killed.
func TestQuietWrite(t *testing.T) {
	for name, c := range map[string]struct {
		pages   int64 // of quota; one takes a header, too
		entries int
	}{"room": {40, 2}, "half": {4, 1}, "none": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n tiertest.Notes
				e := start(t, &hooked{}, onDisk(t.TempDir(), &n, nil))
				page := e.alloc.Geometry().Groups[0].PageBytes
				closeNow(t, e)
				e = start(t, &hooked{}, onDisk(t.TempDir(), &n, func(c2 *Config) { c2.Disk.Quota = c.pages * (page + 600) }))
				for i := range uint64(2) {
					read(t, submit(t, e, Prompt{Tokens: prompt(200, i), MaxTokens: 2, Logprobs: -1}))
					time.Sleep(idleWrite - time.Millisecond)
				}
				if s := e.Stats().Cache.Disk; s.Writes != 0 {
					t.Errorf("written before it was quiet: %+v", s)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if s := e.Stats().Cache.Disk; s.Entries != c.entries || s.Refused != 0 || s.Writes != int64(c.entries) {
					t.Errorf("%+v, want %d written", s, c.entries)
				}
				if lines := n.Take(); lines != nil {
					t.Error(lines)
				}
			})
		})
	}
}

// TestTurnsThatWait: so many turns wait to be written, and so many tokens of those that wait for a quiet time, the latest ones.
func TestTurnsThatWait(t *testing.T) {
	done := func(d *disk, tokens, cached int) {
		d.done(&sequence{Seq: sched.Seq{Key: make([]kv.Elem, tokens), Prompt: tokens, Cached: cached}})
	}
	soon, later := &disk{}, &disk{}
	for range 300 {
		done(soon, 2, 2)
	}
	for i := range 6 {
		done(later, 1<<18-i, 0)
	}
	if len(soon.ended) != 256 || len(soon.later) != 0 {
		t.Errorf("%d turns wait, %d for a quiet time", len(soon.ended), len(soon.later))
	}
	if n := len(later.later); n != 4 || len(later.later[0]) != 1<<18-2 {
		t.Errorf("%d turns wait for a quiet time", n)
	}
}

// TestLongestStep: a step of prompts alone may take a second, or the target of one beside decodes where that is more.
func TestLongestStep(t *testing.T) {
	for target, want := range map[time.Duration]int64{0: 0, 150 * time.Millisecond: 1_000_000, 3 * time.Second: 3_000_000} {
		if got := (&Config{StepTarget: target}).policy().Longest; got != want {
			t.Errorf("a target of %v: %d us, want %d", target, got, want)
		}
	}
}

// Files that are damaged cost the time to compute what was in them, and one line each.
func TestDamagedDisk(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	p := Prompt{Tokens: prompt(300, 1), MaxTokens: 5, Logprobs: -1}
	e := start(t, &hooked{}, onDisk(dir, &n, nil))
	want := read(t, submit(t, e, p))
	closeNow(t, e)
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.run"))
	if len(files) != 1 {
		t.Fatalf("%q", files)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	page := int(e.alloc.Geometry().Groups[0].PageBytes)
	b[len(b)-page-1] ^= 1 // the last byte of page 2 of 0 to 3
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	e = start(t, &hooked{}, onDisk(dir, &n, nil))
	s := submit(t, e, p)
	if got := read(t, s); !cmp.Equal(got, want) || s.Usage().Cached != 128 {
		t.Errorf("%d cached, want the two pages before the damaged one; %s", s.Usage().Cached, cmp.Diff(want, got))
	}
	if lines := n.Take(); len(lines) != 1 || !strings.Contains(lines[0], "checksum") {
		t.Errorf("%q", lines)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// A disk that takes nothing costs one line and nothing else.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	e := start(t, &hooked{}, onDisk(dir, &n, func(c *Config) { c.Budget = 12 * 64 * 2 * 2 * 8 * 8 }))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(6) {
		read(t, submit(t, e, Prompt{Tokens: prompt(300, i), MaxTokens: 3, Logprobs: -1}))
	}
	closeNow(t, e)
	if lines := n.Take(); len(lines) != 1 || !strings.Contains(lines[0], "nothing more is written") {
		t.Errorf("%q", lines)
	}
	if s := e.Stats().Cache.Disk; s.Errors != 1 || s.Entries != 0 {
		t.Errorf("%+v", s)
	}
}

// What is under a salt is counted and dropped by itself, in memory and on disk, and comes back to nobody; the rest stays.
func TestDropSalt(t *testing.T) {
	var n tiertest.Notes
	dir := t.TempDir()
	e := start(t, &hooked{}, onDisk(dir, &n, nil))
	ask := func(salt byte) Prompt {
		return Prompt{Tokens: prompt(200, 1), MaxTokens: 3, Logprobs: -1, Salt: kv.Salt{salt}}
	}
	cached := func(salt byte) int {
		s := submit(t, e, ask(salt))
		read(t, s)
		return s.Usage().Cached
	}
	for salt := range byte(3) {
		cached(salt)
	}
	if err := e.Save("name", []byte("everybody's")); err != nil {
		t.Fatal(err)
	}
	closeNow(t, e)
	e = start(t, &hooked{}, onDisk(dir, &n, nil))
	cached(1)
	cached(2)
	all := e.Stats().Cache
	for salt, entries := range []int{0, 1, 1, 0} {
		if s := e.Stored(kv.Salt{byte(salt)}); s.Entries != entries || (s.Bytes > 0) != (entries > 0) || (s.DiskEntries > 0) != (salt < 3) || (s.DiskBytes > 0) != (salt < 3) {
			t.Errorf("salt %d: %+v of %+v", salt, s, all)
		}
	}
	mine := e.Stored(kv.Salt{1})
	d, err := e.DropSalt(t.Context(), kv.Salt{1})
	if err != nil || d != mine || e.Stored(kv.Salt{1}) != (Stored{}) || e.Saved("name") != nil {
		t.Errorf("dropped %+v, %v of %+v, left %+v", d, err, mine, e.Stored(kv.Salt{1}))
	}
	if s := e.Stats().Cache; s.Entries != all.Entries-1 || s.Bytes != all.Bytes-mine.Bytes || s.Disk.Entries != all.Disk.Entries-mine.DiskEntries {
		t.Errorf("%+v are left of %+v", s, all)
	}
	if n := cached(2); n != 199 {
		t.Errorf("another salt finds %d tokens", n)
	}
	if n := cached(1); n != 0 {
		t.Errorf("%d tokens came back", n)
	}
	closeNow(t, e)
	if lines := n.Take(); lines != nil {
		t.Error(lines)
	}
}

// TestOtherPrecision: what was computed in another precision, or by another build, is not gone on from.
func TestOtherPrecision(t *testing.T) {
	dir := t.TempDir()
	var n tiertest.Notes
	p := Prompt{Tokens: prompt(200, 1), MaxTokens: 4, Logprobs: -1}
	hook := func(p backend.Precision) *hooked { return &hooked{Backend: cpu.New(), config: tiny4, precision: p} }
	for _, tt := range []struct {
		precision backend.Precision
		build     string
		disk      int // tokens
	}{
		{backend.Fast, "", 0}, {backend.Fast, "", 192}, {backend.Outliers, "", 0}, {backend.Outliers, "", 192}, {backend.Outliers, "later", 0}, {backend.Exact, "later", 0},
	} {
		e := start(t, hook(tt.precision), onDisk(dir, &n, func(c *Config) { c.Disk.Fingerprint += tt.build }))
		s := submit(t, e, p)
		got := read(t, s)
		if want := read(t, submit(t, start(t, hook(tt.precision), nil), p)); !cmp.Equal(got, want) {
			t.Errorf("%v: %s", tt.precision, cmp.Diff(want, got))
		}
		if u := s.Usage(); u.Disk != tt.disk || u.Cached != tt.disk {
			t.Errorf("%v: %d cached, %d of them from disk, want %d", tt.precision, u.Cached, u.Disk, tt.disk)
		}
		closeNow(t, e)
	}
	if lines := n.Take(); lines != nil {
		t.Error(lines)
	}
}

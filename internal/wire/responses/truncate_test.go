package responses

import (
	"context"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// counting is a generator whose prompts have as many tokens as their texts have bytes, and that keeps what it was asked.
type counting struct {
	context int
	counts  int
	got     *chat.Request
}

func (c *counting) Model() chat.Model { return chat.Model{Context: c.context} }

func (c *counting) Count(ctx context.Context, r *chat.Request) (int, error) {
	c.counts++
	return size(r.Messages), ctx.Err()
}

func (c *counting) Generate(_ context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	c.got = r
	return func(yield func(chat.Event, error) bool) { yield(chat.Event{Usage: &chat.Usage{}}, nil) }, nil
}

func size(messages []chat.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			n += 1 + len(p.Text)
		}
	}
	return n
}

// conversation makes a random one. Each text is unique, so that messages can be told apart.
func conversation(r *rand.Rand) (all []chat.Message) {
	add := func(role chat.Role, p chat.Part) {
		p.Text = fmt.Sprintf("%d%*s", len(all), r.IntN(40), "")
		all = append(all, chat.Message{Role: role, Parts: []chat.Part{p}})
	}
	pending := []string{}
	answer := func() {
		add(chat.ToolRole, chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: pending[0]}})
		pending = pending[1:]
	}
	for range r.IntN(60) {
		switch n := r.IntN(10); {
		case n == 0:
			add(chat.System, chat.Part{})
		case n < 4:
			add(chat.User, chat.Part{})
		case n < 6:
			add(chat.Assistant, chat.Part{})
		case n < 8:
			id := fmt.Sprint("call_", r.IntN(20))
			add(chat.Assistant, chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id}})
			if pending = append(pending, id); n == 6 { // else it comes behind other messages, or not at all
				answer()
			}
		case len(pending) > 0:
			answer()
		}
	}
	add(chat.User, chat.Part{})
	for range r.IntN(5) {
		add(chat.Assistant, chat.Part{})
	}
	return all
}

// without are the messages of all that are not in kept, which has some of them in order.
func without(t *testing.T, all, kept []chat.Message) (gone []chat.Message) {
	t.Helper()
	for _, m := range all {
		if len(kept) > 0 && reflect.DeepEqual(m, kept[0]) {
			kept = kept[1:]
		} else {
			gone = append(gone, m)
		}
	}
	if len(kept) > 0 {
		t.Fatalf("what is left is not in order: %v", kept)
	}
	return gone
}

// TestTruncation: of random conversations a suffix that begins with a turn is left, and the system's messages; it fits and one
// turn more does not, or only the last turn is left. No result is without its call. What it costs grows with the logarithm.
func TestTruncation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cut, least := 0, 0
	for range 5000 {
		all := conversation(r)
		g := &counting{context: 1 + r.IntN(size(all)*3/2)}
		room := r.IntN(100)
		limit := g.context - min(room, g.context/4)
		if room == 0 {
			limit = g.context - min(replyRoom, g.context/4)
		}
		places := turnCuts(all)
		events, err := generateFitting(t.Context(), g, &chat.Request{Messages: all, MaxTokens: room}, places)
		if err != nil {
			t.Fatal(err)
		}
		gone := without(t, all, g.got.Messages)
		for e, err := range events {
			if err != nil || e.Usage.Dropped != len(gone) {
				t.Fatalf("it says that %d messages were left out, not %d", e.Usage.Dropped, len(gone))
			}
		}
		if most := 1 + bits.Len(uint(len(places))); g.counts > most {
			t.Fatalf("%d counts for %d places", g.counts, len(places))
		}
		if len(gone) == 0 {
			continue
		}
		cut++
		var kept []chat.Message // but for the system's
		for _, m := range g.got.Messages {
			if m.Role != chat.System {
				kept = append(kept, m)
			}
		}
		last := gone[len(gone)-1]
		calls := map[string]bool{}
		for _, m := range gone {
			if m.Role == chat.System {
				t.Fatal("a message of the system's is gone")
			}
		}
		if kept[0].Role != chat.User || last.Role == chat.User {
			t.Fatalf("what is left begins with a message of %s behind one of %s", kept[0].Role, last.Role)
		}
		for _, m := range kept {
			if p := m.Parts[0]; p.Call != nil {
				calls[p.Call.ID] = true
			} else if p.Result != nil && !calls[p.Result.CallID] {
				t.Fatalf("a result of %s without its call", p.Result.CallID)
			}
		}
		at := 1
		for len(places[at].from(all)) != len(g.got.Messages) {
			at++
		}
		switch before := size(places[at-1].from(all)); {
		case before <= limit:
			t.Fatalf("%d tokens of %d would have fitted", before, limit)
		case size(g.got.Messages) > limit && at < len(places)-1:
			t.Fatalf("%d tokens do not fit %d", size(g.got.Messages), limit)
		case at == len(places)-1:
			least++
		}
	}
	if cut < 1000 || least < 100 || cut-least < 1000 {
		t.Errorf("%d of 5000 were cut, %d of them to their last turn", cut, least)
	}
}

// TestSteps: a conversation to sum up is cut within its turn too, where the model begins to speak; what the user said in that
// turn stays, and so does the last step.
func TestSteps(t *testing.T) {
	message := func(role chat.Role, text string, p chat.Part) chat.Message {
		p.Text = text
		return chat.Message{Role: role, Parts: []chat.Part{p}}
	}
	call := func(id string) chat.Part {
		return chat.Part{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: id}}
	}
	result := func(id string) chat.Part {
		return chat.Part{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: id}}
	}
	all := []chat.Message{
		message(chat.System, "sys", chat.Part{}), message(chat.User, "one", chat.Part{}), message(chat.Assistant, "a1", chat.Part{}),
		message(chat.User, "two", chat.Part{}), message(chat.Assistant, "c1", call("1")), message(chat.ToolRole, "r1", result("1")),
		message(chat.Assistant, "c2", call("2")), message(chat.ToolRole, "r2", result("2")), message(chat.User, "sum up", chat.Part{}),
	}
	var got []string
	for _, c := range stepCuts(all) {
		got = append(got, said(&chat.Request{Messages: c.from(all)}))
	}
	want := []string{
		"system:sys user:one assistant:a1 user:two assistant:c1 tool:r1 assistant:c2 tool:r2 user:sum up",
		"system:sys user:two assistant:c1 tool:r1 assistant:c2 tool:r2 user:sum up",
		"system:sys user:two assistant:c2 tool:r2 user:sum up",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestTruncationCancelled: a client that leaves ends the search.
func TestTruncationCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := &counting{context: 8}
	r := &chat.Request{Messages: []chat.Message{
		{Role: chat.User, Parts: wire.TextParts("One two three")}, {Role: chat.Assistant}, {Role: chat.User, Parts: wire.TextParts("Four")},
	}}
	if _, err := generateFitting(ctx, g, r, turnCuts(r.Messages)); err == nil || g.counts != 1 || g.got != nil {
		t.Errorf("%v after %d counts", err, g.counts)
	}
}

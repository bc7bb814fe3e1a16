package responses

import (
	"cmp"
	"context"
	"iter"

	"hearth/internal/chat"
)

// truncationAuto has the oldest turns left out of a conversation that does not fit.
const truncationAuto = "auto"

// replyRoom is how many tokens are kept free for a reply whose request does not say how long it may be; never more than a quarter
// of the context are.
const replyRoom = 1024

// cut is a place where a conversation may begin: what stands before it goes, but for the system's messages. Within a turn that
// is not all of it, and what the user said in it stays.
type cut struct {
	at   int // the first message that stays
	turn int // the first message of the turn that it is in
}

// turnCuts are the places where a turn begins, that is a message of the user's behind one of somebody else's. The first place
// leaves all there is, the last one the last turn.
func turnCuts(messages []chat.Message) []cut { return cuts(messages, false) }

// stepCuts are turnCuts for a conversation with a request of ours behind it, and the places within a turn where the model begins
// to speak. The last leaves the model's last step.
func stepCuts(messages []chat.Message) []cut {
	all := cuts(messages, true)
	if n := len(all); n > 1 && all[n-1].at == len(messages)-1 {
		return all[:n-1] // nothing but the request is left
	}
	return all
}

// cuts are places that no call and its result stand on both sides of.
func cuts(messages []chat.Message, steps bool) []cut {
	answered := answers(messages)
	all := []cut{{}}
	turn, until := 0, 0
	last := chat.System
	for i := range messages {
		role := messages[i].Role
		if role == chat.System {
			continue
		}
		begins := role == chat.User && last != chat.User
		if begins {
			turn = i
		}
		step := steps && role == chat.Assistant && last != chat.User
		if (begins || step) && last != chat.System && i > until {
			all = append(all, cut{i, turn})
		}
		until = max(until, answered[i])
		last = role
	}
	return all
}

// answers gives for each message the last one that has a result of a call of its.
func answers(messages []chat.Message) []int {
	last := make([]int, len(messages))
	called := map[string]int{} // which message has the latest call of that id
	for i := range messages {
		for _, p := range messages[i].Parts {
			switch p.Kind {
			case chat.PartToolCall:
				called[p.Call.ID] = i
			case chat.PartToolResult:
				if at, ok := called[p.Result.CallID]; ok {
					last[at] = i
				}
			}
		}
	}
	return last
}

// from is a conversation from a place on.
func (c cut) from(messages []chat.Message) []chat.Message {
	if c.at == 0 {
		return messages
	}
	var kept []chat.Message
	for i, m := range messages[:c.at] {
		if m.Role == chat.System || i >= c.turn && m.Role == chat.User {
			kept = append(kept, m)
		}
	}
	return append(kept, messages[c.at:]...)
}

// generateFitting has r answered with as little left out of its conversation as it takes to leave room for a reply. Where even
// the last of places is too early, the generator says so.
func generateFitting(ctx context.Context, g chat.Generator, r *chat.Request, places []cut) (iter.Seq2[chat.Event, error], error) {
	short := *r
	at, err := firstFitting(ctx, g, r, places)
	if err != nil {
		return nil, err
	}
	short.Messages = places[at].from(r.Messages)
	dropped := len(r.Messages) - len(short.Messages)
	events, err := g.Generate(ctx, &short)
	if err != nil || dropped == 0 {
		return events, err
	}
	return func(yield func(chat.Event, error) bool) {
		for e, err := range events {
			if e.Usage != nil {
				u := *e.Usage
				u.Dropped, e.Usage = dropped, &u
			}
			if !yield(e, err) {
				return
			}
		}
	}, nil
}

// firstFitting finds a place that fits where the one before it does not, or the last. It counts tokens for about log2 of the
// places.
func firstFitting(ctx context.Context, g chat.Generator, r *chat.Request, places []cut) (int, error) {
	limit := g.Model().Context
	limit -= min(cmp.Or(r.MaxTokens, replyRoom), limit/4)
	over, fits := -1, len(places)-1 // places[over] does not fit, if there is one
	for try := 0; over < fits-1; try = (over + fits) / 2 {
		short := *r
		short.Messages = places[try].from(r.Messages)
		n, err := g.Count(ctx, &short)
		switch {
		case err != nil:
			return 0, err
		case n <= limit:
			fits = try
		default:
			over = try
		}
	}
	return fits, nil
}

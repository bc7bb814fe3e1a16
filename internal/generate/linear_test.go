package generate

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hearth/internal/chat"
	"hearth/internal/dialect"
)

// cost is what f takes: bytes of the heap, and processor time of the whole process but for the collector.
func cost(f func()) (bytes uint64, cpu time.Duration) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := processorTime()
	f()
	cpu = processorTime() - began
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, cpu
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestFitIsLinear: what a conversation costs on its way to the template's messages grows as it does, whatever has to be
// joined, split or found in it.
func TestFitIsLinear(t *testing.T) {
	calls := func(n int) []chat.Part {
		var parts []chat.Part
		for i := range n {
			parts = append(parts, callPart(fmt.Sprint("call_", i), "f", "{}"))
		}
		return parts
	}
	results := func(n int, id string) []chat.Message {
		var all []chat.Message
		for i := range n {
			all = append(all, answers(resultPart(fmt.Sprint(id, n-1-i), "r")))
		}
		return all
	}
	times := func(n int, m ...chat.Message) []chat.Message { return slices.Repeat(m, n) }
	user, assistant := text(chat.User, strings.Repeat("u", 20)), text(chat.Assistant, strings.Repeat("a", 20))
	for name, conversation := range map[string]func(n int) []chat.Message{
		"users":      func(n int) []chat.Message { return times(n, user) },
		"assistants": func(n int) []chat.Message { return times(n, assistant) },
		"in turn":    func(n int) []chat.Message { return times(n, user, assistant) },
		"assistants, then a call": func(n int) []chat.Message {
			return append(times(n, says(thought("hm, hm, hm, hm"), chat.Part{Text: "a"})), says(callPart("a", "f", "{}")), user)
		},
		"systems":      func(n int) []chat.Message { return append(times(n, text(chat.System, "s")), user) },
		"late systems": func(n int) []chat.Message { return append(times(n, user, text(chat.System, "s")), user) },
		"reasoning": func(n int) []chat.Message {
			return []chat.Message{user, says(slices.Repeat([]chat.Part{{Kind: chat.PartReasoning, Text: "hm, hm, hm, hm"}}, n)...), user}
		},
		"thinking assistants": func(n int) []chat.Message {
			return append(times(n, says(chat.Part{Kind: chat.PartReasoning, Text: "hm, hm, hm, hm"}, chat.Part{Text: "a"})), user)
		},
		"calls in one turn": func(n int) []chat.Message {
			return append([]chat.Message{user, says(calls(n)...)}, results(n, "call_")...)
		},
		"calls under other ids": func(n int) []chat.Message { return append([]chat.Message{user, says(calls(n)...)}, results(n, "x")...) },
		"calls in many turns": func(n int) []chat.Message {
			return times(n, user, says(callPart("a", "f", "{}")), answers(resultPart("a", "r")))
		},
		"calls that users interrupt": func(n int) []chat.Message {
			return times(n, says(callPart("a", "f", "{}")), user, answers(resultPart("a", "r")))
		},
		"calling assistants in a row": func(n int) []chat.Message { return times(n, says(callPart("a", "f", "{}"))) },
		"calls after calls and a user": func(n int) []chat.Message {
			return append([]chat.Message{user, says(calls(n)...), user}, results(n, "call_")...)
		},
		"calls of one id": func(n int) []chat.Message {
			return append([]chat.Message{user, says(slices.Repeat([]chat.Part{callPart("a", "f", "{}")}, n)...)}, times(n, answers(resultPart("a", "r")))...)
		},
		"calls of one id, results apart": func(n int) []chat.Message {
			return append([]chat.Message{user, says(slices.Repeat([]chat.Part{callPart("a", "f", "{}")}, n)...)}, times(n, answers(resultPart("a", "r")), assistant)...)
		},
		"every other result": func(n int) []chat.Message {
			all := results(2*n, "call_")
			for i := range n {
				all[i] = all[2*i]
			}
			return append([]chat.Message{user, says(calls(2 * n)...)}, all[:n]...)
		},
		"results apart, backwards": func(n int) []chat.Message {
			all := []chat.Message{user, says(calls(n)...)}
			for _, r := range results(n, "call_") {
				all = append(all, r, assistant)
			}
			return all
		},
		"results alone": func(n int) []chat.Message { return append(times(n, answers(resultPart("a", "r"))), user) },
	} {
		for form, src := range map[string]string{"all": printAll, "strict": printMistral, "odd": printOdd, "plain": printPlain, "channels": dialect.BuiltinText("harmony")} {
			g, err := withTemplate(t, src)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range g.forms {
				if i > 0 && form != "all" { // they are as strict as those
					break
				}
				fit := func(n int) (uint64, time.Duration) {
					messages := conversation(n)
					return cost(func() {
						turns, err := turnsOf(messages, nil, false)
						if err != nil {
							t.Fatal(err)
						}
						f.fit(turns)
					})
				}
				const n, times, tries = 500, 8, 3
				bytes1, cpu1 := fit(n)
				for try := 1; ; try++ {
					bytes2, cpu2 := fit(times * n)
					if bytes2 <= 2*times*bytes1+64<<10 && cpu2 <= 3*times*max(cpu1, time.Millisecond) { // quadratic: times*times
						break
					}
					if try == tries {
						t.Errorf("%s, form %s %d: %d messages take %d bytes and %v, %d times as many %d and %v", name, form, i, n, bytes1, cpu1, times, bytes2, cpu2)
						break
					}
				}
			}
		}
	}
}

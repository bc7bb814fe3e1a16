package generate

import (
	"testing"

	"hearth/internal/chat"
	"hearth/internal/engine"
)

// The engine learns whose a prompt is: a session is one client, so is a caller without one; others are a client each time.
func TestAttribute(t *testing.T) {
	g, s := newTest(t, "hello")
	ask := func(o chat.Origin) engine.Prompt {
		t.Helper()
		seq, err := g.Generate(t.Context(), &chat.Request{Origin: o, Messages: []chat.Message{text(chat.User, "Hi")}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range seq {
			if err != nil {
				t.Fatal(err)
			}
		}
		return s.prompts[len(s.prompts)-1]
	}
	a, b := [16]byte{1}, [16]byte{2}
	p := ask(chat.Origin{ID: "req_1", Session: "s", Caller: a, Salt: b, Background: true, Marked: true})
	if p.Request != "req_1" || p.Salt != b || !p.Background || !p.Marked || p.Client == 0 || p.Session != p.Client {
		t.Errorf("%+v", p)
	}
	for _, tc := range []struct {
		name          string
		origin        chat.Origin
		same, session bool
	}{
		{"the same again", chat.Origin{Session: "s", Caller: a}, true, true},
		{"another caller's", chat.Origin{Session: "s", Caller: b}, false, true},
		{"another session", chat.Origin{Session: "t", Caller: a}, false, true},
		{"no session", chat.Origin{Caller: a}, false, false},
		{"nothing", chat.Origin{}, false, false},
	} {
		q := ask(tc.origin)
		if (q.Client == p.Client) != tc.same || (q.Session != 0) != tc.session || q.Client == 0 || q.Background || q.Marked {
			t.Errorf("%s: client %d session %d, before %d", tc.name, q.Client, q.Session, p.Client)
		}
		again := ask(tc.origin).Client
		if one := tc.origin != (chat.Origin{}); (again == q.Client) != one {
			t.Errorf("%s, twice: clients %d and %d", tc.name, q.Client, again)
		}
	}
}

// Who may be told where prompts part: the same session of the same caller under the same salt.
func TestParty(t *testing.T) {
	base := chat.Origin{Session: "s", Caller: [16]byte{1}, Salt: [16]byte{1}}
	same := base
	same.ID, same.Background, same.Marked = "req_2", true, true
	if party(&base) != party(&same) || party(&chat.Origin{}) != party(&chat.Origin{ID: "x"}) || party(&chat.Origin{}) == 0 {
		t.Error("the same party has two numbers, or none")
	}
	for _, o := range []chat.Origin{{}, {Session: "t", Caller: base.Caller, Salt: base.Salt}, {Caller: base.Caller, Salt: base.Salt},
		{Session: "s", Caller: [16]byte{2}, Salt: base.Salt}, {Session: "s", Caller: base.Caller}} {
		if party(&o) == party(&base) {
			t.Errorf("%+v is the same party", o)
		}
	}
}

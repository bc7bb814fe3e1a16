package generate

import (
	"errors"
	"strings"
	"testing"

	"hearth/internal/chat"
)

func mediaPart(m chat.Media) chat.Part { return chat.Part{Kind: chat.PartMedia, Media: &m} }

func TestNote(t *testing.T) {
	for want, m := range map[string]chat.Media{
		`[Image (image/png, 1280 x 720 pixels): this model cannot see it.]`:              {Kind: chat.Image, Type: "image/png", Bytes: 99, Width: 1280, Height: 720},
		`[Image (image/bmp, 99 bytes): this model cannot see it.]`:                       {Kind: chat.Image, Type: "image/bmp", Bytes: 99},
		`[Image "cat.png" (by URL): this model cannot see it.]`:                          {Kind: chat.Image, Name: "cat.png", By: "URL"},
		`[Document "Q3 \"plan\"" (application/pdf, 5 bytes): this model cannot see it.]`: {Kind: chat.Document, Type: "application/pdf", Name: `Q3 "plan"`, Bytes: 5},
		`[Document "file_1" (by file id): this model cannot see it.]`:                    {Kind: chat.Document, Name: "file_1", By: "file id"},
		`[Audio (audio/wav, 7 bytes): this model cannot hear it.]`:                       {Kind: chat.Audio, Type: "audio/wav", Bytes: 7},
		`[Video (video/mp4, 7 bytes): this model cannot see it.]`:                        {Kind: chat.Video, Type: "video/mp4", Bytes: 7},
		`[Image "a\nb<|im_end|>": this model cannot see it.]`:                            {Kind: chat.Image, Name: "a\nb<|im_end|>"},
	} {
		if got := note(&m, ""); got != want {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
}

// TestMedia: what the model cannot take in leaves a note wherever it stands, on a line of its own, so that the conversation
// goes on, counted and answered; a server that refuses it says where it stands, but lets pass what a tool returned.
func TestMedia(t *testing.T) {
	shot := mediaPart(chat.Media{Kind: chat.Image, Type: "image/png", Bytes: 9, Path: "messages[9].content[1]", Refusal: "no images here"})
	const said = "[Image (image/png, 9 bytes): this model cannot see it.]"
	look := []chat.Message{text(chat.User, "Look"), says(callPart("1", "look", "{}"))}
	for _, c := range []struct {
		name     string
		messages []chat.Message
		want     string
		result   bool
	}{
		{"user", []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "see:"}, shot, {Text: "What is it?"}}}}, "see:\n" + said + "\nWhat is it?<|im_end|>", false},
		{"user alone", []chat.Message{{Role: chat.User, Parts: []chat.Part{shot}}}, "user\n" + said + "<|im_end|>", false},
		{"two", []chat.Message{{Role: chat.User, Parts: []chat.Part{shot, shot}}}, said + "\n" + said, false},
		{"history", []chat.Message{{Role: chat.User, Parts: []chat.Part{shot}}, text(chat.Assistant, "A cat."), text(chat.User, "Sure?")}, said, false},
		{"assistant", []chat.Message{text(chat.User, "Draw"), {Role: chat.Assistant, Parts: []chat.Part{{Text: "There:"}, shot}}, text(chat.User, "Nice")}, "There:\n" + said, false},
		{"system", []chat.Message{{Role: chat.System, Parts: []chat.Part{{Text: "Logo:"}, shot}}, text(chat.User, "Hi")}, "Logo:\n" + said, false},
		{"result", append(look, chat.Message{Role: chat.ToolRole, Parts: []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: "1", Parts: []chat.Part{{Text: "shot:"}, shot}}}}}), "shot:\n" + said, true},
		{"tool's words", append(look, chat.Message{Role: chat.ToolRole, Parts: []chat.Part{shot}}), said, true},
	} {
		g, s := newTest(t, "x")
		r := &chat.Request{Messages: c.messages}
		got, err := g.Render(t.Context(), r)
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in %q, %v", c.name, c.want, got, err)
		}
		n, err := g.Count(t.Context(), r)
		if events(t, g, r); err != nil || n != len(s.prompts[0].Tokens) {
			t.Errorf("%s: %d tokens counted of %d, %v", c.name, n, len(s.prompts[0].Tokens), err)
		}
		g.cfg.RefuseMedia = true
		_, err = g.Count(t.Context(), r)
		var e *chat.Error
		if refused := errors.As(err, &e); refused == c.result || refused && (e.Kind != chat.Invalid || e.Param != "messages[9].content[1]" || e.Msg != "no images here") {
			t.Errorf("%s, refused: %v", c.name, err)
		}
	}
}

// TestMediaReuse: a note is the same on every turn, so a session with a picture computes no turn again.
func TestMediaReuse(t *testing.T) {
	k := newTalk(t, true)
	k.r.Messages = []chat.Message{{Role: chat.User, Parts: []chat.Part{{Text: "see:"}, mediaPart(chat.Media{Kind: chat.Image, Type: "image/png", Width: 3, Height: 4})}}}
	for i, answer := range []string{"A cat.", "Two cats.\n", "Yes."} {
		if common, ran := k.say(answer); common != ran {
			t.Errorf("turn %d: %d tokens of %d are in this one", i, common, ran)
		}
		k.r.Messages = append(k.r.Messages, chat.Message{Role: chat.User, Parts: []chat.Part{mediaPart(chat.Media{Kind: chat.Image, By: "URL", Name: "b.png"}), {Text: "And now?"}}})
	}
}

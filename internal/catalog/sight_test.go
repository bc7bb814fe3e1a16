package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/vision"
	"hearth/internal/vision/visiontest"
)

// seeing is a catalog of a folder, closed with the test.
func seeing(t *testing.T, dir string, set func(*config.Config)) *Catalog {
	t.Helper()
	src, err := Find(dir, hub.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.CacheMemoryMB, cfg.PrefixCacheDir = 64, "off"
	if set != nil {
		set(cfg)
	}
	c := New(src, cfg)
	c.DiskCache = &DiskCache{Build: "test", Warn: func(line string) { t.Error(line) }}
	return opened(t, c)
}

// TestImageLimits: what a server allows that nobody has set is what package vision allows.
func TestImageLimits(t *testing.T) {
	if got := gateOf(config.Default()).Limits(); got != vision.DefaultLimits() {
		t.Errorf("%+v, want %+v", got, vision.DefaultLimits())
	}
}

func words(role chat.Role, text string) chat.Message {
	return chat.Message{Role: role, Parts: []chat.Part{{Text: text}}}
}

// pictured is an image of a size as a part.
func pictured(t *testing.T, w, h int, seed uint64) chat.Part {
	return chat.Part{Kind: chat.PartMedia, Media: &chat.Media{Kind: chat.Image, Base64: visiontest.Base64(t, w, h, seed), Path: "messages[0].content[1]"}}
}

// said is the reply to messages, greedy, and what it tells of its prompt at the end: an engine that is busy tells nothing before.
func said(t *testing.T, c *Catalog, messages ...chat.Message) (string, *chat.Usage) {
	t.Helper()
	g, err := c.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	r := &chat.Request{Messages: messages, MaxTokens: 8, Logprobs: true}
	r.Sampling.Temperature = new(0.0)
	n, err := g.Count(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	events, err := g.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var b, logprobs strings.Builder // apart: tokens may leave together
	var usage *chat.Usage
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == chat.EventFinish {
			usage = e.Usage
		}
		b.WriteString(e.Text)
		for _, lp := range e.Logprobs {
			fmt.Fprintf(&logprobs, " %v", lp.Logprob)
		}
	}
	if usage.Prompt != n {
		t.Errorf("%d tokens counted, %d in the prompt", n, usage.Prompt)
	}
	return b.String() + logprobs.String(), usage
}

// towered are the types with folders, and of how many tiles they make a picture of 40 by 24 pixels.
var towered = map[string]int64{
	"qwen3_vl": 1, "qwen2_vl": 1, "qwen2_5_vl": 1, "qwen3_5": 1, "gemma3": 1, "gemma4": 1, "mistral3": 1, "idefics3": 5, "smolvlm": 5, "lfm2_vl": 3,
}

// encoded is how many tiles the tower ran over.
func encoded(c *Catalog) int64 { return c.Main().Stats().Images.Encoded }

// asks is a question about a picture.
func asks(t *testing.T, seed uint64) chat.Message {
	return chat.Message{Role: chat.User, Parts: []chat.Part{{Text: "Look: "}, pictured(t, 40, 24, seed),
		{Text: strings.Repeat(" What is it, and what is beside it?", 20)}}}
}

// TestSight: a reply depends on the picture, and on nothing but the picture, wherever it stands in the conversation; the tower
// runs once for each of them.
func TestSight(t *testing.T) {
	for typ, tiles := range towered {
		recurrent := typ == "qwen3_5" || typ == "lfm2_vl" // whose states are kept at some places alone
		t.Run(typ, func(t *testing.T) {
			c := seeing(t, visiontest.Folder(t, typ), nil)
			if w := warnedOf(c); w != "" {
				t.Fatal(w)
			}
			if said(t, c, words(chat.User, "Hello")); c.Main().Weights().tower.Loaded() {
				t.Error("a text reads the tower")
			}
			one, usage := said(t, c, asks(t, 1))
			if len(usage.Images) != 1 || usage.Images[0].Width != 40 || usage.Images[0].Positions == 0 || encoded(c) != tiles {
				t.Fatalf("images %+v, %d encoded", usage.Images, encoded(c))
			}
			again, usage := said(t, c, asks(t, 1))
			if again != one || usage.Images[0].Cached != usage.Images[0].Positions || encoded(c) != tiles {
				t.Errorf("%+v %q, then %q; %d encoded", *usage, one, again, encoded(c))
			}
			if other, usage := said(t, c, asks(t, 2)); other == one || usage.Images[0].Cached != 0 || encoded(c) != 2*tiles {
				t.Errorf("%q for another picture; %+v, %d encoded", other, usage.Images, encoded(c))
			}
			// In history, beside a new one, and twice.
			later := func(first uint64, seeds ...uint64) (string, *chat.Usage) {
				last := chat.Message{Role: chat.User, Parts: []chat.Part{{Text: "And now?"}}}
				for _, s := range seeds {
					last.Parts = append(last.Parts, pictured(t, 40, 24, s))
				}
				return said(t, c, asks(t, first), words(chat.Assistant, "A cat."), last)
			}
			a, usage := later(1, 3)
			whole := usage.Images[0].Cached == usage.Images[0].Positions || recurrent
			if !whole || usage.Images[1].Cached != 0 || encoded(c) != 3*tiles {
				t.Errorf("%+v, %d encoded", *usage, encoded(c))
			}
			if b, _ := later(2, 3); a == b || encoded(c) != 3*tiles {
				t.Errorf("the picture in history changes nothing: %q; %d encoded", a, encoded(c))
			}
			if b, usage := later(1, 3); a != b || usage.Images[0].Cached == 0 && !recurrent || encoded(c) != 3*tiles {
				t.Errorf("%+v %d encoded", *usage, encoded(c))
			}
			if _, usage := later(1, 4, 4, 1); len(usage.Images) != 4 || encoded(c) != 4*tiles {
				t.Errorf("%+v, %d encoded", *usage, encoded(c))
			}
		})
	}
}

// TestSightOfTools: what a tool shows is seen, where the template prints it or in the user's turn behind it.
func TestSightOfTools(t *testing.T) {
	for _, typ := range []string{"qwen3_vl", "gemma3", "mistral3", "gemma4", "idefics3", "lfm2_vl"} {
		t.Run(typ, func(t *testing.T) {
			c := seeing(t, visiontest.Folder(t, typ), nil)
			talk := func(seed uint64) (string, *chat.Usage) {
				return said(t, c, words(chat.User, "Read a.png"),
					chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Kind: chat.PartToolCall, Call: &chat.ToolCall{ID: "x", Name: "read", Arguments: []byte(`{}`)}}}},
					chat.Message{Role: chat.ToolRole, Parts: []chat.Part{{Kind: chat.PartToolResult, Result: &chat.ToolResult{CallID: "x", Parts: []chat.Part{pictured(t, 50, 50, seed)}}}}})
			}
			one, usage := talk(1)
			tiles := encoded(c)
			if len(usage.Images) != 1 || tiles == 0 {
				t.Fatalf("%+v, %d encoded", usage, tiles)
			}
			if other, _ := talk(2); other == one {
				t.Errorf("another picture, the same reply: %q", one)
			}
			if again, _ := talk(1); again != one || encoded(c) != 2*tiles {
				t.Errorf("%q, then %q; %d encoded", one, again, encoded(c))
			}
		})
	}
}

// TestSightOnDisk: after a restart a picture is read from disk, without the tower.
func TestSightOnDisk(t *testing.T) {
	dir, disk := visiontest.Folder(t, "qwen3_vl"), t.TempDir()
	run := func() (string, *chat.Usage, int64) {
		c := seeing(t, dir, func(cfg *config.Config) { *cfg = *keeping(t, disk) })
		reply, usage := said(t, c, asks(t, 1))
		n := encoded(c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return reply, usage, n
	}
	one, _, _ := run()
	two, usage, n := run()
	if one != two || usage.Disk == 0 || usage.Images[0].Cached != usage.Images[0].Positions || n != 0 {
		t.Errorf("%q, then %q; %+v; %d encoded", one, two, usage, n)
	}
}

// TestBlind: a folder whose images cannot be prepared is a model that cannot see, and says why.
func TestBlind(t *testing.T) {
	for want, change := range map[string]func(dir string) error{
		"image_mean has 1 numbers": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "preprocessor_config.json"), []byte(`{"image_mean": [1]}`), 0o600)
		},
		"more than the 4194304": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "preprocessor_config.json"), make([]byte, mostProcessor+1), 0o600)
		},
		"prints no <|image_pad|> for an image": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(`{% for m in messages %}{{ m.content }}{% endfor %}`), 0o600)
		},
		"its image processor and its tower do not fit": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "preprocessor_config.json"), []byte(`{"size": {"height": 32, "width": 32}}`), 0o600)
		},
	} {
		typ := "qwen3_vl"
		if strings.Contains(want, "do not fit") {
			typ = "gemma3"
		}
		dir := visiontest.Folder(t, typ)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		c := seeing(t, dir, nil)
		warned := warnedOf(c)
		if !strings.Contains(warned, "the model cannot see images: ") || !strings.Contains(warned, want) {
			t.Errorf("%s: warnings %q", want, warned)
		}
		if _, usage := said(t, c, asks(t, 1)); len(usage.Images) != 0 || c.List(t.Context())[0].Sees {
			t.Errorf("%s: it sees %+v", want, usage.Images)
		}
	}
}

// warnedOf are all warnings of a catalog's model.
func warnedOf(c *Catalog) string {
	all := c.Main().Remarks()
	for _, w := range c.Main().loaded().warnings {
		all = append(all, w.Text)
	}
	return strings.Join(all, "\n")
}

package bench

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
)

// writer makes text like that of agents: instructions, and files with numbered lines. The same seed makes the same text.
type writer struct {
	rng   *rand.Rand
	lines []string // of the embedded texts
}

// newWriter is one of many with the same seed, which say different things.
func newWriter(seed, number uint64) (*writer, error) {
	w := &writer{rng: rand.New(rand.NewPCG(seed, number))}
	names, err := fs.Glob(texts, "texts/*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := fs.ReadFile(texts, name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
				w.lines = append(w.lines, line)
			}
		}
	}
	return w, nil
}

// words of names, so that no two files are alike.
var words = strings.Fields(`amber anchor basket beacon bridge canvas cedar cinder clover copper delta ember fable falcon garnet harbor hazel
indigo island jasper kettle lantern ledger linden marble meadow nectar nickel oak onyx orchard paper pebble pillar quartz quiver raven ribbon saddle
saffron shelf silver spruce stable summit tunnel turnip umber valley velvet walnut willow window winter yarrow zephyr`)

func (w *writer) word() string { return words[w.rng.IntN(len(words))] }

func (w *writer) path() string {
	return fmt.Sprintf("internal/%s/%s_%s.go", w.word(), w.word(), w.word())
}

// file is about so many bytes of a file, as tools show it.
func (w *writer) file(bytes int64) string {
	var b strings.Builder
	for n := 1; int64(b.Len()) < bytes; n++ {
		line := w.lines[w.rng.IntN(len(w.lines))]
		fmt.Fprintf(&b, "%5d\t%s // %s %d\n", n, line, w.word(), w.rng.IntN(10000))
	}
	return b.String()
}

// system is instructions of about so many bytes, the same for all agents.
func (w *writer) system(bytes int64) string {
	var b strings.Builder
	b.WriteString("You are a careful engineer who works on a program with the tools below. Read before you change, say in a sentence what you found, and call one tool at a time.\n")
	for n := 1; int64(b.Len()) < bytes; n++ {
		fmt.Fprintf(&b, "%d. In package %s, %s the %s before the %s: see %s, from line %d on. %s\n", n, w.word(),
			[]string{"check", "rename", "close", "measure", "write", "never copy"}[w.rng.IntN(6)], w.word(), w.word(), w.path(), 1+w.rng.IntN(900),
			w.lines[w.rng.IntN(len(w.lines))])
	}
	return b.String()
}

// tool is one that requests declare.
type tool struct {
	name, about string
	args        []string // all are strings, and required
}

// tools are those that every coding agent has.
var tools = []tool{
	{"read_file", "Read a file of the workspace, with line numbers. Long files are cut; offset and limit choose the lines.", []string{"path", "offset", "limit"}},
	{"write_file", "Write a whole file of the workspace. What was there before is gone.", []string{"path", "content"}},
	{"edit_file", "Replace one occurrence of a text in a file. The text must be there once, indentation included.", []string{"path", "old", "new"}},
	{"list_files", "List the files below a folder that match a pattern, the latest first.", []string{"path", "pattern"}},
	{"search", "Search files for a regular expression, and show matching lines with their neighbours.", []string{"pattern", "path"}},
	{"run_command", "Run a command in the workspace and show what it prints. It ends after two minutes.", []string{"command"}},
	{"fetch_page", "Fetch a page of the documentation as text.", []string{"url"}},
	{"ask_user", "Ask the user a question when nothing else helps.", []string{"question"}},
}

// schema is a tool's arguments as JSON Schema.
func (t *tool) schema() map[string]any {
	properties := map[string]any{}
	for _, a := range t.args {
		properties[a] = map[string]any{"type": "string", "description": "the " + a}
	}
	return map[string]any{"type": "object", "properties": properties, "required": t.args}
}

// message is one of a conversation, in neither API's form.
type message struct {
	assistant bool
	text      string
	calls     []toolCall
	results   []string // to the calls of the message before, in their order
}

// conversation is an agent's: every turn sends all of it again.
type conversation struct {
	w        *writer
	result   int64 // bytes
	system   string
	tools    []tool
	messages []message
}

// begin asks for something, with a file to look at.
func (c *conversation) begin() {
	path := c.w.path()
	c.messages = []message{{text: fmt.Sprintf("Task %d: find out why %s and %s disagree. Here is %s:\n\n%s", c.w.rng.IntN(1000), c.w.word(), c.w.word(), path, c.w.file(c.result))}}
}

// goOn answers a reply: with results of its calls, or, as a user would who ran a tool, with another file.
func (c *conversation) goOn(r *reply) {
	text := string(r.text)
	if text == "" && len(r.calls) == 0 {
		text = "…" // no API takes a message with nothing in it
	}
	c.messages = append(c.messages, message{assistant: true, text: text, calls: r.calls})
	var next message
	for i := range r.calls {
		// Their results together are as long as one.
		next.results = append(next.results, c.w.path()+":\n"+c.w.file(c.result/int64(len(r.calls))))
		if r.calls[i].id == "" {
			r.calls[i].id = fmt.Sprintf("call_%d_%d", len(c.messages), i)
		}
		if r.calls[i].name == "" {
			r.calls[i].name = tools[0].name
		}
	}
	if len(r.calls) == 0 {
		next.text = fmt.Sprintf("Go on. Here is %s:\n\n%s", c.w.path(), c.w.file(c.result))
	}
	c.messages = append(c.messages, next)
}

package generate

import (
	"context"
	"slices"
	"sync"

	"hearth/internal/dialect"
	"hearth/internal/jinja"
)

// What a model is told of tools in the system text where its template has no place for them. Calls are written in the form of
// the model's family, which docs/templates.md calls the form of tools in the prompt: the example here, calls of earlier turns
// and what the parser reads are one syntax.
var asTold = sync.OnceValue(func() *jinja.Template {
	return mustParse(`# Tools{{ "\n\n" }}You can call the tools below. Each line is one tool as JSON: its name, what it does, and the JSON Schema of its arguments.` +
		`{{ "\n\n" }}{% for t in tools %}{{ {"name": t.function.name, "description": t.function.description, "parameters": t.function.parameters} | tojson }}{{ "\n" }}{% endfor %}{{ "\n" }}` +
		`To call a tool, write this, with the tool's name in the place of TOOL and its arguments in the place of the one shown:{{ "\n\n" }}{{ example }}{{ "\n\n" }}` +
		`Several calls may follow each other. Write nothing after them: {{ results }} If no tool helps, answer in words.`)
})

// tells tells whether tools that the template has no place for stand in the system text.
func (c *Config) tells() bool { return !c.NoToolsInPrompt && !dialect.CallsAreText(c.ToolParser) }

// tell is the text about tools, a list as for the template.
func (f form) tell(ctx context.Context, tools jinja.Value, limits jinja.Limits) (string, error) {
	results := "what comes of them is in the next message."
	if !f.has(toolResults) {
		results = "what comes of each is in the next message, in <tool_response>."
	}
	example := f.write([]*call{{name: "TOOL", args: []byte(`{"ARGUMENT": "VALUE"}`)}})
	return asTold().Render(ctx, object("tools", tools, "example", example, "results", results), limits)
}

// withTold puts the text about tools after the system messages that begin a conversation. Where the template would move those
// to later turns, the text goes in front of the first user's turn.
func (f form) withTold(turns []turn, told string) []turn {
	if told == "" {
		return turns
	}
	at := 0
	for at < len(turns) && turns[at].role == roleSystem {
		at++
	}
	switch {
	case f.has(systemFirst) && !f.has(systemStays) && at < len(turns) && turns[at].role == roleUser:
		turns[at].text = paragraphs(told, turns[at].text)
	case f.has(systemFirst) && !f.has(systemStays):
		turns = slices.Insert(turns, at, turn{role: roleUser, text: told})
	case at == 0:
		turns = slices.Insert(turns, 0, turn{role: roleSystem, text: told})
	default:
		turns[at-1].text = paragraphs(turns[at-1].text, told)
	}
	return turns
}

// untold says why tools do not stand in the system text, remedy what puts them there.
func (c *Config) untold() string {
	if c.NoToolsInPrompt {
		return "--tools-in-prompt never leaves them out of the prompt"
	}
	return "--tool-call-parser none leaves calls as text"
}

func (c *Config) remedy() string {
	switch {
	case !c.NoToolsInPrompt:
		return "--tool-call-parser auto"
	case dialect.CallsAreText(c.ToolParser):
		return "--tools-in-prompt auto --tool-call-parser auto"
	}
	return "--tools-in-prompt auto"
}

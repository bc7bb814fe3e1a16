// Package chat holds the nouns that protocols and models share: a request in neutral form, the events a reply is made
// of, usage and errors, and the table of sampling parameters. Package wire turns bytes into these and back; generate
// produces events from them. It contains no logic beyond small helpers and imports nothing of ours.
package chat

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"
)

// Role is who said a message.
type Role string

const (
	System    Role = "system" // allowed at any place; rendered in place, never hoisted
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // results of tool calls, as parts of kind PartToolResult
)

// Request is one call in neutral form, already validated by the protocol it came through.
type Request struct {
	Model    string // as the client sent it; echoed in responses
	Messages []Message
	Prompt   *Prompt // if not nil, in the place of Messages and all that has to do with them
	Tools    []Tool
	Choice   ToolChoice
	Thinking Thinking
	Sampling Sampling

	MaxTokens int // 0: the room left in the context
	// ClampMaxTokens lowers a MaxTokens that does not fit behind the prompt to what does, instead of an error; Usage.Limit tells.
	ClampMaxTokens bool

	Stop        []string // stop strings, never part of the output
	N           int      // choices to generate; 0 means 1
	Logprobs    bool     // report the logprob of every output token
	TopLogprobs int      // and of this many alternatives, 0 to 20

	MCP *MCP // whose tools the model may call beside Tools, which are run here; nil: none

	Form *Form // what the text has to be, which is data then; nil: anything

	// Prediction is what the client thinks the text will mostly be, to have it sooner. It never changes the reply. nil: nothing.
	Prediction *string

	Origin Origin // whose it is

	Explain Explain // what Usage tells of how it was taken

	Patient bool // the first event may come when the request has left the queue, and so tells of that

	KeepAlive *time.Duration // how long the model stays loaded afterwards; see WithKeepAlive; nil: as the server does

	// PlainHistory has earlier answers encoded as the template writes them, whatever was generated here: the prompt then
	// depends on the request alone.
	PlainHistory bool

	// TemplateArgs are extra variables for the chat template (chat_template_kwargs); they win over ours.
	TemplateArgs map[string]json.RawMessage
}

// MCP says of which MCP servers the model may call tools in a reply, which goes on with their results.
type MCP struct {
	Servers []string // by their names; AllServers alone: every one
	Calls   int      // at most in the reply; 0: as many as are allowed here
}

// AllServers stands for every MCP server.
const AllServers = "*"

// MCPTool is a tool of an MCP server, both as their own names have it.
type MCPTool struct{ Server, Name string }

// FullName is what models, and callers of a tool by itself, name it: the server's name, two underscores and the tool's, with an
// underscore for what is neither a letter, a digit nor a dash.
func (t *MCPTool) FullName() string { return plainName(t.Server) + "__" + plainName(t.Name) }

func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, name)
}

// Form is what the text of a reply has to be, from its first character to its last.
type Form struct {
	Kind    FormKind
	Source  string   // the schema, the pattern or the grammar
	Choices []string // FormChoice
	Strict  bool     // what the text cannot be held to is refused
	Path    string   // where in the client's JSON it stands, for errors
}

// FormKind says what a form is told by.
type FormKind uint8

const (
	FormObject FormKind = iota // any JSON object
	FormSchema                 // a JSON Schema
	FormRegex                  // a regular expression of Python, which the whole text matches
	FormChoice                 // one of some texts
	FormGBNF                   // a grammar in the notation of llama.cpp
	FormLark                   // a grammar in the notation of Lark
)

// JSON tells whether the text is JSON, which can be checked when it is there.
func (f *Form) JSON() bool { return f.Kind == FormObject || f.Kind == FormSchema }

// Prompt is text that the model continues as it is, without a chat template; what it writes is text too.
type Prompt struct {
	Text   string
	Tokens []int32 // if not nil, in the place of Text
	Suffix string  // if not empty, what follows: the model fills in what is between
	Path   string  // where in the client's JSON it stands, for errors
	Echo   bool    // EventStart has the prompt's Text and, where Logprobs are asked for, those of its tokens
	Only   bool    // nothing is generated
}

// Message is one turn, a list of parts in order.
type Message struct {
	Role  Role
	Name  string // optional participant name
	Parts []Part
}

// PartKind says which field of a Part is set.
type PartKind uint8

const (
	PartText PartKind = iota
	PartReasoning
	PartToolCall
	PartToolResult
	PartMedia
)

// Part is a piece of a message (Anthropic: content block; OpenAI: content part).
type Part struct {
	Kind   PartKind
	Text   string      // PartText, PartReasoning
	Call   *ToolCall   // PartToolCall
	Result *ToolResult // PartToolResult
	Media  *Media      // PartMedia
}

// Media is what is known of a file that stands in a message, and of an image its bytes, for models that see.
type Media struct {
	Kind          MediaKind
	Type          string // media type, as its first bytes or else the client says; "" not known
	Name          string // its title or file name, or how it is called where it is; "" not known
	By            string // what the client sent in place of its bytes: ByURL, ByID or "": it sent them
	Bytes         int
	Width, Height int // pixels of an image; 0: not known

	Base64 []byte // an image as the client sent it, valid base64, part of the request's body; nil: By says what came instead
	File   []byte // an image that was fetched, in place of Base64
	URL    string // of http or https, where an image is that the client did not send
	Detail string // how closely an image is to be looked at: "low", "high", "auto" or ""

	Path    string // where in the client's JSON it stands, for errors
	Refusal string // what the error says where such parts are refused
}

// What a client sends in place of a file.
const (
	ByURL = "URL"
	ByID  = "file id"
)

// MediaKind is what a file is to who looks at it.
type MediaKind string

const (
	Image    MediaKind = "image"
	Document MediaKind = "document"
	Audio    MediaKind = "audio"
	Video    MediaKind = "video"
)

// ToolCall is a call the model made. Arguments is a JSON object, key order kept.
type ToolCall struct {
	ID, Name  string
	Arguments json.RawMessage
	MCP       *MCPTool // that it is run with here; nil: the client carries the call out
}

// ToolResult answers a call.
type ToolResult struct {
	CallID  string
	Parts   []Part
	IsError bool
}

// Tool is a function the model may call. Parameters is its JSON Schema as sent, key order kept; nil means no parameters.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
	Input             *Form  // what its one parameter, which is a text, has to be; nil: its schema says all
	Strict            bool   // its calls have to be held to all of the schema
	Path              string // where in the client's JSON the schema stands, for errors
	Deferred          bool   // callable, but not rendered with the tools: its schema stands in a tool result
}

// ChoiceKind is how far the model is free to call tools.
type ChoiceKind uint8

const (
	ChoiceAuto ChoiceKind = iota
	ChoiceNone
	ChoiceRequired
	ChoiceNamed
)

// ToolChoice restricts tool calls. Single asks for at most one call a turn.
type ToolChoice struct {
	Kind   ChoiceKind
	Name   string // ChoiceNamed
	Single bool
}

// Demands tells whether the model has to call a tool.
func (c ToolChoice) Demands() bool { return c.Kind == ChoiceRequired || c.Kind == ChoiceNamed }

// Toggle is an optional bool whose zero value leaves the decision to the server and the template.
type Toggle uint8

const (
	Default Toggle = iota
	On
	Off
)

// ToggleOf is Default for nil.
func ToggleOf(b *bool) Toggle {
	switch {
	case b == nil:
		return Default
	case *b:
		return On
	}
	return Off
}

// Thinking asks for or forbids reasoning. Budget is a limit in tokens, 0 for none.
type Thinking struct {
	Mode   Toggle
	Budget int
	Effort string // low, medium, high, … as the protocol spells it; "" unset
	Short  bool   // the reply may be so short that thinking would use it up: Mode Default is Off where the server has no setting
}

// EventKind says what an Event carries.
type EventKind uint8

const (
	EventStart      EventKind = iota // first of a reply: Usage holds the prompt's counts
	EventText                        // Text
	EventReasoning                   // Text
	EventToolStart                   // Call.ID and Call.Name; index Tool
	EventToolArgs                    // Text: a fragment of the JSON arguments of call Tool
	EventToolEnd                     // call Tool is complete; Call.Arguments holds the whole object
	EventFinish                      // last of a choice: Finish, Stop, Usage
	EventToolResult                  // Result of Call, which was run here; index Tool
)

// Event is one piece of a reply. Events of a choice come in order; EventStart once per reply, EventFinish once per choice.
type Event struct {
	Kind     EventKind
	Choice   int // which of Request.N
	Text     string
	Tool     int // 0-based number of the tool call within the choice; those that are run here are numbered by themselves
	Call     *ToolCall
	Result   *ToolResult
	Finish   Finish
	Stop     string // the stop string that ended the choice
	Usage    *Usage
	Logprobs []Logprob // EventText, EventStart of an echo: of the tokens that Text is made of, when asked for
	Joined   int       // how many events have joined it
}

// Fragment reports whether an event is a part of a text or of arguments: one that follows it may join it if it is of the same.
func (e *Event) Fragment() bool {
	return e.Kind == EventText || e.Kind == EventReasoning || e.Kind == EventToolArgs
}

// Same reports whether two events are of the same text, or of the same arguments.
func (e *Event) Same(o *Event) bool {
	return e.Kind == o.Kind && e.Choice == o.Choice && e.Tool == o.Tool
}

// Join appends the next fragment.
func (e *Event) Join(next *Event) {
	e.Text += next.Text
	e.Logprobs = slices.Concat(e.Logprobs, next.Logprobs)
	e.Joined += 1 + next.Joined
}

// Finish is why a choice ended.
type Finish string

const (
	FinishStop      Finish = "stop"       // the model ended its turn
	FinishStopText  Finish = "stop_text"  // a stop string appeared; Event.Stop has it
	FinishLength    Finish = "length"     // max tokens ran out
	FinishContext   Finish = "context"    // the context ran out before that
	FinishToolCalls Finish = "tool_calls" // the turn ended with tool calls
	FinishRefusal   Finish = "refusal"    // the model would not answer
	FinishCancelled Finish = "cancelled"  // the client left, or the server broke the reply off; beside an error only
	FinishError     Finish = "error"      // generation failed; beside an error only
)

// Logprob is a token with its natural-log probability before any sampling filter; NaN for the first of a prompt.
type Logprob struct {
	Token   string
	ID      int32
	Bytes   []byte // what of it is in the text, of alternatives all
	Runes   int    // characters of the text that begin in it
	Logprob float64
	Top     []Logprob
}

// Prediction is what came of Request.Prediction, and of all else that was run ahead of the reply.
type Prediction struct {
	Accepted, Rejected int    // tokens
	Ignored            string // why it was not used; "": it was
}

// Usage counts tokens.
type Usage struct {
	Prompt    int // all prompt tokens, cached ones included
	Cached    int // of those, read from the prefix cache
	Disk      int // of those, restored from disk for it
	Added     int // of the others, added to the prefix cache
	Short     int // by how many tokens Thinking.Short made the prompt longer; below 0: shorter
	Output    int // generated tokens, reasoning included
	Reasoning int // of those, reasoning

	Hit    string // how the prompt relates to what was cached: exact, supersequence, prefix, lcp or miss; "" while not known
	Common int    // tokens it has in common with that: Cached, and those that could not be used
	Parted int    // number of the message with the first token beyond Common, from 1; one past the last: after them; 0: none, or not known

	// Around is the prompt's text on both sides of where it parted from what is stored, if the same caller and session left
	// that. It is for them alone.
	Around [2]string
	// Instead is the text that they had left there in the place of Around[1]; "": none, or not known.
	Instead string

	// Bounds are those that were met without an error: what they bound was left undone, as Loose says, or the reply ended early.
	Bounds []Bound
	Loose  []string // tools whose calls were not kept to their schemas for that

	Drafted    int         // tokens that were run ahead of the reply,
	Accepted   int         // and those of them that it has
	Prediction *Prediction // of a request that has one

	Mended []string // calls with another name than the model wrote, or that leaked, each with its names

	Form Outcome // of the form that was asked for, "": none was; of a choice that has ended, that of the reply so far

	Dropped int // messages that were left out of the conversation so that it fits

	Images []Seen // in the prompt, in their order

	Limit int // tokens that a choice could have at most, where the request asked for more; 0: it had all it asked for

	Waited string // what it waited for before its first step, if that was more than a step: slot, memory; "": nothing

	// Decisions are what was decided about the request and why, of EventStart alone, where it asks for them.
	Decisions []Decision
	Text      string // of the prompt, likewise

	Spliced  int // prompt tokens that stand as they were generated earlier, whatever encoding would give
	Replayed int // turns of the prompt that have reasoning which the client left out

	Tokenized time.Duration // its text was made, and its tokens
	Queued    time.Duration // from when it was handed over to the first step
	Matched   time.Duration // of that, what is cached was looked up and read from disk
	Prefill   time.Duration // from the first step to the first token
	Decode    time.Duration // from there to the end
}

// ImageCodes begins the codes of errors about an image.
const ImageCodes = "image"

// Seen is an image in a prompt.
type Seen struct {
	Width, Height int      // pixels of the file
	Prepared      [][2]int // width and height in pixels of what the tower reads: one picture, or the tiles that it is cut into
	Positions     int      // tokens whose places it takes
	Digest        [32]byte // of the prepared picture
	Cached        int      // of Positions, read from the prefix cache: where all are, the tower has nothing to do
}

// Decision is something about a request that it can leave open.
type Decision struct {
	What, Value string
	Origin      string // who decided: request, settings, or what else says so
}

// What a request may be told of itself, for the log.
const (
	ExplainNothing Explain = iota
	ExplainDecisions
	ExplainText // and the text of its prompt
)

// Explain is one of them.
type Explain uint8

// Origins of decisions that several places make.
const (
	OfRequest  = "request"
	OfSettings = "settings" // a flag, a variable or the settings file
	OfFolder   = "generation_config.json"
	OfProgram  = "built-in"
)

// Outcome is what became of the form that a request asks for: of its text, of the calls that it demands, and of those of strict
// tools.
type Outcome string

const (
	Enforced  Outcome = "enforced"  // the reply is held to all of it while it is written
	Checked   Outcome = "checked"   // it was not, and is of it all the same
	Unmet     Outcome = "unmet"     // it is not of it
	Unchecked Outcome = "unchecked" // nobody has compared them: not yet, or it takes too much work or what is not supported
)

// Model describes a served model to clients.
type Model struct {
	ID       string
	Path     string // folder, or "" for the embedded one
	Created  time.Time
	Context  int    // tokens a request may use in all, prompt and output
	Output   int    // of those, what a request can ask for as its MaxTokens with a prompt of the same size; 0: not known
	Thinking bool   // the template knows how to think
	Tools    bool   // the template knows tools
	Sees     bool   // it takes images in
	Parser   string // form of the output, see docs/dialects.md; "" not known
	// Description is what the weights are, in words: architecture, parameters, bits; "" not known.
	Description string
	Quant       string // how the weights are kept: "8 bits"; "" not known
	Kind        ModelKind
	State       ModelState
	// Sampling is what requests get that do not set it; nil: the built-in values.
	Sampling *Sampling
}

// ModelKind is what a model is for.
type ModelKind string

const (
	Chats     ModelKind = ""           // text, token after token
	Completes ModelKind = "completion" // text that continues what it is given: a base model, which cannot chat
	Embeds    ModelKind = "embedding"  // vectors
	Ranks     ModelKind = "rerank"     // scores
)

// ModelState says whether a model is loaded.
type ModelState string

const (
	Loaded  ModelState = "loaded"
	Loading ModelState = "loading"
	OnDisk  ModelState = "on_disk" // it is loaded when a request names it
)

// ClaudeName is a name of the model that begins with claude, as Claude Code wants of those that it offers its user; "" where the
// model does not chat.
func (m *Model) ClaudeName() string {
	if m.Kind != Chats {
		return ""
	}
	return ClaudeName(m.ID)
}

// ClaudeName is the name that begins with claude of the model with this id: the id itself where it does, else the id behind
// "claude-", with dashes for slashes and whatever else is not plain.
func ClaudeName(id string) string {
	const prefix = "claude-"
	if strings.HasPrefix(id, prefix) {
		return id
	}
	plain := func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._:", r) {
			return r
		}
		return '-'
	}
	return prefix + strings.Map(plain, id)
}

// Generator produces replies for one model. Implementations are safe for concurrent use.
type Generator interface {
	Model() Model
	// Generate validates what only the model can (context length, template) and returns the reply's events. The error is
	// an *Error; errors after the first event come through the sequence. Cancelling ctx ends the work at the next step. The event
	// beside an error has the Finish and Usage of all that was generated and not yet told of by an EventFinish.
	Generate(ctx context.Context, r *Request) (iter.Seq2[Event, error], error)
	// Count returns the prompt's length in tokens.
	Count(ctx context.Context, r *Request) (int, error)
}

// Models finds generators by the name a client sent.
type Models interface {
	// Open resolves a name (empty, an alias, an id, a path), and loads the model if it has to. It stays loaded at least until ctx
	// ends. An unknown name is an *Error of kind NotFound, and Forbidden that of a model which the client of ctx may not use.
	Open(ctx context.Context, name string) (Generator, error)
	// List has the models that the client of ctx may use.
	List(ctx context.Context) []Model
}

// Text joins the text parts of a message.
func (m *Message) Text() string { return Text(m.Parts) }

// Text joins the text parts of ps.
func Text(ps []Part) string {
	if len(ps) == 1 && ps[0].Kind == PartText {
		return ps[0].Text
	}
	var b strings.Builder
	for i := range ps {
		if ps[i].Kind == PartText {
			b.WriteString(ps[i].Text)
		}
	}
	return b.String()
}

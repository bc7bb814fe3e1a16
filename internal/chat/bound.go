package chat

// Bound names a limit on what a request may cost. An Error says which one it met, logs and /v1/status count by it, and
// docs/security.md lists all of them with what they bound and how they are set.
type Bound string

const (
	BoundBody         Bound = "body"         // bytes of one request's body
	BoundForm         Bound = "form"         // steps that keeping a reply to its form may take
	BoundEndless      Bound = "endless"      // a schema that no value follows, since each needs another one
	BoundRate         Bound = "rate"         // requests of a client in a minute
	BoundRequests     Bound = "requests"     // that are answered at a time, of a client or of all
	BoundQueueWait    Bound = "queue_wait"   // time that a request waits for its turn
	BoundTimeout      Bound = "timeout"      // time that a request takes without getting on
	BoundBodies       Bound = "bodies"       // bytes of all bodies that are held at once
	BoundDepth        Bound = "depth"        // levels of a body, and of blocks in blocks
	BoundMessages     Bound = "messages"     // of a request
	BoundChain        Bound = "chain"        // responses that one builds on
	BoundBackground   Bound = "background"   // responses that are made in the background
	BoundSocket       Bound = "socket"       // messages that wait on a WebSocket
	BoundItem         Bound = "item"         // bytes of an item that is stored
	BoundConversation Bound = "conversation" // items of a stored conversation, and their bytes
	BoundAdded        Bound = "added"        // items that are added to a stored conversation at once
	BoundMetadata     Bound = "metadata"     // pairs of a stored conversation, and their lengths
	BoundParts        Bound = "parts"        // of a request's messages
	BoundCalls        Bound = "calls"        // tool calls and results of a request
	BoundTools        Bound = "tools"        // of a request
	BoundStops        Bound = "stops"        // number and length of a request's stop strings
	BoundInputs       Bound = "inputs"       // prompts, texts or documents of a request
	BoundTokenIDs     Bound = "token_ids"    // of a request's prompts
	BoundTokens       Bound = "tokens"       // of all texts to embed or rank
	BoundLogitBias    Bound = "logit_bias"   // entries
	BoundArgs         Bound = "args"         // variables of the template that a request sets
	BoundValues       Bound = "json_values"  // in a request's schemas, arguments and variables
	BoundImages       Bound = "images"       // of a request, and what each costs
	BoundReferences   Bound = "references"   // bytes of tools that a request has printed where it refers to them
	BoundWhole        Bound = "whole"        // bytes of text that the tokenizer has to take as one
	BoundTemplate     Bound = "template"     // steps, depth and bytes of rendering one prompt
	BoundRunaway      Bound = "runaway"      // tokens of a reply that repeat one run and will not end; it ends as at its max tokens
	BoundMCP          Bound = "mcp"          // calls, rounds or time of a reply whose tools are run here
	BoundSchema       Bound = "schema"       // steps of comparing a reply with the schemas that it was asked to follow
)

// Boundf makes an Invalid error about the field at param that met bound b.
func Boundf(b Bound, param, format string, args ...any) *Error {
	e := Invalidf(param, format, args...)
	e.Bound = b
	return e
}

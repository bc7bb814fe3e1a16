package dialect

// thinkOnly is output with reasoning in <think> tags and no known form of tool calls.
var thinkOnly = tagFamily(&Family{
	Name: "think", Names: none, Shared: none,
	Think: thinkTags, Resume: none, Replay: ReplayNever, Ends: none, Builtin: noBuiltin,
	Calls:   noCalls,
	matches: func(e Evidence) bool { return e.mentions(thinkClose) || e.token(thinkOpen, thinkClose) },
}, &syntax{})

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// thinkTags are the form of reasoning that most families have.
var thinkTags = &Think{Open: thinkOpen, Close: thinkClose, Leave: "\n" + thinkClose + "\n\n", at: beforeAnswer, ReasoningNames: []string{
	"think", "qwen3", "qwen", "deepseek_r1", "deepseek_v3", "deepseek", "glm4", "glm45", "glm47", "glm", "minimax", "minimax_m2", "kimi", "kimi_k2",
	"nemotron", "nemotron_v3", "granite", "step3", "step3p5", "poolside_v1", "holo2", "ernie45", "olmo3", "smollm3"}}

package responses

import "hearth/internal/wire"

// The fields that this protocol reads, but for those of wire's own and those that only package openai reads.
var _ = wire.Declare(
	"arguments", "background", "call_id", "compact_threshold", "content",
	"context_management", "conversation", "defer_loading", "description", "effort", "encrypted_content", "error",
	"format", "generate", "generate_summary", "id", "include", "input", "instructions", "items", "keep_alive", "max_output_tokens", "max_tool_calls",
	"metadata", "mode", "model", "name", "namespace", "output", "parallel_tool_calls", "parameters", "previous_response_id", "prompt",
	"prompt_cache_key", "reasoning", "role", "safety_identifier", "server_label", "status", "stop", "store", "stream", "stream_id", "summary", "temperature",
	"text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "type", "verbosity",
)

package openai

import "hearth/internal/wire"

// The fields that this protocol reads, but for those of wire's own.
var _ = wire.Declare(
	"allowed_tools", "arguments", "audio_url", "best_of", "budget_tokens", "chat_template_kwargs", "content", "custom",
	"data", "definition", "description", "dimensions", "documents", "echo", "effort", "enable_thinking",
	"encoding_format", "file", "file_data", "file_id", "file_url", "filename", "format", "frequency_penalty", "function",
	"function_call", "functions", "grammar", "id", "image_url", "include_usage", "input", "input_audio", "instruction",
	"json_schema", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "min_p", "mode", "model",
	"n", "name", "parallel_tool_calls", "parameters", "presence_penalty", "prompt", "query", "reasoning",
	"reasoning_content", "reasoning_effort", "refusal", "repetition_penalty", "response_format", "return_documents",
	"role", "schema", "seed", "stop", "stream", "stream_options", "strict", "suffix", "syntax", "temperature", "text",
	"thinking", "tool_call_id", "tool_calls", "tool_choice", "tools", "top_k", "top_logprobs", "top_n", "top_p",
	"truncate", "truncate_prompt_tokens", "type", "url", "user", "video_url", "xtc_probability", "xtc_threshold",
)

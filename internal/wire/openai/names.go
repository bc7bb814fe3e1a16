package openai

import "hearth/internal/wire"

// The fields that this protocol reads, but for those of wire's own.
var _ = wire.Declare(
	"allowed_tools", "arguments", "audio_url", "best_of", "budget_tokens", "chat_template_kwargs", "choice",
	"content", "custom", "data", "definition", "description", "detail", "dimensions", "documents", "echo", "effort",
	"enable_thinking", "encoding_format", "file", "file_data", "file_id", "file_url", "filename", "format",
	"function", "function_call", "functions", "grammar", "guided_choice", "guided_grammar", "guided_json",
	"guided_regex", "id", "image_url", "include_usage", "input", "input_audio", "instruction", "json", "json_object",
	"json_schema", "keep_alive", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "mode", "model", "n",
	"name", "parallel_tool_calls", "parameters", "prediction", "prompt", "query", "reasoning", "reasoning_content",
	"reasoning_effort", "refusal", "regex", "response_format", "return_documents", "role", "schema", "seed", "stop",
	"stream", "stream_options", "strict", "structural_tag", "structured_outputs", "suffix", "syntax", "text",
	"thinking", "tool_call_id", "tool_calls", "tool_choice", "tools", "top_logprobs", "top_n", "truncate",
	"truncate_prompt_tokens", "type", "url", "user", "video_url",
)

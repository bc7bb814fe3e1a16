package anthropic

import "hearth/internal/wire"

// The fields that this protocol reads, but for those of wire's own.
var _ = wire.Declare(
	"budget_tokens", "content", "data", "defer_loading", "description", "disable_parallel_tool_use", "display", "effort",
	"file_id", "format", "id", "input", "input_schema", "is_error", "keep_alive", "max_tokens", "media_type", "messages", "model",
	"name", "output_config", "output_format", "role", "schema", "server_name", "signature", "source", "stop_sequences", "stream",
	"strict", "system", "text", "thinking", "thread", "title", "tool_choice", "tool_name", "tool_use_id", "tools", "type",
	"url",
)

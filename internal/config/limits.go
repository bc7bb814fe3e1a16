package config

// Limits bound what one request or one file can make the program do. They are not knobs: nobody should have to know them.
const (
	// MaxBodyBytes is the longest request body; a longer one is answered with 413.
	MaxBodyBytes = 64 << 20
	// leastRequestBytes is the least that --max-request-bytes may be: room for the longest body in the share of large ones.
	leastRequestBytes = 2 * MaxBodyBytes
	// mostSessions is the most that --context-max-sessions may be.
	mostSessions = 1 << 20
	// mostSockets is the most that --max-sockets may be.
	mostSockets = 1 << 16
	// MaxBatchTokens is the most rows one step of the engine runs, over all sequences.
	MaxBatchTokens = 8192
	// MaxLineBytes is the longest line the debug commands read.
	MaxLineBytes = 16 << 20
)

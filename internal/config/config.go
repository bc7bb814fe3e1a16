// Package config owns every setting of the program: one Config struct, one table of knobs (flag, environment, default,
// documentation), one of what other servers' flags mean here, and the limits that belong to the program as a whole. Package cli
// registers flags from the tables and reads environment and settings file through it; docs/config.md is printed from it.
// Precedence is flag, then environment, then file, then default; what the file says of one model comes before all of them. It
// never acts on a setting, and nothing else reads the environment.
package config

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
)

// Config is the value of every knob. Pointer fields are nil where the model's own files or the built-in default decide.
type Config struct {
	// Listening.
	Host string // "" is both loopback addresses
	Port int    // 0 picks a free one
	// Listen are the sockets in the place of Host and Port: unix:PATH, ADDRESS:PORT, fd:NUMBER.
	Listen []string
	// Files of the TLS certificate, with those that lead to its issuer behind it, and of its key, in PEM; "": plain HTTP.
	TLSCert, TLSKey string

	// Access.
	APIKeys       []string // of --api-key; see Keys
	APIKeyFile    string
	FileKeys      []access.Key // of KeyFile; set by Load
	LineKeys      []access.Key // of --api-keys
	KeyFileUnread bool         // the command is about the file of keys itself: Load does not read it
	OperatorKey   string
	Proxies       Proxies // trusted
	// Limits; 0: none.
	RateLimit            int // requests a minute of a client
	MaxRequests          int // at a time
	MaxRequestsPerClient int
	Timeout              time.Duration // without progress
	QueueWait            time.Duration // 0: Timeout
	AllowedHosts         []string
	AllowedOrigins       []string
	MCPConfig            string // a file of MCP servers; "": none

	ConfigFile string // of settings; "": in the user's folder of them; off: none

	// Which model, and what it answers to.
	Model           string // folder or id; "" is the embedded demo
	ServedModelName []string
	AnyModel        bool
	StrictModels    bool
	Models          string        // on-demand: also those on disk, loaded when a request names them; pinned: those the server was started with
	IdleUnload      time.Duration // after which a model that was loaded on demand goes; 0: when its memory is needed
	AdapterPath     string        // folder of an adapter to load with the model; "": none
	HubCache        string        // folder with models--org--name entries; set by Load
	HFHome          string
	ModelsDir       []string // further folders with models
	HFEndpoint      string   // of the hub
	HFToken         string   // see HubToken
	Offline         bool     // ask no hub
	Pull            bool     // fetch a model that is not on disk without asking

	// How it runs.
	Backend         string // auto, mlx, cpu
	MLXLib          string // path of libmlxc; "": in the usual places
	MLXFastSynch    *bool  // these three are settings of MLX; nil and 0: MLXEnviron
	MLXBufferMB     int
	MLXBufferOps    int
	Precision       string // auto, fast, outliers, exact, float32
	Threads         int    // 0: one per core
	LowMemory       *bool  // nil: where the weights would not fit otherwise
	KVType          string // auto, f32, bf16, f16, q8, q4
	ContextLength   int    // 0: the model's own, as far as CacheMemoryMB reaches
	PromptCache     bool
	PromptCacheMax  int64         // bytes that no running reply uses; 0: as much as the cache memory allows
	CacheIsolation  string        // none, key, or "": see Isolated
	ContextTTL      time.Duration // of what is stored and not used; 0: for ever
	ContextSessions int           // whose prompts are remembered
	PrefixCacheDir  string        // "": in the user's cache folder; off: nowhere; see PrefixCacheFolder
	PrefixCacheMB   int           // of files there; 0: 10 GiB or a tenth of the free disk, whichever is less
	PrefixCacheDays int           // that something stays there without being used; 0: any number
	CacheMemoryMB   int           // 0: CacheMemoryPart
	CacheMemoryPart float64       // of the machine's memory
	OSReserve       *int64        // bytes left to the system; nil: a part of the machine's memory
	MaxSequences    int
	MaxQueue        int    // requests that wait for one of those
	MaxRequestBytes int64  // of all request bodies that are held at once
	History         string // exact, text
	ReplayReasoning string // auto, never
	PrefillStepSize int
	Speculation     string        // auto, on, off: drafts of tokens that may come next
	StepTarget      time.Duration // 0: prompt chunks never shrink

	// What a request gets that does not say.
	chat.Sampling
	MaxTokens        int // 0: the room left in the context
	MaxTokensCap     int // 0: none
	EnableThinking   *bool
	ThinkingBudget   int                        // tokens; 0: none
	ChatTemplate     string                     // name, file, folder or text of one in the place of the model's own; "": that
	ChatTemplateArgs map[string]json.RawMessage // variables of the chat template
	ExposeThinking   *bool                      // nil: Messages shows it where asked for, Chat always
	ReasoningField   string                     // both, reasoning_content, reasoning
	ValidationStatus string                     // 400, 422
	HostedTools      string                     // drop, refuse
	MaxSockets       int                        // WebSockets that may be open
	Store            string                     // disk, memory, off
	Private          bool                       // what is said stays in memory; see keepPrivate
	StoreDir         string                     // "": in the user's data folder; see StoreFolder
	ResponsesTTL     time.Duration              // 0: for ever
	ConversationTTL  time.Duration              // 0: they do not expire
	Archive          string                     // "": in the user's data folder; off: nowhere; see ArchiveFolder

	// How output is read.
	ToolCallParser       string
	ReasoningParser      string
	NoToolRepair         bool
	ToolsInPrompt        string // auto, never: whether tools that the template has no place for stand in the system text
	RunawayStop          bool   // greedy replies that will not end are ended
	ConstrainTools       string // auto, always, never: whether calls are kept to the declared tools while they are written
	EnableAutoToolChoice bool   // changes nothing: calls are always read where a request declares tools

	// How the API behaves.
	StrictAnthropic    bool
	StrictOpenAI       bool
	AnthropicVersion   string   // header of replies
	StreamInterval     int      // tokens in one event of a stream
	Images             string   // note, refuse: what becomes of what the model cannot take in
	ImageURLs          []string // hosts whose images are fetched: names, *.suffix, or *
	MaxImageBytes      int64    // of a file
	MaxImagePixels     int
	MaxImages          int    // of a request
	ImageCacheBytes    int64  // of what a tower made of images, that is kept for later prompts
	ModelProcess       string // auto, always, never: whether models run in processes of their own
	SmallModel         string // folder or id that haiku names mean; "": the model
	EmbeddingModel     string // folder or id of a model beside the others, for /v1/embeddings
	RerankModel        string // the same for /v1/rerank
	EmbeddingMaxLength int    // tokens of a text; 0: the model's own limit
	EmbeddingOverflow  string // error, truncate: what happens to a longer one
	Script             string // file that answers in the model's place
	DebugRequestDir    string // folder for summaries of requests

	LogLevel     string // debug, info, warn, error
	LogFormat    string // text, json
	LogPrompts   bool   // text of prompts may be logged
	Metrics      bool   // there is /metrics
	MetricsAddr  string // host:port that has it instead; "": where the API is
	MetricsVLLM  bool   // under vLLM's names too
	DrainTimeout time.Duration

	origin                     map[string]string
	foreign                    map[string]given // flags of other servers
	user                       string           // the user's folder; "": not known
	file                       string           // that was read; "": none
	sections                   []section        // of the file, for models; see For
	ofModel                    map[string]bool  // places in the file that For took something from
	matched                    []string         // patterns of the sections that For took in
	overruled                  []string         // flags and variables that they replaced
	aliasFile                  string           // see AliasFile
	hubTokenFile               string           // see HubToken
	keyFile                    string           // see KeyFile
	prefixFolder               string           // see PrefixCacheFolder
	storeFolder, archiveFolder string           // see StoreFolder and ArchiveFolder
}

// Default is the configuration with no flag and no environment.
func Default() *Config {
	return &Config{
		Port:              8080,
		Timeout:           5 * time.Minute,
		HFEndpoint:        "https://huggingface.co",
		Models:            "on-demand",
		IdleUnload:        5 * time.Minute,
		Backend:           "auto",
		Precision:         "auto",
		KVType:            "auto",
		PromptCache:       true,
		CacheMemoryPart:   0.2,
		MaxSequences:      16,
		MaxQueue:          1024,
		MaxRequestBytes:   4 * MaxBodyBytes,
		History:           "exact",
		ReplayReasoning:   "auto",
		PrefillStepSize:   2048,
		ContextTTL:        12 * time.Hour,
		ContextSessions:   500,
		PrefixCacheDays:   30,
		StepTarget:        150 * time.Millisecond,
		Speculation:       "auto",
		StreamInterval:    1,
		Images:            "note",
		MaxImageBytes:     32 << 20,
		MaxImagePixels:    50 << 20,
		MaxImages:         100,
		ImageCacheBytes:   256 << 20,
		ModelProcess:      "auto",
		ToolCallParser:    "auto",
		ToolsInPrompt:     "auto",
		ConstrainTools:    "auto",
		RunawayStop:       true,
		ReasoningParser:   "auto",
		ReasoningField:    "both",
		ValidationStatus:  "400",
		HostedTools:       "drop",
		MaxSockets:        64,
		Store:             "disk",
		ResponsesTTL:      30 * 24 * time.Hour,
		ConversationTTL:   time.Hour,
		EmbeddingOverflow: "error",
		LogLevel:          "info",
		LogFormat:         "text",
		AnthropicVersion:  "2023-06-01",
		DrainTimeout:      10 * time.Second,
		origin:            map[string]string{},
		foreign:           map[string]given{},
	}
}

// Isolated reports whether each key has a prompt cache of its own.
func (c *Config) Isolated() bool {
	return access.NewKeys(c.Keys()).Isolated(access.Isolation(c.CacheIsolation))
}

// Thinking says whether models think where requests leave it open: EnableThinking, else what ChatTemplateArgs have of it; nil:
// the template decides.
func (c *Config) Thinking() *bool {
	on := c.EnableThinking
	if on == nil {
		_ = json.Unmarshal(c.ChatTemplateArgs["enable_thinking"], &on) // not there, or no bool: still nil
	}
	return on
}

// HideThinking says that no protocol shows reasoning, even where it is asked for.
func (c *Config) HideThinking() bool { return c.ExposeThinking != nil && !*c.ExposeThinking }

// NoThinking reports that no request can make a model think, as far as its template can be told.
func (c *Config) NoThinking() bool { return c.EnableThinking != nil && !*c.EnableThinking }

// Origin says where a knob's value came from: "--port", "HEARTH_PORT", file and line as "/f.toml:3", or "" for the default.
func (c *Config) Origin(flag string) string { return c.origin[flag] }

// Sections are the tables of the file that say something of the model that For was asked for, the strongest last.
func (c *Config) Sections() []string { return c.matched }

// Overruled says which flags and variables something else came before, a model's table of the file or the argument MODEL, a
// line each.
func (c *Config) Overruled() []string { return c.overruled }

// File is the settings file that was read, "" if none was.
func (c *Config) File() string { return c.file }

// home is the user's folder, "" if that is not known.
func home(env Env) string {
	user, _ := env("HOME")
	if user == "" {
		user, _ = env("USERPROFILE")
	}
	return user
}

// hubCache is the folder Hugging Face clients keep models in, "" if there is no home folder either.
func (c *Config) hubCache(env Env) string {
	user := home(env)
	if c.HubCache != "" {
		return expand(c.HubCache, user)
	}
	if dir := c.hfHome(env, user); dir != "" {
		return filepath.Join(dir, "hub")
	}
	return ""
}

// hfHome is the folder of Hugging Face clients, "" if there is no home folder either.
func (c *Config) hfHome(env Env, user string) string {
	if c.HFHome != "" {
		return expand(c.HFHome, user)
	}
	base, _ := env("XDG_CACHE_HOME")
	if base == "" {
		if user == "" {
			return ""
		}
		base = filepath.Join(user, ".cache")
	}
	return filepath.Join(base, "huggingface")
}

// expand replaces a leading ~ as Hugging Face clients do for their variables.
func expand(path, user string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && user != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(user, rest)
	}
	return path
}

// Measured reports whether anybody can ask for metrics.
func (c *Config) Measured() bool { return c.Metrics || c.MetricsAddr != "" }

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

// Config is a file of MCP servers, as many programs have it.
type Config struct {
	Servers []Server
	// Faults are the servers that are left out, and why.
	Faults []Fault
	// Remarks are what of the file was read over, each a sentence.
	Remarks []string

	// Bounds of a reply whose tools are run here.
	Rounds      int           // times that the model is asked again with results
	Calls       int           // of all rounds
	Time        time.Duration // until no further call begins, and one that runs is broken off
	ResultBytes int           // of the text of a result; the rest is left out
}

// Server says how an MCP server is reached, which is either by a program that speaks on its standard streams or by a URL.
type Server struct {
	Name string

	Command string
	Args    []string
	Env     map[string]string // besides what every program gets, see environment
	Dir     string            // "": that of this process

	URL     string
	Headers map[string]string

	Timeout time.Duration // of a call
	Allow   []string      // tools that may be run; "*" is any
}

// Fault is a server that a file names and that cannot be, with the key to blame.
type Fault struct {
	Server, Key string // Key may be ""
	Err         error
}

func (f Fault) Error() string {
	path := "mcpServers." + regular.Clip(f.Server)
	if f.Key != "" {
		path += "." + f.Key
	}
	return path + ": " + f.Err.Error()
}

func (f Fault) Unwrap() error { return f.Err }

// Defaults where a file says nothing.
const (
	defaultRounds = 10
	defaultCalls  = 32
	defaultTime   = 5 * time.Minute
	defaultCall   = 30 * time.Second
	defaultResult = 64 << 10
)

const (
	maxFile    = 1 << 20 // bytes of a file of servers
	mostServer = 64      // servers of a file
	mostName   = 64      // bytes of a server's name
	mostCalls  = 1000    // rounds, and calls, that a file may allow a reply
	maxResult  = 16 << 20
	longestRun = time.Hour // of a call, and of all calls of a reply
	mostKeys   = 8         // keys without a meaning that are named, of the file and of a server
)

// ReadConfig reads a file of MCP servers; lookup finds variables of the environment that it names. What is wrong with one
// server is a fault of that one; what is wrong with the file is the error.
func ReadConfig(path string, lookup func(string) (string, bool)) (*Config, error) {
	text, err := regular.Read(path, maxFile)
	if err != nil {
		return nil, regular.Short(err)
	}
	c, err := parseConfig(text, lookup)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, regular.Short(err))
	}
	return c, nil
}

func parseConfig(text []byte, lookup func(string) (string, bool)) (*Config, error) {
	c := &Config{Rounds: defaultRounds, Calls: defaultCalls, Time: defaultTime, ResultBytes: defaultResult}
	var file map[string]json.RawMessage
	fault, err := jsonc.Unmarshal(text, &file)
	if err != nil {
		return nil, fmt.Errorf("must be a JSON object with mcpServers in it: %w", jsonc.Mistyped(err))
	}
	if fault != "" {
		c.Remarks = append(c.Remarks, "the file "+jsonc.ReadOver(fault))
	}
	r := reader{lookup: lookup, timeout: defaultCall}
	var idle []string
	var servers json.RawMessage
	for _, key := range slices.Sorted(maps.Keys(file)) {
		v, err := file[key], error(nil)
		switch key {
		case "mcpServers", "servers":
			if servers != nil {
				return nil, errors.New("has both mcpServers and servers: leave one out")
			}
			servers = v
		case "default_timeout":
			r.timeout, err = r.seconds(v)
		case "max_rounds":
			c.Rounds, err = number(v, 1, mostCalls)
		case "max_tool_calls":
			c.Calls, err = number(v, 1, mostCalls)
		case "max_seconds":
			c.Time, err = r.seconds(v)
		case "max_result_bytes":
			c.ResultBytes, err = number(v, 256, maxResult)
		default:
			idle = append(idle, key)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	c.Remarks = append(c.Remarks, meaningless("", idle)...)
	var all map[string]json.RawMessage
	if json.Unmarshal(servers, &all) != nil || all == nil {
		return nil, errors.New("mcpServers: must be an object with a member for each server")
	}
	if len(all) > mostServer {
		return nil, fmt.Errorf("mcpServers: has %d servers, more than %d", len(all), mostServer)
	}
	prefixes := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s, remarks, fault := r.server(name, all[name])
		if other, taken := prefixes[prefix(name)]; fault == nil && taken {
			fault = &Fault{Server: name, Err: fmt.Errorf("its tools would be called as those of %s are: rename one of them", regular.Quote(other))}
		}
		c.Remarks = append(c.Remarks, remarks...)
		switch {
		case fault != nil:
			c.Faults = append(c.Faults, *fault)
		case s != nil:
			prefixes[prefix(name)] = name
			c.Servers = append(c.Servers, *s)
		}
	}
	return c, nil
}

// reader reads the values of a file.
type reader struct {
	lookup  func(string) (string, bool)
	timeout time.Duration
}

// others are keys that other programs have and that mean nothing here, or that this file says otherwise.
var others = []string{"type", "transport", "description", "name", "autoApprove", "alwaysAllow", "trust", "disabled", "enabled", "skip_security_validation"}

// server reads a server; nil without a fault is one that is switched off.
func (r *reader) server(name string, text json.RawMessage) (_ *Server, remarks []string, fault *Fault) {
	var idle []string
	defer func() { remarks = append(meaningless("mcpServers."+regular.Clip(name)+": ", idle), remarks...) }()
	fail := func(key string, err error) (*Server, []string, *Fault) { return nil, remarks, &Fault{name, key, err} }
	if name == "" || len(name) > mostName {
		return fail("", fmt.Errorf("the name must have 1 to %d bytes", mostName))
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) != nil || keys == nil {
		return fail("", errors.New("must be an object with command or url"))
	}
	s := &Server{Name: name, Timeout: r.timeout}
	kind, off := "", false
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		v, err := keys[key], error(nil)
		switch key {
		case "command":
			s.Command, err = r.text(v)
		case "args":
			s.Args, err = r.texts(v)
		case "env":
			s.Env, err = r.table(v)
		case "cwd":
			s.Dir, err = r.text(v)
		case "url":
			s.URL, err = r.address(v)
		case "headers":
			if s.Headers, err = r.table(v); err == nil {
				err = checkHeaders(s.Headers)
			}
		case "timeout":
			s.Timeout, err = r.seconds(v)
		case "allow":
			s.Allow, err = r.texts(v)
		case "type", "transport":
			if kind, err = r.text(v); err == nil {
				err = checkKind(kind)
			}
		case "disabled", "enabled":
			var b bool
			if json.Unmarshal(v, &b) != nil {
				err = errors.New("must be true or false")
			}
			off = off || b == (key == "disabled")
		default:
			if !slices.Contains(others, key) {
				idle = append(idle, key)
			}
		}
		if err != nil {
			return fail(regular.Clip(key), err)
		}
	}
	switch {
	case off:
		return nil, remarks, nil
	case s.Command == "" && s.URL == "":
		return fail("", errors.New("needs command, a program to start, or url, an address"))
	case s.Command != "" && s.URL != "":
		return fail("url", errors.New("there is a command too: a server has one of them"))
	case kind == "stdio" && s.Command == "":
		return fail("command", errors.New("a server of type stdio needs the program to start"))
	case kind != "" && kind != "stdio" && s.URL == "":
		return fail("url", fmt.Errorf("a server of type %s needs its address", kind))
	case s.Command == "" && (s.Args != nil || s.Env != nil || s.Dir != ""):
		remarks = append(remarks, "mcpServers."+regular.Clip(name)+": args, env and cwd are for servers with a command")
	}
	return s, remarks, nil
}

// meaningless are remarks about keys that are not known, the first of which are named.
func meaningless(of string, keys []string) (remarks []string) {
	for i, key := range keys {
		if i == mostKeys {
			return append(remarks, fmt.Sprintf("%sso it is with %d more keys", of, len(keys)-i))
		}
		remarks = append(remarks, of+"the key "+regular.Quote(key)+" means nothing here")
	}
	return remarks
}

// checkKind refuses transports that are not spoken here.
func checkKind(kind string) error {
	switch kind {
	case "stdio", "http", "streamable-http", "streamableHttp", "streamable_http":
		return nil
	case "sse":
		return errors.New("the older HTTP+SSE transport is not spoken here: give the server's address for streamable HTTP, which often ends in /mcp, and leave type out")
	}
	return fmt.Errorf("must be stdio or http, got %s", regular.Quote(kind))
}

func (r *reader) text(v json.RawMessage) (string, error) {
	var s string
	if json.Unmarshal(v, &s) != nil || string(v) == "null" {
		return "", errors.New("must be a text")
	}
	if strings.ContainsRune(s, 0) {
		return "", errors.New("must not have a zero byte in it")
	}
	return r.expand(s)
}

func (r *reader) texts(v json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil || list == nil {
		return nil, errors.New("must be a list of texts")
	}
	all := make([]string, len(list))
	for i, e := range list {
		s, err := r.text(e)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		all[i] = s
	}
	return all, nil
}

func (r *reader) table(v json.RawMessage) (map[string]string, error) {
	var table map[string]json.RawMessage
	if json.Unmarshal(v, &table) != nil || table == nil {
		return nil, errors.New("must be an object of texts")
	}
	all := make(map[string]string, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		s, err := r.text(table[key])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", regular.Quote(key), err)
		case key == "" || strings.ContainsAny(key, "=\x00"):
			return nil, fmt.Errorf("%s is no name of a variable or header", regular.Quote(key))
		}
		all[key] = s
	}
	return all, nil
}

func (r *reader) address(v json.RawMessage) (string, error) {
	s, err := r.text(v)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("must be an address that begins with http:// or https://") // it may have a secret in it
	case u.User != nil:
		return "", errors.New("must have no user and password: put them into headers, as Authorization")
	}
	return s, nil
}

// seconds reads a time. Some programs count milliseconds, which are too many seconds.
func (r *reader) seconds(v json.RawMessage) (time.Duration, error) {
	var n float64
	if json.Unmarshal(v, &n) != nil || string(v) == "null" || !(n > 0) || n > longestRun.Seconds() {
		return 0, fmt.Errorf("must be a number of seconds, above 0 and at most %.0f", longestRun.Seconds())
	}
	return max(time.Duration(n*float64(time.Second)), time.Millisecond), nil
}

func number(v json.RawMessage, least, most int) (int, error) {
	var n int
	if json.Unmarshal(v, &n) != nil || n < least || n > most {
		return 0, fmt.Errorf("must be a number from %d to %d", least, most)
	}
	return n, nil
}

// headerName is RFC 9110's token.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func checkHeaders(h map[string]string) error {
	for name, value := range h {
		switch {
		case !headerName.MatchString(name):
			return fmt.Errorf("%s is no name of a header", regular.Quote(name))
		case strings.ContainsAny(value, "\r\n"):
			return fmt.Errorf("%s: the value must be one line", name)
		}
	}
	return nil
}

// variable is a variable of the environment as other programs write it: ${NAME}, ${env:NAME}, ${NAME:-text where it is not set}.
var variable = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?:(:-)([^}]*))?\}`)

// expand puts variables of the environment into s.
func (r *reader) expand(s string) (_ string, err error) {
	s = variable.ReplaceAllStringFunc(s, func(v string) string {
		m := variable.FindStringSubmatch(v)
		value, ok := r.lookup(m[1])
		switch {
		case ok && (value != "" || m[2] == ""):
			return value
		case m[2] != "":
			return m[3]
		case err == nil:
			err = fmt.Errorf("the environment has no %s", m[1])
		}
		return ""
	})
	return s, err
}

// prefix is what the full names of a server's tools begin with.
func prefix(server string) string { return (&chat.MCPTool{Server: server}).FullName() }

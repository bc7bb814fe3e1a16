package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"hearth/internal/chat"
)

// sessionHeaders name the session in clients' own words: Claude Code, then what several have in common, Codex, of which some
// send session_id, and a gateway's.
var sessionHeaders = []string{"X-Claude-Code-Session-Id", "X-Session-Id", "X-Session-Affinity", "Session-Id", "Session_id", "X-Dynamo-Session-Id"}

// PriorityHeader says whether somebody waits for the reply: interactive, or background.
const PriorityHeader = "X-Hearth-Priority"

// HistoryHeader of a request says how earlier answers stand in its prompt, in the words of --history: text, as the template
// writes them, or exact, as the server has it. Of a reply it says that some stand as they were generated.
const HistoryHeader = "X-Hearth-History"

// MCPHeader of a request names MCP servers whose tools are run here, with commas between them; true is all of them. The field
// mcp of its body, true, false or a list of names, goes before it.
const MCPHeader = "X-Hearth-MCP"

// mostServers bounds the MCP servers that a request names.
const mostServers = 64

// useMCP reads which MCP servers' tools a request has run.
func useMCP(r *http.Request, v Value, info *Info, req *chat.Request) *chat.Error {
	var names []string
	at := MCPHeader
	switch h := r.Header.Get(MCPHeader); {
	case !v.Absent():
		at = v.Path()
		var d Decoder
		if v.Kind() == Array {
			for _, name := range d.ItemsWithin(v, chat.BoundMCP, mostServers, "servers") {
				names = append(names, d.String(name))
			}
			if len(names) == 0 && d.Err() == nil {
				d.Fail(v, "must name at least one server")
			}
		} else if v.Kind() != Bool {
			d.Fail(v, "must be true, false or a list of names of MCP servers")
		} else if d.Bool(v) {
			names = []string{chat.AllServers}
		}
		if err := d.Err(); err != nil {
			return err
		}
	case h == "", h == "false":
	case h == "true":
		names = []string{chat.AllServers}
	default:
		for name := range strings.SplitSeq(h, ",") {
			names = append(names, strings.TrimSpace(name))
		}
		if len(names) > mostServers {
			return chat.Boundf(chat.BoundMCP, at, "too many servers: at most %d", mostServers)
		}
	}
	if names != nil {
		req.MCP = &chat.MCP{Servers: names}
	}
	switch {
	case req.MCP == nil, info.MCP == MCPOpen:
		return nil
	case info.MCP == MCPAbsent:
		return chat.Invalidf(at, "there are no MCP servers here: start hearth with --mcp-config FILE, or leave this out")
	}
	return &chat.Error{Kind: chat.Unauthenticated, Param: at, Code: "token_required",
		Msg: "to have tools of MCP servers run, a request shows an API key, or where none is set the token that hearth made when it started (docs/mcp.md)"}
}

// Identify fills in req.Origin from the headers of r and the fields that clients of all protocols use for it. The
// session is the first there is of sessionHeaders, session_id, the session in metadata.user_id (Claude Code), prompt_cache_key
// and previous_response_id. req.MCP is what useMCP says. A request is background if its key or PriorityHeader says so or,
// without that, service_tier is flex. cache_control and prompt_cache_key mark it as worth keeping. What has another shape than
// expected is no hint, and nothing here refuses a request but MCPHeader, mcp, a wrong PriorityHeader and a wrong HistoryHeader,
// which fills in req.PlainHistory.
func Identify(r *http.Request, body Value, req *chat.Request) *chat.Error {
	info := InfoFrom(r.Context())
	cacheKey := text(body.Get("prompt_cache_key"))
	o := chat.Origin{ID: info.RequestID, Caller: info.Caller, Salt: info.Salt, Background: text(body.Get("service_tier")) == "flex",
		Marked: cacheKey != "" || bytes.Contains(body.Raw(), []byte(`"cache_control"`))}
	switch p := r.Header.Get(PriorityHeader); p {
	case "":
	case "background", "interactive":
		o.Background = p == "background"
	default:
		return &chat.Error{Kind: chat.Invalid, Param: PriorityHeader, Msg: "must be interactive or background, got " + Quote(p)}
	}
	o.Background = o.Background || info.Background
	switch h := r.Header.Get(HistoryHeader); h {
	case "", "exact":
	case "text":
		req.PlainHistory = true
	default:
		return &chat.Error{Kind: chat.Invalid, Param: HistoryHeader, Msg: "must be exact or text, got " + Quote(h)}
	}
	if err := useMCP(r, body.Get("mcp"), info, req); err != nil {
		return err
	}
	names := make([]string, 0, len(sessionHeaders)+4)
	for _, h := range sessionHeaders {
		names = append(names, r.Header.Get(h))
	}
	user := ""
	if m := body.Get("metadata"); m.Kind() == Object {
		user = text(m.Get("user_id"))
	}
	for _, name := range append(names, text(body.Get("session_id")), userSession(user), cacheKey, text(body.Get("previous_response_id"))) {
		if name != "" {
			o.Session = cleanSession(name)
			break
		}
	}
	info.Session, req.Origin = o.Session, o
	return nil
}

// text is v if it is a string, else "".
func text(v Value) string {
	if v.Kind() != String {
		return ""
	}
	return unquote(v.raw)
}

// userSession finds the session in Claude Code's metadata.user_id: a JSON object with session_id, before that
// user_…_session_….
func userSession(id string) string {
	var object struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(id), &object) == nil {
		return object.SessionID
	}
	_, session, _ := strings.Cut(id, "_session_")
	return session
}

// cleanSession makes a name fit for a log line: names with anything but letters, digits and a few marks, and long ones,
// are told apart by a digest.
func cleanSession(name string) string {
	const most = 64
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-_.:", r)
	}
	if len(name) <= most && !strings.ContainsFunc(name, odd) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:8])
}

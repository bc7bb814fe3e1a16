package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hearth/internal/chat"
	"hearth/internal/regular"
	"hearth/internal/wire"
)

// Tool is a tool of a server that is connected.
type Tool struct {
	Name        string          `json:"name"`   // as models and callers name it: the server's name, two underscores, its own
	Server      string          `json:"server"` // as the file has it
	Own         string          `json:"tool"`   // as the server has it
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // its JSON Schema
	Allowed     bool            `json:"allowed"`    // the file lets it run
}

// anyTool in allow is every tool of the server.
const anyTool = "*"

const (
	mostTools      = 512       // of a server; others are left out
	mostPages      = 64        // of a list of tools
	longestTool    = 128       // bytes of a full name; a tool with a longer one is left out
	maxDescription = 16 << 10  // bytes; the rest is left out
	maxSchema      = 256 << 10 // bytes; a tool with more is left out
)

// toolsOf lists the tools of a session; leftOut are those that cannot be, with the reason.
func toolsOf(ctx context.Context, s *Server, session *sdk.ClientSession) (tools []*Tool, leftOut []string, err error) {
	names, cursor := map[string]bool{}, ""
	if r := session.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		return nil, nil, nil // it has none
	}
	for range mostPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		for _, listed := range page.Tools {
			if listed == nil {
				continue
			}
			if len(tools)+len(leftOut) == mostTools {
				return tools, append(leftOut, fmt.Sprintf("those after the first %d", mostTools)), nil
			}
			t, err := toolOf(s, listed)
			if err == nil && names[t.Name] {
				err = errors.New("another one is called the same")
			}
			if err != nil {
				leftOut = append(leftOut, regular.Clip(listed.Name)+": "+err.Error())
				continue
			}
			names[t.Name] = true
			tools = append(tools, t)
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, leftOut, nil
		}
	}
	return tools, append(leftOut, fmt.Sprintf("those after %d pages", mostPages)), nil
}

func toolOf(s *Server, listed *sdk.Tool) (*Tool, error) {
	t := &Tool{Name: (&chat.MCPTool{Server: s.Name, Name: listed.Name}).FullName(), Server: s.Name, Own: listed.Name,
		Description: clipText(listed.Description, maxDescription, 0), Allowed: slices.Contains(s.Allow, listed.Name) || slices.Contains(s.Allow, anyTool)}
	switch {
	case listed.Name == "":
		return nil, errors.New("it has no name")
	case len(t.Name) > longestTool:
		return nil, fmt.Errorf("its name has more than %d bytes", longestTool-len(prefix(s.Name)))
	}
	text, err := json.Marshal(listed.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	t.Parameters, err = checkSchema(text)
	return t, err
}

// checkSchema takes a schema through the bounds of schemas in requests.
func checkSchema(text []byte) (json.RawMessage, error) {
	if string(text) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	}
	v, bad := wire.Parse(text)
	if bad == nil {
		var d wire.Decoder
		schema := d.ObjectRaw(v)
		if bad = d.Err(); bad == nil {
			return schema, nil
		}
	}
	return nil, fmt.Errorf("its schema: %w", bad)
}

// resultText is what a model is told of a result: its texts, and of all else what it is. most bounds its bytes.
func resultText(r *sdk.CallToolResult, most int) string {
	var b strings.Builder
	left := 0 // bytes that are not kept
	add := func(text string) {
		switch {
		case text == "":
			return
		case b.Len() > most:
			left += 1 + len(text)
			return
		case b.Len() > 0:
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			add(c.Text)
		case *sdk.ImageContent:
			add(fmt.Sprintf("[an image of type %s, %d bytes, which is not passed on]", regular.Clip(c.MIMEType), len(c.Data)))
		case *sdk.AudioContent:
			add(fmt.Sprintf("[audio of type %s, %d bytes, which is not passed on]", regular.Clip(c.MIMEType), len(c.Data)))
		case *sdk.ResourceLink:
			add(fmt.Sprintf("[the resource %s at %s, which is not fetched]", regular.Clip(c.Name), regular.Clip(c.URI)))
		case *sdk.EmbeddedResource:
			switch {
			case c.Resource == nil:
			case c.Resource.Text != "":
				add(c.Resource.Text)
			default:
				add(fmt.Sprintf("[the resource %s of type %s, %d bytes, which is not passed on]", regular.Clip(c.Resource.URI), regular.Clip(c.Resource.MIMEType), len(c.Resource.Blob)))
			}
		}
	}
	if b.Len() == 0 && r.StructuredContent != nil {
		if text, err := json.Marshal(r.StructuredContent); err == nil {
			add(string(text))
		}
	}
	return clipText(strings.ToValidUTF8(b.String(), "\uFFFD"), most, left)
}

// clipText is text with at most so many bytes, and a mark where some are left out; left is how many are not in text.
func clipText(text string, most, left int) string {
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s\n[cut: %d of %d bytes]", text[:n], n, len(text)+left)
}

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listed is what is taken of the tools of a server with these, with a page of size tools at a time.
func listed(t *testing.T, size int, tools ...*sdk.Tool) (taken []*Tool, leftOut []string) {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{PageSize: size})
	for _, tool := range tools {
		if tool.InputSchema == nil {
			tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		s.AddTool(tool, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, nil })
	}
	here, there := sdk.NewInMemoryTransports()
	end, err := s.Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	taken, leftOut, err = toolsOf(t.Context(), &Server{Name: "s", Allow: []string{"t0001"}}, session)
	_, _ = session.Close(), end.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return taken, leftOut
}

// TestToolBounds: what is at a bound is taken, what is beyond is left out and told, and hinders no other.
func TestToolBounds(t *testing.T) {
	numbered := func(n int) (all []*sdk.Tool) {
		for i := range n {
			all = append(all, &sdk.Tool{Name: fmt.Sprintf("t%04d", i)})
		}
		return all
	}
	for n, out := range map[int]int{mostTools: 0, mostTools + 1: 1} {
		taken, leftOut := listed(t, 0, numbered(n)...)
		if len(taken) != mostTools || len(leftOut) != out || taken[0].Allowed || !taken[1].Allowed {
			t.Errorf("of %d tools: %d, left out %v", n, len(taken), leftOut)
		}
	}
	for n, out := range map[int]int{mostPages: 0, mostPages + 1: 1} {
		if taken, leftOut := listed(t, 1, numbered(n)...); len(taken) != mostPages || len(leftOut) != out {
			t.Errorf("of %d pages: %d, left out %v", n, len(taken), leftOut)
		}
	}
	schema := func(size int) json.RawMessage {
		return json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", size-len(`{"type":"object","description":""}`)) + `"}`)
	}
	deep := func(levels int) json.RawMessage { // in the two of the schema
		return json.RawMessage(`{"type":"object","enum":[` + strings.Repeat("[", levels-2) + strings.Repeat("]", levels-2) + `]}`)
	}
	name := func(n int) string { return strings.Repeat("n", n-len("s__")) }
	for what, tc := range map[string]struct {
		tool *sdk.Tool
		why  string // it is left out
	}{
		"a long name":       {&sdk.Tool{Name: name(longestTool)}, ""},
		"too long a name":   {&sdk.Tool{Name: name(longestTool + 1)}, "its name has more than 125 bytes"},
		"a large schema":    {&sdk.Tool{Name: "x", InputSchema: schema(maxSchema)}, ""},
		"too large a one":   {&sdk.Tool{Name: "x", InputSchema: schema(maxSchema + 1)}, "its schema has more than 262144 bytes"},
		"a deep schema":     {&sdk.Tool{Name: "x", InputSchema: deep(256)}, ""},
		"too deep a one":    {&sdk.Tool{Name: "x", InputSchema: deep(257)}, "its schema: "},
		"one called alike":  {&sdk.Tool{Name: "t.0"}, ""},
		"one called so too": {&sdk.Tool{Name: "good!"}, "another one is called the same"},
	} {
		taken, leftOut := listed(t, 0, &sdk.Tool{Name: "good_"}, tc.tool)
		if tc.why == "" && (len(taken) != 2 || len(leftOut) != 0) || tc.why != "" && (len(taken) != 1 || len(leftOut) != 1 || !strings.Contains(leftOut[0], tc.why)) {
			t.Errorf("%s: %d taken, left out %.300v", what, len(taken), leftOut)
		}
	}
	taken, _ := listed(t, 0, &sdk.Tool{Name: "x", Description: strings.Repeat("é", maxDescription)})
	if d := taken[0].Description; len(d) > maxDescription+100 || !strings.HasSuffix(d, "[cut: 16384 of 32768 bytes]") || !utf8.ValidString(d) {
		t.Errorf("a description of %d bytes: %.100s", len(d), d)
	}
}

// TestCut: the mark of a result that is cut tells how much there was, also of parts that were never put together.
func TestCut(t *testing.T) {
	r := &sdk.CallToolResult{}
	for range 100 {
		r.Content = append(r.Content, &sdk.TextContent{Text: "0123456789"})
	}
	if got := resultText(r, 25); got != "0123456789\n0123456789\n012\n[cut: 25 of 1099 bytes]" {
		t.Errorf("%q", got)
	}
}

func TestTail(t *testing.T) {
	var e tail
	for range 10 {
		if n, err := e.Write([]byte(strings.Repeat("x", maxTail) + "\nlast words \n\n")); n != maxTail+14 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(e.text) > maxTail || e.last() != "last words" {
		t.Errorf("%d bytes, last %q", len(e.text), e.last())
	}
}

// FuzzSchema: no schema of a server's makes more of itself than its bytes, and what is taken is a JSON object.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string"}}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		schema, err := checkSchema(text)
		var object map[string]any
		if err == nil && (json.Unmarshal(schema, &object) != nil || len(schema) > max(len(text), 32)) {
			t.Errorf("%q became %q", text, schema)
		}
	})
}

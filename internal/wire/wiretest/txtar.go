package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the expected sections of txtar cases")

// RunCases runs every testdata/*.txtar against the protocol at path. A case has the sections
//
//	request.json   the body; the "stream" field is set by the runner
//	chat           the chat.Request it decodes to, zero fields left out; absent if it does not decode
//	events         the script of the reply (ParseScript)
//	response.json  status line, then the plain reply
//	response.sse   the same as a stream
//
// The first and third are input; the others are compared byte for byte and rewritten with -update.
func RunCases(t *testing.T, p wire.Protocol, path string) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := map[string][]byte{}
			for _, f := range ar.Files {
				in[f.Name] = f.Data
			}
			out := &txtar.Archive{Comment: ar.Comment, Files: []txtar.File{{Name: "request.json", Data: in["request.json"]}}}
			add := func(name string, data []byte) { out.Files = append(out.Files, txtar.File{Name: name, Data: data}) }
			plain, got := call(t, p, path, in, false)
			stream, _ := call(t, p, path, in, true)
			if got != nil {
				add("chat", got)
				add("events", in["events"])
			}
			add("response.json", plain)
			add("response.sse", stream)
			Golden(t, file, string(txtar.Format(out)))
		})
	}
}

// call posts the case's request and returns the reply and what the generator was asked, as dump has it, nil if it was not.
func call(t *testing.T, p wire.Protocol, path string, in map[string][]byte, stream bool) (reply, got []byte) {
	steps, refuse, err := ParseScript(in["events"])
	if err != nil {
		t.Fatal(err)
	}
	g := New()
	g.Names = []string{"*"}
	g.Script = func(*chat.Request) ([]Step, error) { return steps, refuse }
	g.Got = func(r *chat.Request) { got = dump(r) } // not later: bytes of images go
	w := post(p, g, path, withStream(in["request.json"], stream))
	head := "HTTP " + strconv.Itoa(w.Code) + "\n"
	return append([]byte(head), w.Body.Bytes()...), got
}

// Options are those of a protocol under test: fixed time, and ids that count from 1.
func Options(m chat.Models) wire.Options {
	n := 0
	return wire.Options{
		Models: m, Version: "test", Now: func() time.Time { return Created },
		NewID: func(prefix string) string { n++; return prefix + strconv.Itoa(n) },
	}
}

// withStream adds "stream" to a body that is an object; anything else stays as it is.
func withStream(body []byte, stream bool) []byte {
	trimmed := bytes.TrimSpace(body)
	if !stream || len(trimmed) == 0 || trimmed[0] != '{' {
		return body
	}
	rest := bytes.TrimSpace(trimmed[1:])
	if len(rest) > 0 && rest[0] == '}' {
		return []byte(`{"stream":true}`)
	}
	return append([]byte(`{"stream":true,`), rest...)
}

// dump renders r as JSON without its zero fields, so that a case shows what was decoded and nothing else. Raw JSON
// inside stays as it is, key order included.
func dump(r *chat.Request) []byte {
	v := *r
	v.Origin.ID = "" // given to the request, not decoded
	var b bytes.Buffer
	if err := json.Indent(&b, appendValue(nil, reflect.ValueOf(&v)), "", " "); err != nil {
		return []byte("cannot dump: " + err.Error() + "\n")
	}
	return append(b.Bytes(), '\n')
}

func appendValue(out []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer:
		return appendValue(out, v.Elem())
	case reflect.Struct:
		out = append(out, '{')
		n := len(out)
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				if len(out) > n {
					out = append(out, ',')
				}
				out = strconv.AppendQuote(out, v.Type().Field(i).Name)
				out = appendValue(append(out, ':'), f)
			}
		}
		return append(out, '}')
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			out = append(out, '[')
			for i := range v.Len() {
				if i > 0 {
					out = append(out, ',')
				}
				out = appendValue(out, v.Index(i))
			}
			return append(out, ']')
		}
		if b, ok := v.Interface().([]byte); ok { // of an image, as text
			return strconv.AppendQuote(out, string(b))
		}
	}
	return append(out, wire.Marshal(v.Interface())...)
}

// FuzzDecode posts arbitrary bytes to path: the answer is a 4xx with a JSON body or the scripted reply, never a panic
// or a 5xx. The requests of the testdata cases are the seeds.
func FuzzDecode(f *testing.F, p wire.Protocol, path string) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ar.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		asked := false
		w := post(p, greeter(&asked), path, body)
		switch {
		case w.Code == http.StatusOK && asked:
		case w.Code >= 400 && w.Code < 500 && !asked && json.Valid(w.Body.Bytes()):
		default:
			t.Errorf("status %d, generated %v: %s", w.Code, asked, w.Body)
		}
	})
}

// Hello is the script of n short replies.
func Hello(n int) []Step {
	usage := &chat.Usage{Prompt: 3, Output: 1}
	steps := []Step{{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}}}
	for i := range n {
		steps = append(steps, Step{Event: chat.Event{Kind: chat.EventText, Choice: i, Text: "Hello"}},
			Step{Event: chat.Event{Kind: chat.EventFinish, Choice: i, Finish: chat.FinishStop, Usage: usage}})
	}
	return steps
}

// SlowStart returns the stream of a reply whose first event takes as long as prefill, in the time of a synctest bubble.
func SlowStart(t *testing.T, p wire.Protocol, path string, prefill time.Duration) (sse string) {
	synctest.Test(t, func(t *testing.T) {
		steps := Hello(1)
		steps[0].Before = func(context.Context) { time.Sleep(prefill) }
		sse = post(p, New(steps...), path, []byte(`{"stream":true,"input":"Hi","messages":[{"role":"user","content":"Hi"}]}`)).Body.String()
	})
	return sse
}

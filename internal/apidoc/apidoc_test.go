package apidoc_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"hearth/internal/apidoc"
	"hearth/internal/apidoc/apidoctest"
)

type object = apidoctest.Object

// TestDocument: every reference leads somewhere, every schema is referred to, no id of an operation is there twice, and every tag
// is one.
func TestDocument(t *testing.T) {
	text := apidoc.JSON(apidoctest.Version)
	doc := apidoctest.Read().Root
	if got := doc["info"].(object)["version"]; got != apidoctest.Version {
		t.Errorf("version %v", got)
	}
	referred := map[string]bool{}
	for _, m := range regexp.MustCompile(`"\$ref": ?"#/components/([^"]*)"`).FindAllSubmatch(text, -1) {
		referred[string(m[1])] = true
	}
	for kind, all := range doc["components"].(object) {
		for name := range all.(object) {
			if kind != "securitySchemes" && !referred[kind+"/"+name] {
				t.Errorf("nothing refers to %s/%s", kind, name)
			}
			delete(referred, kind+"/"+name)
		}
	}
	for ref := range referred {
		t.Errorf("there is no %s", ref)
	}
	tags := map[any]bool{}
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(object)["name"]] = true
	}
	ids := map[any]string{}
	for name, o := range apidoctest.Read().Operations() {
		if doc["paths"].(object)[o.Path] == nil { // one of x-also
			continue
		}
		id := o.Body["operationId"]
		if id == nil || ids[id] != "" {
			t.Errorf("%s: operationId %v is that of %q, too", name, id, ids[id])
		}
		ids[id] = name
		for _, tag := range o.Body["tags"].([]any) {
			if !tags[tag] {
				t.Errorf("%s: there is no tag %v", name, tag)
			}
		}
	}
}

// TestExamples: those of bodies are as their schemas have it.
func TestExamples(t *testing.T) {
	n := 0
	for name, o := range apidoctest.Read().Operations() {
		if body, ok := o.Body["requestBody"].(object); ok {
			example := body["content"].(object)["application/json"].(object)["example"]
			if example == nil {
				t.Errorf("%s: the request has no example", name)
			}
			o.Request(t, marshal(t, example))
		}
		for code, response := range o.Body["responses"].(object) {
			content, _ := response.(object)["content"].(object)
			media, _ := content["application/json"].(object)
			if status, err := strconv.Atoi(code); err == nil && media["example"] != nil {
				n++
				o.Reply(t, status, "application/json", marshal(t, media["example"]))
			}
		}
	}
	for name, r := range apidoctest.Read().Root["components"].(object)["responses"].(object) {
		media := r.(object)["content"].(object)["application/json"].(object)
		of := strings.TrimPrefix(media["schema"].(object)["$ref"].(string), "#/components/schemas/")
		if media["example"] == nil {
			t.Errorf("%s has no example", name)
		}
		apidoctest.Read().Value(t, of, marshal(t, media["example"]))
	}
	if n == 0 {
		t.Error("no reply has an example")
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// paths are where the requests of the protocols' cases go.
var paths = map[string]string{"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "responses": "/v1/responses"}

// protocols are those that there are.
func protocols(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../wire/*/names.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if name == "wiretest" { // no protocol
			continue
		}
		if paths[name] == "" {
			t.Errorf("paths does not say where requests of %s go", name)
			continue
		}
		all = append(all, name)
	}
	if len(all) != len(paths) {
		t.Errorf("there are %v", all)
	}
	return all
}

// TestCases holds the document to the cases of the protocols: the requests that were taken, and all replies and events.
func TestCases(t *testing.T) {
	for _, protocol := range protocols(t) {
		o := apidoctest.Read().Operations()["POST "+paths[protocol]]
		files, err := filepath.Glob("../wire/" + protocol + "/testdata/*.txtar")
		if err != nil || len(files) == 0 {
			t.Fatalf("no cases of %s: %v", protocol, err)
		}
		taken := 0
		for _, file := range files {
			t.Run(protocol+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				ar, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				in := map[string][]byte{}
				for _, f := range ar.Files {
					in[f.Name] = f.Data
				}
				if in["chat"] != nil { // it was decoded
					taken++
					o.Request(t, in["request.json"])
				}
				reply(t, o, in["response.json"], "application/json")
				reply(t, o, in["response.sse"], "text/event-stream")
			})
		}
		if taken == 0 {
			t.Errorf("no request of %s was taken", protocol)
		}
	}
}

// reply checks a reply behind its status line. What is refused before it begins is a document, also where a stream was asked for.
func reply(t *testing.T, o *apidoctest.Operation, text []byte, kind string) {
	t.Helper()
	head, body, _ := bytes.Cut(text, []byte("\n"))
	status, err := strconv.Atoi(strings.TrimPrefix(string(head), "HTTP "))
	if err != nil {
		t.Fatalf("no reply: %.100q", text)
	}
	if status != 200 {
		kind = "application/json"
	}
	if kind == "text/event-stream" && len(apidoctest.Events(body)) == 0 {
		t.Error("the stream has no events")
	}
	o.Reply(t, status, kind, body)
}

// TestFields: what requests are asked for, as the protocols declare it, is in the document.
func TestFields(t *testing.T) {
	text := string(apidoc.JSON(apidoctest.Version))
	for _, protocol := range protocols(t) {
		source, err := os.ReadFile("../wire/" + protocol + "/names.go")
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`"([a-z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)
		for _, m := range names {
			if !strings.Contains(text, `"`+m[1]+`":{`) {
				t.Errorf("%s reads %s, of which the document says nothing", protocol, m[1])
			}
		}
		if len(names) < 20 {
			t.Errorf("%s declares %d names", protocol, len(names))
		}
	}
}

// TestFlags: those that the document names are there.
func TestFlags(t *testing.T) {
	knobs, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`(--[a-z-]+)").FindAllSubmatch(apidoc.JSON(apidoctest.Version), -1)
	if len(found) == 0 {
		t.Error("no flag was found")
	}
	for _, m := range found {
		if !bytes.Contains(knobs, m[1]) {
			t.Errorf("there is no flag %s", m[1])
		}
	}
}

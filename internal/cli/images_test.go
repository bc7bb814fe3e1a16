package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	imagepng "image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hearth/internal/config"
	"hearth/internal/server"
	"hearth/internal/vision/visiontest"
)

// viewing is a way to ask about a picture: its body for a data URL, or for what has that in base64.
type viewing struct {
	name, path, count string
	body              func(image string) string
}

const (
	lookAt     = "Look at it with care, and say what is there, what is beside it, and what is behind it; then say what is not there, and why you think so."
	imageMedia = "image/png"
)

// viewings are the places of images on all APIs: of the user's in the last turn, in one before, and in the result of a tool.
func viewings() []viewing {
	block := func(data string) string {
		return `{"type": "image", "source": {"type": "base64", "media_type": "` + imageMedia + `", "data": "` + data + `"}}`
	}
	part := func(data string) string {
		return `{"type": "image_url", "image_url": {"url": "data:` + imageMedia + `;base64,` + data + `", "detail": "high"}}`
	}
	input := func(data string) string {
		return `{"type": "input_image", "image_url": "data:` + imageMedia + `;base64,` + data + `", "detail": "auto"}`
	}
	text := `{"type": "text", "text": "` + lookAt + `"}`
	inputText := `{"type": "input_text", "text": "` + lookAt + `"}`
	messages := func(list string) string {
		return `{"max_tokens": 6, "temperature": 0, "tools": [{"name": "Read", "input_schema": {"type": "object"}}], "messages": [` + list + `]}`
	}
	chats := func(list string) string {
		return `{"max_tokens": 6, "temperature": 0, "logprobs": true, "stream_options": {"include_usage": true}, "messages": [` + list + `]}`
	}
	responses := func(list string) string {
		return `{"max_output_tokens": 6, "temperature": 0, "include": ["message.output_text.logprobs"], "store": false, "input": [` + list + `]}`
	}
	return []viewing{
		{"messages", "/v1/messages", "/v1/messages/count_tokens", func(data string) string {
			return messages(`{"role": "user", "content": [` + block(data) + `, ` + text + `]}`)
		}},
		{"messages, history", "/v1/messages", "/v1/messages/count_tokens", func(data string) string {
			return messages(`{"role": "user", "content": [` + text + `, ` + block(data) + `]}, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}`)
		}},
		{"messages, tool", "/v1/messages", "/v1/messages/count_tokens", func(data string) string {
			return messages(`{"role": "user", "content": "Read a.png"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "a.png"}}]},
				{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [` + block(data) + `, ` + text + `]}]}`)
		}},
		{"chat", "/v1/chat/completions", "", func(data string) string {
			return chats(`{"role": "user", "content": [` + part(data) + `, ` + text + `]}`)
		}},
		{"chat, azure, history", "/openai/deployments/any/chat/completions", "", func(data string) string {
			return chats(`{"role": "user", "content": [` + text + `, ` + part(data) + `]}, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}`)
		}},
		{"chat, tool", "/v1/chat/completions", "", func(data string) string {
			return chats(`{"role": "user", "content": "Read a.png"}, {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
				{"role": "tool", "tool_call_id": "t1", "content": [` + part(data) + `, ` + text + `]}`)
		}},
		{"responses", "/v1/responses", "/v1/responses/input_tokens", func(data string) string {
			return responses(`{"role": "user", "content": [` + input(data) + `, ` + inputText + `]}`)
		}},
		{"responses, history", "/openai/v1/responses", "/openai/v1/responses/input_tokens", func(data string) string {
			return responses(`{"role": "user", "content": [` + inputText + `, ` + input(data) + `]}, {"role": "assistant", "content": "A cat."}, {"role": "user", "content": "Sure?"}`)
		}},
		{"responses, tool", "/v1/responses", "/v1/responses/input_tokens", func(data string) string {
			return responses(`{"role": "user", "content": "Read a.png"}, {"type": "function_call", "call_id": "t1", "name": "Read", "arguments": "{}"},
				{"type": "function_call_output", "call_id": "t1", "output": [` + input(data) + `, ` + inputText + `]}`)
		}},
	}
}

// viewed is what came of a request: all that it says, with the chances of its tokens where the API tells them, and its usage.
type viewed struct {
	said           string
	prompt, cached int
}

// look reads a reply, streamed or not.
func look(t *testing.T, reply []byte) (v viewed) {
	t.Helper()
	var said, logprobs strings.Builder // apart: tokens may leave together
	var walk func(key string, x any)
	walk = func(key string, x any) {
		switch x := x.(type) {
		case map[string]any:
			number := func(name string) int { n, _ := x[name].(float64); return int(n) }
			if n := number("input_tokens") + number("prompt_tokens"); n > 0 && (v.prompt == 0 || key == "usage") {
				v.prompt = n + number("cache_read_input_tokens") + number("cache_creation_input_tokens")
				v.cached = number("cache_read_input_tokens")
			}
			for _, name := range []string{"text", "content", "delta", "message", "choices", "output", "logprobs", "logprob", "usage", "response", "input_tokens_details", "prompt_tokens_details", "cached_tokens"} {
				if y, ok := x[name]; ok {
					walk(name, y)
				}
			}
		case []any:
			for _, y := range x {
				walk(key, y)
			}
		case string:
			said.WriteString(x)
		case float64:
			if key == "logprob" {
				fmt.Fprintf(&logprobs, " %v ", x)
			} else if key == "cached_tokens" {
				v.cached = int(x)
			}
		}
	}
	for line := range bytes.Lines(reply) {
		data, streamed := bytes.CutPrefix(line, []byte("data: "))
		if !streamed && !bytes.HasPrefix(line, []byte("{")) || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue
		}
		var x any
		if err := json.Unmarshal(data, &x); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		walk("", x)
	}
	v.said = said.String() + logprobs.String()
	return v
}

// do posts a body, with stream added if that is wanted.
func (p *process) post(t *testing.T, path, body string, stream bool) (int, []byte) {
	t.Helper()
	if stream {
		body = body[:len(body)-1] + `, "stream": true}`
	}
	return p.get(t, http.MethodPost, path, body)
}

func (p *process) get(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.Bytes()
}

// images are the counters of /v1/status.
func (p *process) images(t *testing.T) server.ImageStatus {
	t.Helper()
	var st server.Status
	if _, b := p.get(t, http.MethodGet, "/v1/status", ""); json.Unmarshal(b, &st) != nil {
		t.Fatalf("%s", b)
	}
	if st.Images == nil {
		return server.ImageStatus{}
	}
	return *st.Images
}

// TestSeeing: on every API, streamed or not, in the last turn, in history and in results of tools, a reply depends on the picture
// and on nothing else; what is counted is what is used; a picture is decoded and the tower runs over it once, and after a restart
// only where the end of a prompt filled no page.
func TestSeeing(t *testing.T) {
	folder, cache := visiontest.Folder(t, "qwen3_vl"), filepath.Join(t.TempDir(), "cache")
	run := func() *process {
		return start(t, nil, folder, "--prefix-cache-dir", cache, "--prefix-cache-disk-mb", "100", "--cache-memory-mb", "64")
	}
	p := run()
	data := [2]string{string(visiontest.Base64(t, 60, 40, 1)), string(visiontest.Base64(t, 60, 40, 2))}
	ask := func(v *viewing, image string, stream bool) viewed {
		t.Helper()
		code, b := p.post(t, v.path, v.body(image), stream)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", v.name, code, b)
		}
		return look(t, b)
	}
	all := viewings()
	first := map[string]viewed{}
	prepared := int64(0)
	for i := range all {
		v := &all[i]
		for _, stream := range []bool{false, true} {
			one, other := ask(v, data[0], stream), ask(v, data[1], stream)
			again := ask(v, data[0], stream)
			prepared += 3
			if one.said == "" || one.said == other.said || one.said != again.said {
				t.Errorf("%s, stream %t: one picture %q, then %q; another %q", v.name, stream, one.said, again.said, other.said)
			}
			if one.prompt == 0 || one.prompt != other.prompt || again.cached <= one.prompt/2 {
				t.Errorf("%s, stream %t: %+v, another %+v, again %+v", v.name, stream, one, other, again)
			}
			first[fmt.Sprint(v.name, stream)] = one
			if stream || v.count == "" {
				continue
			}
			code, b := p.post(t, v.count, v.body(data[0]), false)
			if got := look(t, b); code != http.StatusOK || got.prompt != one.prompt {
				t.Errorf("%s: %d tokens in the prompt, counted %s", v.name, one.prompt, b)
			}
		}
	}
	if got := p.images(t); got.Encoded != 2 || got.Decoded != 2 || got.Prepared != prepared || got.Bytes == 0 || got.Refused != nil {
		t.Errorf("%+v, want 2 pictures decoded and encoded, %d prepared", got, prepared)
	}
	if _, b := p.get(t, http.MethodGet, "/v1/models", ""); !bytes.Contains(b, []byte(`"vision"`)) {
		t.Errorf("the model is not said to see: %s", b)
	}
	stop(t, p)
	p = run()
	for i := range all {
		v := &all[i]
		was := first[fmt.Sprint(v.name, false)]
		if got := ask(v, data[0], false); got.said != was.said || got.prompt != was.prompt || got.cached == 0 {
			t.Errorf("%s after a restart: %+v, was %+v", v.name, got, was)
		}
	}
	if got := p.images(t); got.Encoded > 1 || got.Decoded != got.Encoded || got.Prepared != int64(len(all)) {
		t.Errorf("after a restart: %+v", got)
	}
}

// TestTurnsDecode: over the turns of a conversation, on every API, each picture is decoded once, and the tower runs over it once,
// whether the client sends the conversation again or names the turn before, and after a restart, too. What was forgotten is
// decoded again.
func TestTurnsDecode(t *testing.T) {
	dir := t.TempDir()
	args := []string{visiontest.Folder(t, "qwen3_vl"), "--store-dir", filepath.Join(dir, "store"), "--prefix-cache-dir", filepath.Join(dir, "cache"),
		"--prefix-cache-disk-mb", "100", "--cache-memory-mb", "64"}
	p := start(t, nil, args...)
	var before server.ImageStatus
	turn := func(api, path, body string, decoded, encoded int64) (id string) {
		t.Helper()
		code, b := p.post(t, path, body, false)
		var reply struct{ ID string }
		if err := json.Unmarshal(b, &reply); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %s", api, code, b)
		}
		now := p.images(t)
		if got := [2]int64{now.Decoded - before.Decoded, now.Encoded - before.Encoded}; got != [2]int64{decoded, encoded} {
			t.Errorf("%s: %d pictures decoded and %d encoded in a turn, want %d and %d", api, got[0], got[1], decoded, encoded)
		}
		before = now
		return reply.ID
	}
	picture := func(seed uint64, form string) string {
		return strings.ReplaceAll(form, "DATA", string(visiontest.Base64(t, 120, 80, seed)))
	}
	const said = `{"role": "assistant", "content": "A cat."}`
	last := map[string]string{}
	forms := map[string]struct{ path, image string }{
		"messages": {"/v1/messages", `{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "DATA"}}]}`},
		"chat":     {"/v1/chat/completions", `{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,DATA"}}]}`},
	}
	for api, form := range forms {
		body := func(list ...string) string {
			return `{"max_tokens": 4, "temperature": 0, "messages": [` + strings.Join(list, ", ") + `]}`
		}
		seed := 10 * uint64(len(api))
		one, two := picture(seed, form.image), picture(seed+1, form.image)
		turn(api, form.path, body(one), 1, 1)
		turn(api, form.path, body(one, said, two), 1, 1)
		last[api] = body(one, said, two, said, `{"role": "user", "content": "`+strings.Repeat(lookAt, 2)+`"}`)
		turn(api, form.path, last[api], 0, 0)
	}
	const input = `{"max_output_tokens": 4, "temperature": 0, "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,DATA"}]}]}`
	id := turn("responses", "/v1/responses", picture(1, input), 1, 1)
	goOn := func(body string) string { return `{"previous_response_id": "` + id + `", ` + body[1:] }
	id = turn("responses", "/v1/responses", goOn(picture(2, input)), 1, 1)
	sure := goOn(`{"max_output_tokens": 4, "temperature": 0, "input": "` + strings.Repeat(lookAt, 2) + `"}`)
	turn("responses", "/v1/responses", sure, 0, 0)
	stop(t, p)
	p, before = start(t, nil, args...), server.ImageStatus{}
	for api, form := range forms {
		turn(api+", after a restart", form.path, last[api], 0, 0)
	}
	turn("responses, after a restart", "/v1/responses", sure, 0, 0)
	if code, b := p.get(t, http.MethodDelete, "/v1/cache", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, b)
	}
	turn("forgotten", "/v1/responses", sure, 2, 2)
}

// TestScriptSees: with a script in the model's place pictures are prepared all the same, and the log tells sizes and digests:
// those of what transformers' processor makes of the file, wherever it stands.
func TestScriptSees(t *testing.T) {
	known := visiontest.Reference(t)
	script := filepath.Join(t.TempDir(), "script.jsonl")
	file, err := os.ReadFile(known.File)
	if err == nil {
		err = os.WriteFile(script, []byte(`{"raw": "I have seen it."}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, known.Folder, "--script", script, "--log-level", "debug")
	all := viewings()
	for i := range all {
		v := &all[i]
		if code, b := p.post(t, v.path, v.body(base64.StdEncoding.EncodeToString(file)), false); code != http.StatusOK {
			t.Errorf("%s: %d %s", v.name, code, b)
		}
	}
	stop(t, p)
	seen := regexp.MustCompile(`seen="\[(.*)cached=\d+(.*)\]"`).FindAllStringSubmatch(p.stderr.String(), -1)
	if len(seen) != len(all) {
		t.Fatalf("the log tells of %d pictures, want %d:\n%s", len(seen), len(all), p.stderr)
	}
	for i, m := range seen {
		if got := m[1] + "cached=0" + m[2]; got != known.Seen {
			t.Errorf("%s: seen %q, want %q", all[i].name, got, known.Seen)
		}
	}
}

// TestDetail: an image at which a client looks with low detail takes fewer tokens.
func TestDetail(t *testing.T) {
	h := folderServer(t, visiontest.Reference(t).Folder, func(cfg *config.Config) { cfg.CacheMemoryMB = 64 })
	data := base64.StdEncoding.EncodeToString(visiontest.PNG(t, 900, 700, 1))
	tokens := func(detail string) int {
		w := postTo(h, "/v1/responses/input_tokens", `{"input": [{"role": "user", "content": [{"type": "input_image", "detail": "`+detail+
			`", "image_url": "data:image/png;base64,`+data+`"}]}]}`)
		var got struct {
			Tokens int `json:"input_tokens"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", detail, w.Code, w.Body)
		}
		return got.Tokens
	}
	auto, high, low := tokens("auto"), tokens("high"), tokens("low")
	if squares := [2]int{28 * 22, 18 * 14}; auto != high || high-low != squares[0]-squares[1] {
		t.Errorf("%d tokens, %d with high and %d with low detail", auto, high, low)
	}
}

// seeingServer serves a model that sees.
func seeingServer(t *testing.T, set func(cfg *config.Config)) http.Handler {
	t.Helper()
	return folderServer(t, visiontest.Folder(t, "qwen3_vl"), func(cfg *config.Config) {
		cfg.CacheMemoryMB = 64
		set(cfg)
	})
}

func postTo(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestBrokenImages: what is no image, or too much of one, is refused by its name and with what to do, on every API and before the
// model runs; in the result of a tool it is a note. The bytes say what a file is, whatever the client does.
func TestBrokenImages(t *testing.T) {
	png := visiontest.PNG(t, 60, 40, 1)
	header := func(w, h uint32) []byte {
		b := bytes.Clone(png)
		b[16], b[17], b[18], b[19] = byte(w>>24), byte(w>>16), byte(w>>8), byte(w)
		b[20], b[21], b[22], b[23] = byte(h>>24), byte(h>>16), byte(h>>8), byte(h)
		return b
	}
	flat := func(w, h int) []byte {
		var b bytes.Buffer
		if err := imagepng.Encode(&b, image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	box := func(brand string) []byte {
		return []byte("\x00\x00\x00\x18ftyp" + brand + "\x00\x00\x00\x00mif1" + brand + "0123456789")
	}
	h := seeingServer(t, func(cfg *config.Config) {
		cfg.MaxImageBytes, cfg.MaxImagePixels, cfg.MaxImages = 64<<10, 1<<20, 3
	})
	for name, c := range map[string]struct {
		file []byte
		says []string
	}{
		"HEIC":              {box("heic"), []string{"HEIC", "PNG"}},
		"AVIF":              {box("avif"), []string{"AVIF", "PNG"}},
		"video":             {box("isom"), []string{"video"}},
		"SVG":               {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`), []string{"SVG", "PNG"}},
		"PDF":               {[]byte("%PDF-1.7 and so on, and so on"), []string{"PDF"}},
		"no image":          {[]byte("what is this? it is no image of any kind"), []string{"image"}},
		"nothing":           {nil, []string{"image"}},
		"truncated header":  {png[:20], []string{"image"}},
		"truncated":         {png[:len(png)/2], []string{"image"}},
		"bomb":              {flat(1100, 1100), []string{"1100 by 1100", "1048576"}},
		"long":              {flat(3000, 2), []string{"1000"}},
		"too many bytes":    {append(bytes.Clone(png), make([]byte, 64<<10)...), []string{"65536"}},
		"no width":          {header(0, 40), []string{"image"}},
		"more than is sent": {header(1000, 1000), []string{"image"}},
	} {
		data := base64.StdEncoding.EncodeToString(c.file)
		for _, v := range viewings() {
			for _, stream := range []string{"", `, "stream": true}`} {
				body := v.body(data)
				if stream != "" {
					body = body[:len(body)-1] + stream
				}
				w := postTo(h, v.path, body)
				if strings.HasSuffix(v.name, "tool") { // nobody chose to send it, and it stays in the conversation
					if w.Code != http.StatusOK {
						t.Errorf("%s, %s: %d %s", name, v.name, w.Code, w.Body)
					}
					continue
				}
				if w.Code != http.StatusBadRequest {
					t.Errorf("%s, %s: %d %s", name, v.name, w.Code, w.Body)
				}
				for _, word := range c.says {
					if !strings.Contains(w.Body.String(), word) {
						t.Errorf("%s, %s: no %q in %s", name, v.name, word, w.Body)
					}
				}
			}
		}
	}
	data := base64.StdEncoding.EncodeToString(png)
	for _, v := range viewings() {
		for lie, want := range map[string]int{"image/jpeg": 200, "image/unheard.of": 200} {
			if w := postTo(h, v.path, strings.ReplaceAll(v.body(data), imageMedia, lie)); w.Code != want {
				t.Errorf("%s, called %s: %d %s", v.name, lie, w.Code, w.Body)
			}
		}
		if v.count == "" {
			continue
		}
		if w := postTo(h, v.count, v.body(base64.StdEncoding.EncodeToString(flat(1100, 1100)))); (w.Code == http.StatusBadRequest) == strings.HasSuffix(v.name, "tool") {
			t.Errorf("%s, a bomb is counted: %d %s", v.name, w.Code, w.Body)
		}
	}
	block := `{"type": "image", "source": {"type": "base64", "data": "` + data + `"}}`
	many := func(n int) string {
		return `{"max_tokens": 1, "messages": [{"role": "user", "content": [` + strings.TrimSuffix(strings.Repeat(block+",", n), ",") + `]}]}`
	}
	if w := postTo(h, "/v1/messages", many(3)); w.Code != http.StatusOK {
		t.Errorf("3 images: %d %s", w.Code, w.Body)
	}
	if w := postTo(h, "/v1/messages", many(4)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "there are 4 images, the limit is 3") {
		t.Errorf("4 images: %d %s", w.Code, w.Body)
	}
}

// TestImageURLs: a URL is followed where the operator says so alone, by models that see.
func TestImageURLs(t *testing.T) {
	const message = `{"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:1/a.png"}}]}]}`
	const chats = `{"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/a.png"}}]}]}`
	const responses = `{"max_output_tokens": 1, "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://127.0.0.1:1/a.png"}]}]}`
	for _, hosts := range [][]string{nil, {"*"}} {
		h := seeingServer(t, func(cfg *config.Config) { cfg.ImageURLs = hosts })
		want := "a server that is started with --image-urls fetches it"
		if hosts != nil {
			want = `the image at \"127.0.0.1:1\" cannot be fetched: it is not at a public address; send the image as base64`
		}
		for path, body := range map[string]string{"/v1/messages": message, "/v1/messages/count_tokens": message, "/v1/chat/completions": chats, "/v1/responses": responses, "/openai/v1/responses": responses} {
			if w := postTo(h, path, body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), "content") {
				t.Errorf("%v, %s: %d %s", hosts, path, w.Code, w.Body)
			}
		}
		const result = `{"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:1/a.png"}}]}]}]}`
		if w := postTo(h, "/v1/messages", result); w.Code != http.StatusOK {
			t.Errorf("%v, in a result: %d %s", hosts, w.Code, w.Body)
		}
	}
}

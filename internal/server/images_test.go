package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"hearth/internal/chat"
	"hearth/internal/metrics"
	"hearth/internal/wire/wiretest"
)

// TestImages: what is counted and logged of images, and that it is nothing of what is in them.
func TestImages(t *testing.T) {
	var log bytes.Buffer
	m := wiretest.New()
	m.Desc.Sees = true
	var refuse error
	m.Script = func(*chat.Request) ([]wiretest.Step, error) {
		if refuse != nil {
			return nil, refuse
		}
		u := &chat.Usage{Prompt: 300, Hit: "prefix", Decisions: []chat.Decision{{What: "parser", Value: "x", Origin: "y"}},
			Images: []chat.Seen{{Width: 640, Height: 480, Prepared: [][2]int{{512, 512}, {512, 512}, {512, 384}}, Positions: 256, Digest: [32]byte{0xab, 0xcd, 1, 2, 3}, Cached: 256}}}
		steps := append([]wiretest.Step{{Event: chat.Event{Kind: chat.EventStart, Usage: u}}}, wiretest.Hello(1)[1:]...)
		steps[2].Event.Usage = &chat.Usage{Prompt: 300, Output: 1, Hit: "prefix"}
		return steps, nil
	}
	o := options()
	f := &figures{}
	o.Models, o.Metrics, o.Monitor = m, metrics.New(metrics.Options{}), f
	o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := New(o)
	const body = `{"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]}`
	status := func() (st struct {
		Images *ImageStatus
		Bounds map[string]int64 `json:"bounds_met"`
	}) {
		if err := json.Unmarshal(do(s, "GET", "/v1/status", "").Body.Bytes(), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := status(); st.Images != nil {
		t.Errorf("before the first: %+v", st.Images)
	}
	do(s, "POST", "/v1/messages", body)
	refuse = &chat.Error{Kind: chat.Invalid, Code: "image_type", Msg: "the image is a HEIC file: convert it"}
	do(s, "POST", "/v1/messages", body)
	f.status.Images = &ImageStatus{Encoded: 1, Reused: 2, Bytes: 3}
	if st := status(); st.Images == nil || st.Images.Encoded != 1 || st.Images.Reused != 2 || st.Images.Bytes != 3 || st.Images.Prepared != 1 || st.Images.Refused["image_type"] != 1 || st.Bounds != nil {
		t.Errorf("afterwards: %+v", st)
	}
	all := records(t, log.Bytes())
	if asked := record(all, "asked"); asked["images"] != 1.0 || asked["image_bytes"] != 3.0 {
		t.Errorf("asked %v", asked)
	}
	decided := record(all, "decided")
	if seen, _ := decided["seen"].([]any); decided["images"] != 1.0 || decided["image_tokens"] != 256.0 || len(seen) != 1 || seen[0] != "640x480 prepared=2*512x512+512x384 tokens=256 cached=256 digest=abcd010203"+strings.Repeat("0", 54) {
		t.Errorf("decided %v", decided)
	}
	if strings.Contains(log.String(), "AAAA") {
		t.Errorf("bytes of the image are in the log: %s", &log)
	}
	scraped := do(s, "GET", "/metrics", "").Body.String()
	for _, line := range []string{`hearth_prompt_images_total{model="test-model"} 1`, `hearth_requests_refused_total{reason="image_type"} 1`} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

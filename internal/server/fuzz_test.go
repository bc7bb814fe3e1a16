package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hearth/internal/chat"
)

// FuzzManage: a body of the routes under /hearth/ is refused as the caller's fault, in few words, or is JSON
// with the name of a model in it.
func FuzzManage(f *testing.F) {
	for _, s := range []string{`{"model":"org/model"}`, `{"model":"m","keep_alive":"5m"}`, `{"model":"m","keep_alive":-1}`, `{"model":"m","keep_alive":1e300}`,
		`{"model":"","keep_alive":0}`, `{"MODEL":"m"}`, `{"model":"m","more":1}`, `{"model":["m"]}`, `{"model":"m","keep_alive":{"a":[1]}}`, `null`, `[]`, `{"model":"m"}x`, ``,
		"{\"model\":\"\\ud800\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/hearth/models/load", strings.NewReader(string(body)))
		var q struct {
			Model string
			Keep  json.RawMessage `json:"keep_alive"`
		}
		err := readManage(httptest.NewRecorder(), r, &q, "model")
		if err == nil {
			_, err = readKeep(q.Keep)
		}
		var bad *chat.Error
		switch {
		case err == nil && (q.Model == "" || !json.Valid(body)):
			t.Errorf("%q gives the model %q", body, q.Model)
		case err != nil && (!errors.As(err, &bad) || bad.Kind != chat.Invalid && bad.Kind != chat.TooLarge || len(bad.Error()) > 1000):
			t.Errorf("%q: %v", body, err)
		}
	})
}

// FuzzCredential: what stands in the headers that keys come in is a key without blanks at its ends, or none, and one that is sent
// as x-api-key is that.
func FuzzCredential(f *testing.F) {
	for _, s := range []string{"Bearer key", "bearer  key ", "Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "", "Bearer\tkey", "bEARER Bearer key"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := credential(http.Header{"Authorization": {s}})
		if got != strings.TrimSpace(got) || !strings.Contains(s, got) || got != "" && !strings.EqualFold(s[:7], "Bearer ") {
			t.Errorf("%q has the key %q", s, got)
		}
		if s != "" && credential(http.Header{"Authorization": {"Bearer other"}, "Api-Key": {"another"}, "X-Api-Key": {s}}) != s {
			t.Errorf("x-api-key %q is not what counts", s)
		}
	})
}

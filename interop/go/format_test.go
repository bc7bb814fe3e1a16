package interop

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// TestFormats: a schema that need not be kept is answered, with word of whether it was; one that must be is refused with its
// place.
func TestFormats(t *testing.T) {
	srv := httptest.NewServer(newScripted())
	defer srv.Close()
	for name, connect := range map[string]func(url, key string) sdk{"openai3": newOpenAI3, "azure3": newAzure3} {
		t.Run(name, func(t *testing.T) {
			o := connect(srv.URL, scriptedKey).(openai3)
			p := o.params(call{model: "test-model", prompt: "as JSON"})
			schema := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Schema: map[string]any{"type": "object"}}
			ask := func() (*http.Response, error) {
				p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{JSONSchema: schema}}
				var res *http.Response
				_, err := o.client.Chat.Completions.New(t.Context(), p, option.WithResponseInto(&res))
				return res, err
			}
			if res, err := ask(); err != nil || res.Header.Get("x-hearth-schema") != "unmet" {
				t.Errorf("%+v, %v", res, err)
			}
			schema.Strict = openai.Bool(true)
			_, err := ask()
			var e *openai.Error
			if !errors.As(err, &e) || e.StatusCode != 400 || e.Param != "response_format.json_schema.strict" {
				t.Errorf("%v", err)
			}
		})
	}
}

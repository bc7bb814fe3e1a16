package interop

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// TestFormats: a schema is answered, with word of whether the reply is what was asked for where nothing holds it to that.
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
			if res, err := ask(); err != nil || res.Header.Get("x-hearth-schema") != "unmet" { // a script says what it says
				t.Errorf("strict: %+v, %v", res, err)
			}
		})
	}
}

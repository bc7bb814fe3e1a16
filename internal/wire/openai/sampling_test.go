package openai

import (
	"fmt"
	"strings"
	"testing"
)

// TestFirstWrong: of several sampling parameters that are wrong, a client is told of the first in an order that stays.
func TestFirstWrong(t *testing.T) {
	order := strings.Fields("temperature top_p min_p top_k repetition_penalty presence_penalty frequency_penalty xtc_probability xtc_threshold seed")
	body := ""
	for i := len(order) - 1; i >= 0; i-- {
		body += fmt.Sprintf(`%q: "x", `, order[i])
		if _, err := Decode([]byte(`{` + body + `"messages": [{"role": "user", "content": "Hi"}]}`)); err == nil || err.Param != order[i] {
			t.Errorf("{%s…: error %v, want one about %s", body, err, order[i])
		}
	}
}

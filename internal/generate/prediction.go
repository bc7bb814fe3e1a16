package generate

import (
	"fmt"

	"hearth/internal/chat"
	"hearth/internal/tokenizer"
)

// predict gives the tokens of what a client predicts of the text, or why there are none. One that is longer than any reply is not
// used, and not encoded where its bytes say so, nor where nothing is drafted.
func predict(r *chat.Request, cfg *Config) (ids []int32, ignored string) {
	if r.Prediction == nil {
		return nil, ""
	}
	text, context := *r.Prediction, cfg.Engine.Context()
	if text == "" {
		return nil, "prediction: it has no text"
	}
	if cfg.Undrafted {
		return nil, "prediction: nothing is drafted here, see --speculation"
	}
	if len(text) <= longestPredicted*context {
		ids = cfg.Tokenizer.Encode(text, tokenizer.EncodeOptions{})
	}
	if len(ids) == 0 || len(ids) > context {
		return nil, fmt.Sprintf("prediction: it is longer than the context of %d tokens", context)
	}
	return ids, ""
}

// longestPredicted is how many bytes of a prediction are encoded for each token of the context.
const longestPredicted = 16

package tokenizer

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"
)

// TestPair reads what the post-processors of published models make of two texts.
func TestPair(t *testing.T) {
	const bert = `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
"pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},{"SpecialToken":{"id":"[SEP]","type_id":1}}],
"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[1],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[2],"tokens":["[SEP]"]}}}`
	single := `"single":[{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{}`
	first, second := PairPiece{Text: 1}, PairPiece{Text: 2}
	typed := []PairPiece{{ID: 1}, first, {ID: 2}, {Text: 2, Type: 1}, {ID: 2, Type: 1}}
	for name, c := range map[string]struct {
		post string
		want []PairPiece
	}{
		"none":          {`null`, nil},
		"template":      {bert, typed},
		"bert":          {`{"type":"BertProcessing","cls":["[CLS]",1],"sep":["[SEP]",2]}`, typed},
		"roberta":       {`{"type":"RobertaProcessing","cls":["[CLS]",1],"sep":["[SEP]",2]}`, []PairPiece{{ID: 1}, first, {ID: 2}, {ID: 2}, second, {ID: 2}}},
		"sequence":      {`{"type":"Sequence","processors":[{"type":"ByteLevel"},` + bert + `]}`, typed},
		"without":       {`{"type":"TemplateProcessing",` + single + `}`, nil},
		"one text only": {`{"type":"TemplateProcessing","pair":[{"Sequence":{"id":"A","type_id":0}}],` + single + `}`, nil},
		"bare":          {`{"type":"TemplateProcessing","pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],` + single + `}`, []PairPiece{first, second}},
	} {
		file := fmt.Sprintf(`{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":%s,"decoder":null,
"model":{"type":"WordLevel","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3},"unk_token":"[UNK]"}}`, c.post)
		tok, err := Load(fstest.MapFS{"tokenizer.json": {Data: []byte(file)}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := tok.Pair(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		before, after := tok.Around()
		if got := tok.Encode("a", EncodeOptions{AddSpecial: true}); len(got) != len(before)+1+len(after) {
			t.Errorf("%s: %v with %v before and %v after", name, got, before, after)
		}
	}
}

package vision

import "fmt"

// Places says what stands in a prompt for an image: what transformers' processor puts in the place of the mark that the chat
// template prints.
type Places struct {
	Mark  string   // of an image, that templates print: one token
	Soft  string   // token whose places the tower's rows take
	Needs []string // other tokens that a vocabulary has to have

	around func(p *Plan) []string
	parts  func(p *Plan) [][]Piece
}

// Around are the texts in front of, between and behind n parts of a picture. They are encoded with the text that they join.
func (s *Places) Around(p *Plan, n int) []string {
	if s.around == nil {
		return make([]string, n+1)
	}
	return s.around(p)
}

// Parts are what the picture's marks become, one or several: tokens by their text, and rows of tiles. A part begins and ends with
// tokens that are not joined to any text.
func (s *Places) Parts(p *Plan) [][]Piece { return s.parts(p) }

// Places is what stands for the processor's pictures.
func (p *Processor) Places() *Places { return placesOf[p.family] }

// Piece is a part of a part of an image: text, or so many rows of a tile, the next ones.
type Piece struct {
	Text string
	Tile int
	Rows int // 0: the piece is Text
	Line int // where not 0: Text stands after so many rows, but for the last
}

// placesOf has the families by the name of their processor.
var placesOf = map[string]*Places{
	"qwen_vl":  {Mark: "<|image_pad|>", Soft: "<|image_pad|>", parts: wholeTiles("", "")},
	"gemma3":   {Mark: "<start_of_image>", Soft: "<image_soft_token>", parts: wholeTiles("<start_of_image>", "<end_of_image>"), around: aroundCrops, Needs: []string{"<end_of_image>"}},
	"gemma4":   {Mark: "<|image|>", Soft: "<|image|>", parts: wholeTiles("<|image>", "<image|>"), Needs: []string{"<|image>", "<image|>"}},
	"pixtral":  {Mark: "[IMG]", Soft: "[IMG]", parts: lines, Needs: []string{"[IMG_BREAK]", "[IMG_END]"}},
	"lfm2_vl":  {Mark: "<image>", Soft: "<image>", parts: tilesThenThumbnail, Needs: []string{"<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"}},
	"idefics3": {Mark: "<image>", Soft: "<image>", parts: tilesThenGlobal, Needs: []string{"<fake_token_around_image>"}},
}

// wholeTiles has every tile by itself, between two tokens.
func wholeTiles(open, end string) func(p *Plan) [][]Piece {
	return func(p *Plan) [][]Piece {
		all := make([][]Piece, len(p.Tiles))
		for i, t := range p.Tiles {
			all[i] = []Piece{{Text: open}, {Tile: i, Rows: t.Positions}, {Text: end}}
		}
		return all
	}
}

// aroundCrops is Gemma3Processor's text, with what it says of crops where there are some.
func aroundCrops(p *Plan) []string {
	const line = "\n\n"
	if len(p.Tiles) == 1 {
		return []string{line, line}
	}
	all := []string{"Here is the original image " + line, line + " and here are some crops to help you see better " + line}
	for range len(p.Tiles) - 2 {
		all = append(all, line+" "+line)
	}
	return append(all, line)
}

// lines is PixtralProcessor's form: a token behind every line of rows, another behind the last.
func lines(p *Plan) [][]Piece {
	t := p.Tiles[0]
	cols := t.Columns
	return [][]Piece{{{Rows: t.Positions, Line: cols, Text: "[IMG_BREAK]"}, {Text: "[IMG_END]"}}}
}

// tilesThenThumbnail is Lfm2VlProcessor's form: each tile by its number, and the whole behind them.
func tilesThenThumbnail(p *Plan) [][]Piece {
	one := []Piece{{Text: "<|image_start|>"}}
	for i, t := range p.Tiles {
		switch n := p.Rows * p.Cols; {
		case i < n:
			one = append(one, Piece{Text: fmt.Sprintf("<|img_row_%d_col_%d|>", i/p.Cols+1, i%p.Cols+1)})
		case n > 0:
			one = append(one, Piece{Text: "<|img_thumbnail|>"})
		}
		one = append(one, Piece{Tile: i, Rows: t.Positions})
	}
	return [][]Piece{append(one, Piece{Text: "<|image_end|>"})}
}

// tilesThenGlobal is Idefics3Processor's form and SmolVLMProcessor's: lines of tiles by their numbers, and the whole behind them.
func tilesThenGlobal(p *Plan) [][]Piece {
	const fake = "<fake_token_around_image>"
	var one []Piece
	text := fake
	for i, t := range p.Tiles {
		if n := p.Rows * p.Cols; i < n {
			if i > 0 && i%p.Cols == 0 {
				text = "\n" + fake
			}
			text += fmt.Sprintf("<row_%d_col_%d>", i/p.Cols+1, i%p.Cols+1)
		} else {
			if n > 0 {
				text = "\n\n" + fake
			}
			text += "<global-img>"
		}
		one = append(one, Piece{Text: text}, Piece{Tile: i, Rows: t.Positions})
		text = fake
	}
	return [][]Piece{append(one, Piece{Text: text})}
}

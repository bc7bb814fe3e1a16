package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/regular"
	"hearth/internal/tokenizer"
)

func newDebugCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug",
		Short: "Look at one stage of a model: tokenizer, template, output parser, logits",
		Long: `The debug commands read one JSON value a line from stdin and write one a line to stdout. A line that cannot be
answered gives {"error": "..."} and the next line goes on, so the answers of a file have as many lines as the file has
values.`,
		Example: `  echo '"Hello"' | hearth debug tokenize --tokenizer MODEL/tokenizer.json
  echo '{"messages":[{"role":"user","content":"hi"}]}' | hearth debug render --template MODEL/chat_template.jinja
  echo '{"messages":[{"role":"user","content":"hi"}]}' | hearth debug render --model MODEL
  echo '{"text":"<tool_call>{\"name\":\"f\"}</tool_call>","tools":["f"]}' | hearth debug parse --family hermes
  echo '{"tokens":[1,2,3]}' | hearth debug logits --model MODEL`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenizeCmd(), newRenderCmd(), newParseCmd(), newLogitsCmd())
	return cmd
}

// eachLine answers every line of the command's input, counted from 1, with one line. Only trouble with the streams ends it
// early. Answers go out when the next line would have to be waited for: at once for a person or a program that talks back, and
// in large writes for a file.
func eachLine(cmd *cobra.Command, answer func(n int, line []byte) (any, error)) error {
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
	in := bufio.NewScanner(&flushing{cmd.InOrStdin(), out})
	in.Buffer(make([]byte, 1<<16), config.MaxLineBytes)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		v, err := answer(n, line)
		if err != nil {
			v = map[string]string{"error": err.Error()}
		}
		if err := enc.Encode(v); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read stdin: a line is longer than %d MiB", config.MaxLineBytes>>20)
	} else if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	return nil
}

// flushing writes out what is answered before it reads on.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f *flushing) Read(b []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, fmt.Errorf("write answer: %w", err)
	}
	return f.Reader.Read(b)
}

// decodeLine reads one JSON value of the wanted kind.
func decodeLine(line []byte, v any, want string) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("more than one value on the line")
		}
	}
	if err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	return nil
}

func newTokenizeCmd() *cobra.Command {
	var file string
	var decode, add, skip bool
	cmd := &cobra.Command{
		Use:   "tokenize --tokenizer FILE [--decode]",
		Short: "Turn strings into token ids, or back",
		Long: `Reads a JSON string a line and writes its token ids; with --decode reads ids and writes the string. Text of
special tokens becomes their ids. tokenizer_config.json beside FILE is read too if it is there.`,
		Example: `  echo '"Hello"' | hearth debug tokenize --tokenizer MODEL/tokenizer.json
  echo '[9707]' | hearth debug tokenize --tokenizer MODEL/tokenizer.json --decode`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := loadTokenizer(file)
			if err != nil {
				return err
			}
			return eachLine(cmd, func(_ int, line []byte) (any, error) {
				if decode {
					return decodeTokens(t, line, skip)
				}
				var text string
				if err := decodeLine(line, &text, "a string"); err != nil {
					return nil, err
				}
				return t.AppendEncode([]int32{}, text, tokenizer.EncodeOptions{AddSpecial: add, ParseSpecial: true})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "tokenizer", "", "tokenizer.json of the model (`FILE`)")
	f.BoolVar(&decode, "decode", false, "ids to strings")
	f.BoolVar(&add, "add-special-tokens", false, "add what the tokenizer puts around a text, such as the beginning of sequence")
	f.BoolVar(&skip, "skip-special-tokens", false, "with --decode: leave special tokens out")
	return required(cmd, "tokenizer")
}

func decodeTokens(t *tokenizer.Tokenizer, line []byte, skip bool) (any, error) {
	var ids []int32
	if err := decodeLine(line, &ids, "a list of token ids"); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if _, ok := t.Token(id); !ok {
			return nil, fmt.Errorf("token id %d is not in the vocabulary", id)
		}
	}
	return t.Decode(ids, skip), nil
}

// loadTokenizer reads a tokenizer.json as a model's is read, with the files beside it; a file of another name only with its
// tokenizer_config.json.
func loadTokenizer(file string) (*tokenizer.Tokenizer, error) {
	if filepath.Base(file) == "tokenizer.json" {
		t, err := tokenizer.Load(regular.Dir(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return t, nil
	}
	b, err := readFile(file)
	if err != nil {
		return nil, err
	}
	conf, err := regular.Read(filepath.Join(filepath.Dir(file), "tokenizer_config.json"), maxTokenizerBytes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	t, err := tokenizer.Parse(b, conf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// logitsTop is how many tokens of each position are listed.
const logitsTop = 20

// logitsAnswer is what debug logits says of one line: per position the likeliest token and the best few with logprobs.
type logitsAnswer struct {
	Argmax []int32    `json:"argmax"`
	Top    [][]ranked `json:"top"`
}

// ranked is written as [id, logprob].
type ranked struct {
	id      int32
	logprob float32
}

func (r ranked) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]any{r.id, r.logprob})
}

func newLogitsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logits --model DIR [--backend B] [--precision P]",
		Short: "Show what the model predicts at every position",
		Long: `Reads {"tokens":[...]} a line and writes {"argmax":[...],"top":[[[id,logprob], ...20], ...]} with one entry for every
position. The folder needs no tokenizer.`,
		Example: `  echo '{"tokens":[1,2,3]}' | hearth debug logits --model MODEL --precision float32`,
		Args:    console.NoArgs,
	}
	cfg := settings(cmd, config.Model, config.Run)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		src, err := findModel(cfg)
		if err != nil {
			return err
		}
		w, err := catalog.OpenWeights(src, cfg, backends())
		if err != nil {
			return err
		}
		defer w.Close()
		return eachLine(cmd, func(_ int, line []byte) (any, error) { return logits(cmd.Context(), w, line) })
	}
	return cmd
}

func logits(ctx context.Context, w *catalog.Weights, line []byte) (any, error) {
	var q struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := decodeLine(line, &q, `{"tokens":[…]}`); err != nil {
		return nil, err
	}
	for _, id := range q.Tokens {
		if id < 0 || int(id) >= w.Model.Vocab {
			return nil, fmt.Errorf("token id %d is outside the vocabulary of %d", id, w.Model.Vocab)
		}
	}
	scores, err := w.Engine.Score(ctx, q.Tokens, min(logitsTop, w.Model.Vocab))
	if err != nil {
		return nil, err
	}
	a := logitsAnswer{}
	for _, s := range scores {
		var top []ranked
		for _, t := range s.Top {
			top = append(top, ranked{t.ID, t.Logprob})
		}
		a.Argmax, a.Top = append(a.Argmax, s.Argmax), append(a.Top, top)
	}
	return a, nil
}

func readFile(name string) ([]byte, error) {
	b, err := regular.ReadStream(name, maxTokenizerBytes)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return b, nil
}

// required marks a flag that the command cannot do without.
func required(cmd *cobra.Command, flag string) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed(flag) {
			return console.Hintf(fmt.Errorf("--%s is missing", flag), "for example: %s", firstLine(cmd.Example))
		}
		return run(cmd, args)
	}
	return cmd
}

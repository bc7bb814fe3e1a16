package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/catalog"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/jinja"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
	"hearth/internal/wire/responses"
)

func newRenderCmd() *cobra.Command {
	var file, clock, api string
	var asJSON, traits bool
	cmd := &cobra.Command{
		Use:   "render --model DIR [FILE] | --template FILE",
		Short: "Show the prompt that a request becomes",
		Long: `With --model: reads requests, JSON bodies of any API, from FILE or stdin, and prints the text of the prompt that the
model would get, with everything that serving does to it. The API is told by the body's fields, or by --api.

With --template: reads a context object a line, the template's variables: messages, tools, add_generation_prompt and
whatever else the template knows. Writes {"text": "..."} or {"error": "..."}.`,
		Example: `  echo '{"messages":[{"role":"user","content":"hi"}]}' | hearth debug render --model MODEL
  hearth debug render --model MODEL --json requests.jsonl
  echo '{"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":true}' |
    hearth debug render --template MODEL/chat_template.jinja --now 2026-03-05T07:08:09Z`,
		Args: console.MaxArgs(1),
	}
	cfg := settings(cmd, config.Model, config.Sampling)
	f := cmd.Flags()
	f.StringVar(&file, "template", "", "render the variables of this template (`FILE`)")
	f.StringVar(&clock, "now", "", "what the template takes for the current `TIME`")
	f.StringVar(&api, "api", "", "the requests' API: messages, chat or responses")
	f.BoolVar(&asJSON, "json", false, `with --model: print {"text", "tokens", "api"}, a line for every request`)
	f.BoolVar(&traits, "traits", false, "with --model: print what the chat template has a place for, as trials show, and read no requests")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		now, err := clockAt(clock)
		if err != nil {
			return err
		}
		switch {
		case file != "" && f.Changed("model"):
			return errors.New("--model and --template exclude each other")
		case file != "":
			return renderTemplate(cmd, file, now)
		case !f.Changed("model"):
			return console.Hintf(errors.New("--model or --template is missing"), "for example: %s", firstLine(cmd.Example))
		case api != "" && decoders[api] == nil:
			return fmt.Errorf("--api %s is unknown; it must be messages, chat or responses", api)
		}
		if err := load(cmd, cfg); err != nil {
			return err
		}
		g, err := textSide(cfg, now)
		if err != nil {
			return err
		}
		if traits {
			return printTraits(cmd.OutOrStdout(), g)
		}
		in := cmd.InOrStdin()
		if len(args) > 0 {
			b, err := readFile(args[0])
			if err != nil {
				return err
			}
			in = bytes.NewReader(b)
		}
		return renderRequests(cmd, g, in, api, asJSON)
	}
	return cmd
}

// printTraits prints a line for everything that a chat template may have a place for: its name, yes or no, what it means.
func printTraits(w io.Writer, g *generate.Generator) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range g.Traits() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", t.Name, yes(t.Has), t.About)
	}
	return tw.Flush()
}

// clockAt is the clock of --now, nil for the real one.
func clockAt(text string) (func() time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, console.Hintf(fmt.Errorf("--now %s is not a time", text), "for example: --now 2026-03-05T07:08:09Z")
	}
	return func() time.Time { return at }, nil
}

func renderTemplate(cmd *cobra.Command, file string, now func() time.Time) error {
	b, err := readFile(file)
	if err != nil {
		return err
	}
	t, err := jinja.Parse(filepath.Base(file), string(b))
	if err != nil {
		return err
	}
	return eachLine(cmd, func(_ int, line []byte) (any, error) {
		v, err := jinja.FromJSON(line)
		if err != nil {
			return nil, err
		}
		vars, ok := v.(*jinja.Dict)
		if !ok {
			return nil, errors.New("want an object with the template's variables")
		}
		text, err := t.RenderAt(cmd.Context(), vars, jinja.Limits{}, now)
		if err != nil {
			return nil, err
		}
		return map[string]string{"text": text}, nil
	})
}

// textSide is the model without its weights: it renders prompts and answers none.
func textSide(cfg *config.Config, now func() time.Time) (*generate.Generator, error) {
	src, err := findModel(cfg)
	if err != nil {
		return nil, err
	}
	cfg = catalog.Settings(src, cfg)
	text, err := catalog.Text(src, cfg)
	if err != nil {
		return nil, err
	}
	if text.Template == nil {
		return nil, console.Hintf(fmt.Errorf("%s is %s, so no request becomes a prompt", src.Where, baseModel), makeChat)
	}
	text.Engine, text.Now = weightless{}, now
	return generate.New(text)
}

// weightless is the engine of a model whose weights are not loaded.
type weightless struct{}

func (weightless) Context() int { return 1 << 30 }

func (weightless) Submit(context.Context, engine.Prompt) (generate.Stream, error) {
	return nil, errors.New("the model's weights are not loaded")
}

// decoders read the requests of an API.
var decoders = map[string]func([]byte) (*chat.Request, *chat.Error){"messages": anthropic.Decode, "chat": openai.Decode, "responses": responses.Decode}

// rendered is what debug render --json says of a request.
type rendered struct {
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
	API    string `json:"api"`
}

// renderRequests prints a prompt for every JSON value of in. A request that cannot be rendered is told on stderr, and the
// next one goes on.
func renderRequests(cmd *cobra.Command, g *generate.Generator, in io.Reader, api string, asJSON bool) error {
	d, enc := json.NewDecoder(in), json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	bad := 0
	for n := 1; ; n++ {
		var body json.RawMessage
		if err := d.Decode(&body); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("request %d: not JSON: %w", n, err)
		}
		r, err := renderOne(cmd.Context(), g, body, api)
		if err != nil {
			bad++
			fmt.Fprintf(cmd.ErrOrStderr(), "hearth: request %d: %v\n", n, err)
			continue
		}
		if asJSON {
			err = enc.Encode(r)
		} else {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), r.Text)
		}
		if err != nil {
			return fmt.Errorf("write prompt: %w", err)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of the requests could not be rendered", bad)
	}
	return nil
}

func renderOne(ctx context.Context, g *generate.Generator, body []byte, api string) (*rendered, error) {
	api = cmp.Or(api, apiOf(body))
	req, cerr := decoders[api](body)
	if cerr != nil {
		return nil, cerr
	}
	text, err := g.Render(ctx, req)
	if err != nil {
		return nil, err
	}
	n, err := g.Count(ctx, req)
	if err != nil {
		return nil, err
	}
	return &rendered{text, n, api}, nil
}

// apiOf guesses a request's API by fields that only one has.
func apiOf(body []byte) string {
	var r struct {
		System json.RawMessage `json:"system"`
		Tools  []struct {
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Stops  json.RawMessage `json:"stop_sequences"`
		Config json.RawMessage `json:"output_config"`
		Input  json.RawMessage `json:"input"`
	}
	if json.Unmarshal(body, &r) != nil { // the decoder says what is wrong
		return "chat"
	}
	blocks := false
	for _, m := range r.Messages {
		var parts []struct{ Type string }
		if json.Unmarshal(m.Content, &parts) == nil {
			for _, p := range parts {
				blocks = blocks || slices.Contains([]string{"tool_use", "tool_result", "thinking", "image", "document"}, p.Type)
			}
		}
	}
	for _, t := range r.Tools {
		blocks = blocks || t.InputSchema != nil
	}
	if blocks || r.System != nil || r.Stops != nil || r.Config != nil {
		return "messages"
	}
	if r.Input != nil {
		return "responses"
	}
	return "chat"
}

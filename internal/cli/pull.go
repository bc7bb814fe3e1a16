package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/budget"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/regular"
)

func newPullCmd() *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "pull ORG/NAME[@REVISION] | ALIAS",
		Short: "Fetch a model from the hub",
		Long: `pull fetches a model from the Hugging Face hub, or another that speaks as it does (--hf-endpoint), into the cache that
Hugging Face's own clients have, too: what they have fetched is there for hearth, and the other way round. It fetches only what
hearth reads: configuration, tokenizer, chat template and weights in safetensors. What has arrived is kept when it ends early, and the
next pull goes on there. A model that is on disk is brought up to date. What does not fit this machine with a context of 32,768 tokens
(or the model's own, if that is less), and what no model file here runs, is refused: --force fetches it nevertheless.`,
		Example: `  hearth pull mlx-community/Qwen3-0.6B-4bit
  hearth pull mlx-community/Qwen3-0.6B-4bit@main --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Hintf(errors.New("pull needs a model's name"), "hearth pull ORG/NAME, such as mlx-community/Qwen3-0.6B-4bit")
			}
			return console.MaxArgs(1)(cmd, args)
		},
	}
	cfg := settings(cmd, config.Model, config.Hub, config.Run)
	cmd.ValidArgsFunction = completeModel(cfg, 0, toFetch)
	cmd.Flags().BoolVar(&force, "force", false, "fetch it even though it would not run on this machine")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line: plan, progress, done")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		p := newPuller(cmd, cfg)
		p.force = force
		if asJSON {
			enc := json.NewEncoder(cmd.OutOrStdout())
			p.events = func(e pullEvent) error { return enc.Encode(e) }
		}
		name := args[0]
		on := roots(cfg)
		if model, ok := on.Aliases.Lookup(name); ok {
			name = model
		} else if id, _, ok := hub.ParseID(name); ok && !strings.Contains(id, "/") {
			if near := nearestToFetch(ctx, on, name); near != "" {
				return console.Hintf(fmt.Errorf("%s is no name of a model on the hub: a name is org/name", name), "did you mean hearth pull %s?", near)
			}
		}
		e, err := p.pull(ctx, name, nil)
		if err != nil || asJSON {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), e.Dir)
		return err
	}
	return cmd
}

// nearestToFetch is the alias, or the model that is there in part or to be brought up to date, that was meant by a name that is
// none; "" if none is near.
func nearestToFetch(ctx context.Context, on *hub.Roots, name string) string {
	missing := &hub.NotFoundError{ID: name}
	list, _ := on.List(ctx) // an error is ctx's
	for i := range list {
		if list[i].Cached() {
			missing.Have = append(missing.Have, list[i].ID)
		}
	}
	aliases, _ := on.Aliases.List() // of a file that cannot be read there are none
	for _, a := range aliases {
		missing.Aliases = append(missing.Aliases, a.Name)
	}
	return catalog.Nearest(missing)
}

// puller fetches models from the hub of cfg, and says so.
type puller struct {
	cfg    *config.Config
	in     io.Reader
	out    io.Writer
	person bool                  // there is somebody to ask
	force  bool                  // fetch what does not fit
	events func(pullEvent) error // instead of words, unless it is nil
}

// newPuller makes one that speaks on the standard error of cmd.
func newPuller(cmd *cobra.Command, cfg *config.Config) *puller {
	in, out := cmd.InOrStdin(), cmd.ErrOrStderr()
	return &puller{cfg: cfg, in: in, out: out, person: console.IsTerminal(in) && console.IsTerminal(out)}
}

// hubClient is the client of the hub that cfg names.
func hubClient(cfg *config.Config) *hub.Client {
	version, _ := buildVersion()
	return &hub.Client{Endpoint: cfg.HFEndpoint, Token: cfg.HubToken(), Cache: hub.Cache{Dir: cfg.HubCache}, Offline: cfg.Offline,
		Proxy: http.ProxyFromEnvironment, Agent: "hearth/" + version}
}

// find finds the model of the settings; see findNamed.
func (p *puller) find(ctx context.Context) (*catalog.Source, error) {
	return p.findNamed(ctx, "model", p.cfg.Model)
}

// findNamed finds the model that a flag has given a name. What is not on disk, or not all of it, is fetched if --pull says so or
// a person agrees.
func (p *puller) findNamed(ctx context.Context, flag, model string) (*catalog.Source, error) {
	src, err := findNamed(p.cfg, flag, model)
	name := fetchable(model, err)
	if name == "" || p.cfg.Offline || !p.cfg.Pull && !p.person {
		return src, err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	agreed := func() error {
		if p.cfg.Pull {
			return nil
		}
		fmt.Fprint(p.out, "Fetch it now? [y/N] ")
		if yes, failed := readYes(ctx, p.in); failed != nil || !yes {
			return cmp.Or(failed, err)
		}
		return nil
	}
	if _, err := p.pull(ctx, name, agreed); err != nil {
		return nil, err
	}
	return findNamed(p.cfg, flag, model)
}

// fetchable is what of a hub would mend err, with which a model of this name was not found; "" if nothing would.
func fetchable(name string, err error) string {
	var missing *hub.NotFoundError
	var half *catalog.HalfError
	switch {
	case errors.As(err, &missing):
		name = cmp.Or(missing.Target, name)
	case errors.As(err, &half) && half.Entry.Cached():
		if _, rev, ok := hub.ParseID(name); ok && rev != "" {
			return half.Entry.ID + "@" + rev
		}
		return half.Entry.ID
	default:
		return ""
	}
	if id, _, ok := hub.ParseID(name); !ok || !strings.Contains(id, "/") {
		return ""
	}
	return name
}

// pullEvent is a line of pull --json.
type pullEvent struct {
	Event   string `json:"event"` // plan, progress or done
	ID      string `json:"id,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Count   int    `json:"count,omitempty"`   // of files
	Bytes   int64  `json:"bytes,omitempty"`   // of all files
	Missing int64  `json:"missing,omitempty"` // bytes that are not on disk
	Weights int64  `json:"weights,omitempty"` // bytes of weights
	Free    int64  `json:"free,omitempty"`    // bytes of the disk
	Memory  int64  `json:"memory,omitempty"`  // bytes of the machine's memory that models may have together
	Need    int64  `json:"need,omitempty"`    // bytes of it that the model takes with Context tokens
	Context int    `json:"context,omitempty"` // as ls has it
	Fits    *bool  `json:"fits,omitempty"`    // whether it fits; none: not known
	Dir     string `json:"dir,omitempty"`
	*hub.Progress
}

// pull fetches a model, once agreed gives no error.
func (p *puller) pull(ctx context.Context, name string, agreed func() error) (hub.Entry, error) {
	client := hubClient(p.cfg)
	plan, err := client.Plan(ctx, name)
	if err != nil {
		return hub.Entry{}, p.ended(ctx, name, err)
	}
	need, err := p.needs(ctx, client, &plan)
	if err != nil {
		return hub.Entry{}, p.ended(ctx, name, err)
	}
	if err := p.show(&plan, need); err != nil {
		return hub.Entry{}, err
	}
	if err := p.refuse(name, &plan, need); err != nil {
		return hub.Entry{}, err
	}
	if agreed != nil {
		if err := agreed(); err != nil {
			return hub.Entry{}, err
		}
	}
	bar := console.NewBar(p.out)
	var failed error
	e, err := client.Fetch(ctx, plan, func(now hub.Progress) {
		if p.events == nil {
			bar.Note(now.Done, now.Total, pullNote(now))
		} else if err := p.events(pullEvent{Event: "progress", Progress: &now}); err != nil {
			failed = err
		}
	})
	bar.End()
	if err = errors.Join(err, failed); err != nil {
		return hub.Entry{}, p.ended(ctx, name, err)
	}
	if p.events != nil {
		return e, p.events(pullEvent{Event: "done", ID: plan.ID, Commit: plan.Commit, Dir: e.Dir})
	}
	return e, nil
}

// needs is what a model needs to run here, as far as its config.json tells.
type needs struct {
	*fit           // nil: not known
	capacity int64 // of memory, that models may have together; budget.Unknown
	problem  error // why no model like it is loaded
}

// needs reads the config.json of a plan, of which nothing need be on disk.
func (p *puller) needs(ctx context.Context, client *hub.Client, plan *hub.Plan) (needs, error) {
	conf, err := client.Read(ctx, plan, "config.json")
	if err != nil {
		return needs{}, err
	}
	n := needs{capacity: catalog.NewMachine(p.cfg).Capacity()}
	kind, err := model.PeekConfig(conf, plan.ID)
	if err != nil {
		n.problem = err
		return n, nil
	}
	n.fit = fitConfig(conf, plan.ID, kind == model.Generates, plan.Weights(), fitContext, p.cfg, n.capacity)
	return n, nil
}

// refuse refuses what could not run here and is still to be fetched.
func (p *puller) refuse(name string, plan *hub.Plan, n needs) error {
	switch {
	case p.force || plan.Missing() == 0:
		return nil
	case n.problem != nil:
		return console.Hintf(fmt.Errorf("%s: %s", plan.ID, model.Reason(n.problem)), "to fetch it nevertheless: hearth pull %s --force", name)
	case n.fit == nil || n.Fits:
		return nil
	}
	err := fmt.Errorf("%s does not fit this machine: it takes %s of memory%s, and models may have %s", plan.ID, budget.Size(n.Bytes), n.with(), budget.Size(n.capacity))
	return console.Hintf(err, "look for a smaller one or one with fewer bits, or fetch it nevertheless: hearth pull %s --force", name)
}

// with says for which context that is.
func (f *fit) with() string {
	if f.Context == 0 {
		return ""
	}
	return fmt.Sprintf(" with a context of %s tokens", console.Commas(int64(f.Context)))
}

// show says what is about to be fetched, and whether there is room for it.
func (p *puller) show(plan *hub.Plan, n needs) error {
	free, err := regular.Free(nearestFolder(p.cfg.HubCache))
	if err != nil {
		free = 0
	}
	if p.events != nil {
		e := pullEvent{Event: "plan", ID: plan.ID, Commit: plan.Commit, Count: len(plan.Files), Bytes: plan.Bytes(), Missing: plan.Missing(),
			Weights: plan.Weights(), Free: free}
		if n.capacity != budget.Unknown {
			e.Memory = n.capacity
		}
		if n.fit != nil {
			e.Need, e.Context, e.Fits = n.Bytes, n.Context, &n.Fits
		}
		return p.events(e)
	}
	there := ""
	switch missing := plan.Missing(); {
	case missing == 0:
		there = ", all there"
	case missing < plan.Bytes():
		there = fmt.Sprintf(", %s of them to fetch", hub.Size(missing))
	}
	fmt.Fprintf(p.out, "%s@%.12s: %d files, %s%s\n", plan.ID, plan.Commit, len(plan.Files), hub.Size(plan.Bytes()), there)
	if free > 0 {
		fmt.Fprintf(p.out, "disk: %s free in %s\n", hub.Size(free), p.cfg.HubCache)
	}
	if n.fit != nil && n.capacity != budget.Unknown {
		verdict := "it fits"
		switch {
		case !n.Fits:
			verdict = "it does not fit"
		case n.Mapped:
			verdict = "it fits with its weights left in their files (--low-memory)"
		}
		fmt.Fprintf(p.out, "memory: it takes %s%s, models may have %s: %s\n", budget.Size(n.Bytes), n.with(), budget.Size(n.capacity), verdict)
	}
	return nil
}

// pullNote is what stands beside the bar: how much, how fast, how long, and who is waited for.
func pullNote(now hub.Progress) string {
	s := fmt.Sprintf("%s of %s", hub.Size(now.Done), hub.Size(now.Total))
	if now.Rate >= 1 {
		s += fmt.Sprintf(", %s/s", hub.Size(int64(now.Rate)))
	}
	if now.Left > 0 {
		s += fmt.Sprintf(", %v left", time.Duration(now.Left*float64(time.Second)).Round(time.Second))
	}
	for _, f := range now.Files {
		switch f.State {
		case hub.Waits:
			return s + ", another process is fetching " + f.Path
		case hub.Checks:
			return s + ", checking what is there"
		}
	}
	return s
}

// ended says of a fetch that was interrupted how to go on.
func (p *puller) ended(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return console.Hintf(fmt.Errorf("%s: interrupted; what has arrived is kept", name), "hearth pull %s goes on", name)
	}
	return err
}

// nearestFolder is dir, or the folder above it that is there.
func nearestFolder(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

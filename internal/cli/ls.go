package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/budget"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/hub"
	"hearth/internal/regular"
)

func newLsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the models on this disk",
		Long: `ls lists the models in the Hugging Face cache, in LM Studio's folder, in ~/llm/models and in the folders of --models-dir: what they
are, whether they fit this machine with a context of 32,768 tokens (or the model's own, if that is less), and what is missing of
those that are not whole. What fits is told from config.json: weights, keys and values, a step, beside what is the system's.`,
		Example: `  hearth ls
  hearth ls --json`,
		Args: console.NoArgs,
	}
	cfg := settings(cmd, config.Model, config.Run)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := load(cmd, cfg); err != nil {
			return err
		}
		l, err := listModels(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), l, asJSON)
	}
	return cmd
}

// modelList is what ls prints.
type modelList struct {
	Models []listedModel `json:"models"`
	Memory int64         `json:"memory"` // that models may have on this machine together; 0: not known
	Dirs   []string      `json:"folders"`
}

// listedModel is a line of it.
type listedModel struct {
	ID        string    `json:"id"`
	Folder    string    `json:"folder"`
	Where     string    `json:"where"` // what people call the folder that it is in
	Revision  string    `json:"revision,omitempty"`
	Kind      string    `json:"kind"` // chat, embedding, rerank
	ModelType string    `json:"model_type,omitempty"`
	Format    string    `json:"format,omitempty"`
	Bits      int       `json:"bits,omitempty"` // 0: floats, or not known
	Bytes     int64     `json:"bytes"`          // of weights
	State     hub.State `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	Missing   []string  `json:"missing,omitempty"`
	Memory    *fit      `json:"memory,omitempty"` // none: not known
	Time      time.Time `json:"modified,omitzero"`
}

func listModels(ctx context.Context, cfg *config.Config) (*modelList, error) {
	on := roots(cfg)
	entries, err := on.List(ctx)
	if err != nil {
		return nil, err
	}
	capacity := catalog.NewMachine(cfg).Capacity()
	l := &modelList{Models: make([]listedModel, len(entries)), Memory: capacity}
	if capacity == budget.Unknown {
		l.Memory = 0
	}
	for _, d := range on.Dirs() {
		l.Dirs = append(l.Dirs, d.Dir)
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(runtime.GOMAXPROCS(0), len(entries)) {
		wg.Go(func() {
			for i := range next {
				l.Models[i] = lineOf(&entries[i])
				l.Models[i].Memory = fitOf(&entries[i], fitContext, cfg, capacity)
			}
		})
	}
	for i := range entries {
		next <- i
	}
	close(next)
	wg.Wait()
	return l, ctx.Err()
}

func lineOf(e *hub.Entry) listedModel {
	m := listedModel{ID: e.ID, Folder: e.Dir, Where: e.Root, Revision: e.Revision, Kind: e.Kind, ModelType: e.ModelType, Format: string(e.Format), Bits: e.Bits,
		Bytes: e.Bytes, State: e.State, Reason: e.Reason, Missing: e.Missing, Time: e.Time}
	if m.Kind == "" {
		m.Kind = "chat"
	}
	return m
}

// kind is what the table says of it.
func (m *listedModel) kind() string {
	if m.State == hub.Unusable {
		return "-"
	}
	return m.Kind
}

func (l *modelList) print(w io.Writer) error {
	if len(l.Models) == 0 {
		fmt.Fprintln(w, "no models; hearth pull fetches one, and these folders are looked in:")
		for _, d := range l.Dirs {
			fmt.Fprintln(w, "  "+d)
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tKIND\tTYPE\tBITS\tSIZE\tFITS\tWHERE\tSTATE")
	for i := range l.Models {
		m := &l.Models[i]
		bits, kind, state := "-", m.ModelType, string(m.State)
		if m.Bits > 0 {
			bits = fmt.Sprint(m.Bits)
		}
		if kind == "" {
			kind = "-"
		}
		if m.Reason != "" {
			state += ": " + m.Reason
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", regular.Clip(m.ID), m.kind(), regular.Clip(kind), bits, budget.Size(m.Bytes), m.Memory, m.Where, state)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l.Memory > 0 {
		fmt.Fprintf(w, "models fit that take at most %s with %s tokens\n", budget.Size(l.Memory), console.Commas(fitContext))
	}
	return nil
}

// String says whether a model fits.
func (f *fit) String() string {
	switch {
	case f == nil:
		return "-"
	case !f.Fits:
		return "no, " + budget.Size(f.Bytes)
	case f.Mapped:
		return "low-memory, " + budget.Size(f.Bytes)
	}
	return "yes, " + budget.Size(f.Bytes)
}

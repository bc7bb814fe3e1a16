package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/budget"
	"hearth/internal/chat"
	"hearth/internal/console"
	"hearth/internal/regular"
	"hearth/internal/server"
)

func newPsCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the models that servers on this machine have loaded",
		Long: `ps asks the servers of this user that run here which models they have loaded, how many requests use each, and when it goes if
nobody uses it.`,
		Example: `  hearth ps
  hearth ps --json`,
		Args: console.NoArgs,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		all, err := running(cmd.Context())
		if err != nil {
			return err
		}
		l := psList{Servers: []psServer{}}
		for _, s := range all {
			var got struct{ Models []server.Managed }
			if err := s.call(cmd.Context(), http.MethodGet, "models", nil, &got); err != nil {
				return fmt.Errorf("the server at %s (process %d): %w", s.URL, s.PID, err)
			}
			p := psServer{URL: s.URL, PID: s.PID, Models: []server.Managed{}}
			for _, m := range got.Models {
				if m.Status == string(chat.Loaded) || m.Status == string(chat.Loading) {
					p.Models = append(p.Models, m)
				}
			}
			l.Servers = append(l.Servers, p)
		}
		return show(cmd.OutOrStdout(), &l, asJSON)
	}
	return cmd
}

// psList is what ps prints.
type psList struct {
	Servers []psServer `json:"servers"` // the latest first
}

type psServer struct {
	URL    string           `json:"url"`
	PID    int              `json:"pid"`
	Models []server.Managed `json:"models"`
}

func (l *psList) print(w io.Writer) error {
	if len(l.Servers) == 0 {
		fmt.Fprintln(w, "no server runs")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MODEL\tKIND\tSTATUS\tCONTEXT\tWEIGHTS\tREQUESTS\tGOES\tSERVER")
	for _, s := range l.Servers {
		for i := range s.Models {
			m := &s.Models[i]
			requests := fmt.Sprint(m.Requests)
			if m.Pinned {
				requests = "-" // they are not counted
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", regular.Clip(m.ID), m.Kind, m.Status, m.Context, budget.Size(m.Bytes), requests, goes(m, time.Now()), s.URL)
		}
	}
	return t.Flush()
}

// goes says when a model goes.
func goes(m *server.Managed, now time.Time) string {
	until, err := time.Parse(time.RFC3339, m.Until)
	switch {
	case m.Pinned:
		return "never"
	case err != nil:
		return "when its memory is needed"
	case until.Before(now):
		return "now"
	}
	return "in " + until.Sub(now).Round(time.Second).String()
}

func newLoadCmd() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use:   "load MODEL",
		Short: "Have the running server load a model",
		Long: `load has the server of this user that runs here (the latest, if there are several) load a model of this disk, and waits until it
is there. A request that names the model does the same.`,
		Example: `  hearth load mlx-community/Qwen3-0.6B-4bit
  hearth load mine --keep-alive 1h`,
		Args:              oneModel,
		ValidArgsFunction: completeServed(func(m *server.Managed) bool { return m.Status == string(chat.OnDisk) }),
	}
	cmd.Flags().StringVar(&keep, "keep-alive", "", "how `long` it stays loaded without being used, such as 5m; 0 not at all, -1 until its memory is needed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := map[string]string{"model": args[0]}
		if keep != "" {
			body["keep_alive"] = keep
		}
		s, err := latest(cmd)
		if err != nil {
			return err
		}
		if err := s.call(cmd.Context(), http.MethodPost, "models/load", body, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is loaded at %s\n", regular.Clip(args[0]), s.URL)
		return err
	}
	return cmd
}

func newStopCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop MODEL",
		Short: "Have the running server unload a model",
		Long: `stop has the server of this user that runs here (the latest, if there are several) unload a model as soon as no request uses it. The
model that the server was started with stays: end the server instead.`,
		Example:           `  hearth stop mlx-community/Qwen3-0.6B-4bit`,
		Args:              oneModel,
		ValidArgsFunction: completeServed(func(m *server.Managed) bool { return m.Status == string(chat.Loaded) && !m.Pinned }),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := latest(cmd)
			if err != nil {
				return err
			}
			return s.call(cmd.Context(), http.MethodPost, "models/unload", map[string]string{"model": args[0]}, nil)
		},
	}
	return cmd
}

// latest is the server that was started last. Which one that is is said where there are several.
func latest(cmd *cobra.Command) (*state, error) {
	all, err := running(cmd.Context())
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, console.Hintf(errors.New("no server runs"), "start one: hearth serve")
	}
	if len(all) > 1 {
		fmt.Fprintf(cmd.ErrOrStderr(), "hearth: of %d servers the one at %s (process %d)\n", len(all), all[0].URL, all[0].PID)
	}
	return all[0], nil
}

// maxReply bounds what is read of a server's answer.
const maxReply = 16 << 20

// call asks a server by one of its routes under /hearth/, with its token, and reads the answer into out unless that is nil.
func (s *state) call(ctx context.Context, method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base()+"/hearth/"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+cmp.Or(s.Token, s.Key))
	res, err := s.client().Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, maxReply))
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusOK && out == nil:
		return nil
	case res.StatusCode == http.StatusOK:
		return json.Unmarshal(text, out)
	}
	var said struct{ Error struct{ Message string } }
	if json.Unmarshal(text, &said) != nil || said.Error.Message == "" {
		return fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	return errors.New(said.Error.Message)
}

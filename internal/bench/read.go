package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"
)

// newReadCmd is the other side of "bench engine stream", in a process of its own, so that its time is not the
// server's: it reads streams until it is killed.
func newReadCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "read URL STREAMS",
		Short:  "Read streams from a server and forget them",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			failed := make(chan error, n)
			for i := range n {
				go func() { failed <- readStream(cmd, args[0], i) }()
			}
			var errs []error
			for range n {
				errs = append(errs, <-failed)
			}
			return errors.Join(errs...)
		},
	}
}

func readStream(cmd *cobra.Command, url string, i int) error {
	const body = `{"model":"idle","max_tokens":60000,"temperature":0,"stream":true,"messages":[{"role":"user","content":"stream %d"}]}`
	path := "/v1/messages"
	if i%2 == 0 {
		path = "/v1/chat/completions"
	}
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodPost, url+path, bytes.NewReader(fmt.Appendf(nil, body, i)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

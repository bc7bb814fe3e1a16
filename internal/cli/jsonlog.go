package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"

	"hearth/internal/catalog"
	"hearth/internal/config"
)

// newLog is the log on stderr.
func newLog(cfg *config.Config, stderr io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: level(cfg.LogLevel)}
	if cfg.LogFormat == "json" {
		if j, ok := stderr.(*jsonLines); ok {
			stderr = j.out
		}
		return slog.New(slog.NewJSONHandler(stderr, o))
	}
	return slog.New(slog.NewTextHandler(stderr, o))
}

// originOf says where the settings of models come from.
func originOf(cfg *config.Config, models *catalog.Catalog) func(model, flag string) string {
	return func(model, flag string) string {
		if flag == "template" {
			flag = "chat-template"
		}
		if flag == "thinking" {
			flag = "enable-thinking"
		}
		if model == models.ID() {
			return models.Settings().Origin(flag)
		}
		return cfg.For(model).Origin(flag)
	}
}

// jsonLines makes a record of each line that is written to it, for what a program prints beside its log.
type jsonLines struct {
	out io.Writer
	log *slog.Logger
}

func newJSONLines(out io.Writer) *jsonLines {
	return &jsonLines{out, slog.New(slog.NewJSONHandler(out, nil))}
}

// Write takes whole lines.
func (j *jsonLines) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		msg, lvl := strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), "hearth: "), slog.LevelInfo
		for word, l := range map[string]slog.Level{"warning: ": slog.LevelWarn, "error: ": slog.LevelError} {
			if rest, ok := strings.CutPrefix(msg, word); ok {
				msg, lvl = rest, l
			}
		}
		if msg != "" {
			j.log.Log(context.Background(), lvl, msg)
		}
	}
	return len(b), nil
}

package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/generate"
	"hearth/internal/model"
	"hearth/internal/script"
)

// openLocal loads a whole model: its text side first, where most broken folders show at once, then its weights.
func openLocal(src *Source, cfg *config.Config, id string, bs Backends, keep *Keep) (*Weights, chat.Generator, []Warning, error) {
	if err := checkParsers(cfg); err != nil {
		return nil, nil, nil, err
	}
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, nil, nil, err
	}
	text, err := openText(src, c)
	if err != nil {
		return nil, nil, nil, errors.Join(err, c.Close())
	}
	read := c.Warnings // the checkpoint is given away
	w, err := openWeights(src, c, cfg, bs, keep.options(src, cfg))
	if err != nil {
		return nil, nil, nil, err
	}
	warnings := src.warnings(read, w.warnings, text.Warnings)
	text.Engine = generate.Over(w.Engine)
	configure(&text, src, cfg, id)
	text.ConstrainTools = cfg.ConstrainTools == "always" || cfg.ConstrainTools == "auto" && !w.Ahead
	text.Info.Description, text.Info.Quant = w.Model.Description, w.Model.Width
	gen, err := generate.New(text)
	if err != nil {
		return nil, nil, nil, errors.Join(&model.LoadError{Where: src.Where, Err: err}, w.Close())
	}
	if b := w.Engine.Saved(historyName); b != nil {
		if err := gen.Recall(b); err != nil {
			keep.Warn("prefix cache: earlier answers are read as text: " + err.Error())
		}
	}
	return w, gen, warnings, nil
}

// historyName is under which the ids of earlier answers are kept beside their keys and values.
const historyName = "history"

// saveHistory keeps them for the next process.
func saveHistory(w *Weights, gen chat.Generator) error {
	g, ok := gen.(*generate.Generator)
	if !ok || w.Engine.Stats().Cache.Disk.Dir == "" {
		return nil
	}
	if err := w.Engine.Save(historyName, g.Remembered()); err != nil {
		return fmt.Errorf("keep the ids of earlier answers: %w", err)
	}
	return nil
}

// openScripted loads the text side of a model and a script that answers in its place.
func openScripted(src *Source, cfg *config.Config, id string) (chat.Generator, []Warning, error) {
	if err := checkParsers(cfg); err != nil {
		return nil, nil, err
	}
	s, err := script.Open(cfg.Script)
	if err != nil {
		return nil, nil, err
	}
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, nil, err
	}
	text, err := openText(src, c)
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, nil, err
	}
	configure(&text, src, cfg, id)
	gen, err := script.New(text, s, cfg.ContextLength)
	if err != nil {
		return nil, nil, err
	}
	return gen, src.warnings(c.Warnings, text.Warnings), nil
}

// configure fills in what is the same for every engine.
func configure(text *generate.Config, src *Source, cfg *config.Config, id string) {
	text.Info = chat.Model{ID: id, Path: src.Path, Created: src.Created}
	text.Defaults = chat.Sampling{Temperature: cfg.Temperature, TopP: cfg.TopP, TopK: cfg.TopK, MinP: cfg.MinP, RepetitionPenalty: cfg.RepetitionPenalty,
		PresencePenalty: cfg.PresencePenalty, FrequencyPenalty: cfg.FrequencyPenalty, Seed: cfg.Seed}
	text.MaxTokens, text.TokensCap = cfg.MaxTokens, cfg.MaxTokensCap
	text.Thinking, text.TemplateArgs = toggle(cfg.Thinking()), cfg.ChatTemplateArgs
	text.NoThinking, text.ThinkingBudget = cfg.NoThinking(), cfg.ThinkingBudget
	text.PlainHistory = cfg.History == "text"
	text.HistoryTTL, text.HistorySessions = cfg.ContextTTL, cfg.ContextSessions
	text.ToolParser, text.ReasoningParser, text.NoToolRepair = cfg.ToolCallParser, cfg.ReasoningParser, cfg.NoToolRepair
}

// checkParsers refuses parsers that do not exist. Of one in the settings file it tells the line.
func checkParsers(cfg *config.Config) error {
	for flag, names := range map[string][2]string{"tool-call-parser": {cfg.ToolCallParser, ""}, "reasoning-parser": {"", cfg.ReasoningParser}} {
		err := generate.CheckParsers(names[0], names[1])
		if err == nil {
			continue
		}
		if from := cfg.Origin(flag); cfg.File() != "" && strings.HasPrefix(from, cfg.File()) {
			err = fmt.Errorf("%s: %w", from, err)
		}
		return err
	}
	return nil
}

// openText reads tokenizer and template; errors are LoadErrors.
func openText(src *Source, c *model.Checkpoint) (generate.Config, error) {
	text, err := generate.Load(src.FS)
	var broken *generate.BrokenError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = &model.LoadError{Where: src.Where, File: "tokenizer.json", Err: err, Hint: "fetch the tokenizer from where the model came from"}
	case errors.As(err, &broken):
		err = &model.LoadError{Where: src.Where, Err: err, Hint: "fetch the file again, or mend it"}
	case errors.Is(err, generate.ErrNoTemplate):
		err = &model.LoadError{Where: src.Where, Problem: generate.ErrNoTemplate.Error(), Hint: "it is a base model that was never taught to chat; use its instruct or chat version"}
	case err != nil:
		err = &model.LoadError{Where: src.Where, Err: err}
	}
	if err != nil {
		return generate.Config{}, err
	}
	g := &c.Generation
	text.StopIDs = g.EOS
	text.Generation = chat.Sampling{Temperature: g.Temperature, TopP: g.TopP, TopK: g.TopK, MinP: g.MinP, RepetitionPenalty: g.RepetitionPenalty}
	text.Loop = generate.Loop(g.Loop)
	return text, nil
}

func toggle(b *bool) chat.Toggle {
	switch {
	case b == nil:
		return chat.Default
	case *b:
		return chat.On
	}
	return chat.Off
}

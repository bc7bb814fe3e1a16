package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/demo"
	"hearth/internal/dialect"
	"hearth/internal/generate"
	"hearth/internal/model"
	"hearth/internal/script"
)

// openLocal loads a whole model: its text side first, where most broken folders show at once, then its weights.
// In between it calls known, which is told of a base model. When ctx ends it reads no further.
func openLocal(ctx context.Context, src *Source, cfg *config.Config, id string, bs Backends, disk *DiskCache, known func(base bool)) (*Weights, chat.Generator, []Warning, error) {
	if err := checkParsers(cfg); err != nil {
		return nil, nil, nil, err
	}
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, nil, nil, err
	}
	c.Stop = bs.stop(ctx)
	text, err := openText(src, cfg, c)
	if err != nil {
		return nil, nil, nil, errors.Join(err, c.Close())
	}
	known(text.Template == nil) // the weights may take minutes
	sight, _, blind := Sight(src.FS, c, cfg)
	read := append(slices.Clip(c.Warnings), blind...) // the checkpoint is given away
	w, err := openWeights(ctx, src, c, cfg, bs, disk.options(src, cfg, bs.demand != nil))
	if err != nil {
		return nil, nil, nil, err
	}
	warnings := src.warnings(read, w.warnings, text.Warnings)
	text.Engine, text.Info.ID, text.Warn = generate.Over(w.Engine), id, bs.Warn
	text.ConstrainTools = cfg.ConstrainTools == "always" || cfg.ConstrainTools == "auto" && !w.Ahead
	text.Undrafted = !speculate(cfg, w.Ahead)
	if src.Demo() {
		text.Advice, text.Readable = demo.Advice, demo.Readable
	}
	text.Sight = sight
	text.Info.Description, text.Info.Quant = w.Model.Description, w.Model.Width
	gen, err := generate.New(text)
	if err != nil {
		return nil, nil, nil, errors.Join(&model.LoadError{Where: src.Where, Err: err}, w.Close())
	}
	if b := w.Engine.Saved(historyName); b != nil {
		if err := gen.Recall(b); err != nil {
			disk.Warn("prefix cache: earlier answers are read as text: " + err.Error())
		}
	}
	if b := w.Engine.Saved(imagesName); b != nil {
		if err := gen.RecallImages(b); err != nil {
			disk.Warn("prefix cache: images are decoded again: " + err.Error())
		}
	}
	return w, gen, warnings, nil
}

// historyName is under which the ids of earlier answers are kept beside their keys and values, imagesName what files of images
// were prepared to.
const (
	historyName = "history"
	imagesName  = "images"
)

// saveHistory keeps them for the next process.
func saveHistory(w *Weights, gen chat.Generator) error {
	g, ok := gen.(*generate.Generator)
	if !ok || w.Engine.Stats().Cache.Disk.Dir == "" {
		return nil
	}
	if err := w.Engine.Save(historyName, g.Remembered()); err != nil {
		return fmt.Errorf("keep the ids of earlier answers: %w", err)
	}
	if b := g.RememberedImages(); b != nil {
		if err := w.Engine.Save(imagesName, b); err != nil {
			return fmt.Errorf("keep the digests of images: %w", err)
		}
	}
	return nil
}

// openScripted loads the text side of a model and a script that answers in its place.
func openScripted(src *Source, cfg *config.Config, id string, bs Backends) (chat.Generator, []Warning, error) {
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
	text, err := openText(src, cfg, c)
	sight, _, blind := Sight(src.FS, c, cfg)
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, nil, err
	}
	text.Info.ID, text.Warn = id, bs.Warn
	text.Sight = sight
	gen, err := script.New(text, s, cfg.ContextLength, bs.hour)
	if err != nil {
		return nil, nil, err
	}
	return gen, src.warnings(c.Warnings, blind, text.Warnings), nil
}

// configure fills in what is the same for every engine.
func configure(text *generate.Config, src *Source, cfg *config.Config, id string) {
	text.Info = chat.Model{ID: id, Path: src.Path, Created: src.Created}
	text.Defaults, text.MaxTokens, text.TokensCap = cfg.Sampling, cfg.MaxTokens, cfg.MaxTokensCap
	text.Thinking, text.TemplateArgs = chat.ToggleOf(cfg.Thinking()), cfg.ChatTemplateArgs
	text.NoThinking, text.ThinkingBudget = cfg.NoThinking(), cfg.ThinkingBudget
	text.HideThinking = cfg.HideThinking()
	text.PlainHistory, text.NoReplay = cfg.History == "text", cfg.ReplayReasoning == "never"
	text.RefuseMedia = cfg.Images == "refuse"
	text.HistoryTTL, text.HistorySessions = cfg.ContextTTL, cfg.ContextSessions
	text.ToolParser, text.ReasoningParser, text.NoToolRepair = cfg.ToolCallParser, cfg.ReasoningParser, cfg.NoToolRepair
	text.NoToolsInPrompt = cfg.ToolsInPrompt == "never"
	text.RunawayStop, text.Undrafted = cfg.RunawayStop, !speculate(cfg, false)
}

// speculate reports whether drafts are run. With auto they are where replies stay the same to the bit, which is not where steps
// are given to the device ahead.
func speculate(cfg *config.Config, ahead bool) bool {
	return cfg.Speculation == "on" || cfg.Speculation == "auto" && !ahead
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

// Text reads tokenizer and template of the model of src, as cfg says; errors are LoadErrors. A base model has no template.
func Text(src *Source, cfg *config.Config) (generate.Config, error) {
	text, err := generate.Load(src.FS, cfg.ChatTemplate)
	if err != nil && !isBase(err) {
		return text, textError(src, cfg, err)
	}
	configure(&text, src, cfg, src.ID)
	if err = nil; cfg.ChatTemplate != "" {
		err = text.Check()
	}
	return text, textError(src, cfg, err)
}

// openText is Text with what the checkpoint says of ends and sampling.
func openText(src *Source, cfg *config.Config, c *model.Checkpoint) (generate.Config, error) {
	text, err := Text(src, cfg)
	if err == nil && cfg.ChatTemplate == "" {
		err = textError(src, cfg, text.Check())
	}
	if err != nil {
		return generate.Config{}, err
	}
	text.StopIDs, text.Generation = c.Generation.EOS, c.Generation.Sampling
	if cfg.RunawayStop {
		text.Loop = generate.Loop(c.Generation.Loop)
	}
	return text, nil
}

// isBase tells what generate.Load says of a base model from what is wrong with a folder.
func isBase(err error) bool {
	return errors.Is(err, generate.ErrNoTemplate) && !errors.As(err, new(*generate.BrokenError))
}

// textError is what is wrong with the text side of a model, as a LoadError. Of a template that was given it tells by what.
func textError(src *Source, cfg *config.Config, err error) error {
	var broken *generate.BrokenError
	var given *generate.GivenError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && !errors.As(err, &given):
		return &model.LoadError{Where: src.Where, File: "tokenizer.json", Err: err, Hint: "fetch the tokenizer from where the model came from"}
	case errors.As(err, &broken):
		return &model.LoadError{Where: src.Where, Err: err, Hint: "fetch the file again, or mend it"}
	case errors.As(err, &given):
		problem := given.Error()
		if from := cfg.Origin("chat-template"); from != "" && from != "--chat-template" {
			problem = from + ": " + problem
		}
		hint := given.Advice
		if near := config.Nearest(strings.TrimSuffix(filepath.Base(given.Unknown), filepath.Ext(given.Unknown)), dialect.BuiltinNames()); given.Unknown != "" && near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return &model.LoadError{Where: src.Where, Problem: problem, Hint: hint}
	}
	return &model.LoadError{Where: src.Where, Err: err}
}

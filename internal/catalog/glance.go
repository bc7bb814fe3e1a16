package catalog

import (
	"io/fs"
	"time"

	"hearth/internal/chat"
	"hearth/internal/generate"
	"hearth/internal/model"
)

// glanceTime is how long a list takes at most to look into folders that it has not seen. What is left out then has its turn in
// the next list.
const glanceTime = time.Second

// glances are the times of the files that tell what a model does. They change when the files do.
type glances [4]time.Time

// glancesOf are those of a folder as it is now.
func glancesOf(fsys fs.FS) (g glances) {
	for i, name := range []string{".", "config.json", "tokenizer_config.json", "chat_template.jinja"} {
		if st, err := fs.Stat(fsys, name); err == nil {
			g[i] = st.ModTime()
		}
	}
	return g
}

// glance finds out what models do that have never been loaded, by their small files alone: context, thinking, tools. It is for
// lists: nobody waits for it who wants an answer. Folders that have not changed since are not read again, and none is looked at
// that was when the disk was.
func (c *Catalog) glance() {
	c.glancing.Lock()
	defer c.glancing.Unlock()
	c.mu.Lock()
	todo, looked := c.listed, c.looked
	c.mu.Unlock()
	if looked.Equal(c.glanced) {
		return
	}
	start := time.Now()
	for _, e := range todo {
		now := glancesOf(e.src.FS)
		c.mu.Lock()
		is, seen := e.last, e.phase != absent || e.glanced == now
		c.mu.Unlock()
		if seen {
			continue
		}
		e.describe(&is)
		c.mu.Lock()
		if e.phase == absent { // what a load tells is better
			e.last, e.glanced = is, now
		}
		c.mu.Unlock()
		if time.Since(start) > glanceTime {
			return
		}
	}
	c.glanced = looked
}

// describe fills in what the folder says. What is wrong with it is said by who loads it.
func (e *Entry) describe(m *chat.Model) {
	n, err := model.PeekContext(e.src.FS, e.src.Where)
	if err != nil {
		return
	}
	if m.Kind == chat.Embeds || m.Kind == chat.Ranks {
		if m.Context = n; e.cfg.EmbeddingMaxLength > 0 {
			m.Context = e.cfg.EmbeddingMaxLength
		}
		return
	}
	m.Context = contextOf(n, e.cfg)
	if m.Output = m.Context / 2; e.cfg.MaxTokensCap > 0 {
		m.Output = min(m.Output, e.cfg.MaxTokensCap)
	}
	t, err := generate.LoadTemplate(e.src.FS, e.cfg.ChatTemplate)
	if isBase(err) {
		m.Kind = chat.Completes
	}
	if err != nil {
		return
	}
	text := generate.Config{Template: t}
	configure(&text, e.src, e.cfg, m.ID)
	if p, err := processorOf(e.src.FS); err == nil { // whether there are weights of a tower is not looked up
		text.Sight = &generate.Sight{Processor: p}
	}
	m.Tools, m.Thinking, m.Sees = text.Does()
}
